"""What functions print while they run for a tool: it goes to a log of the call, and into no cell.

A stream that knows the running call takes the place of `sys.stdout` and of `sys.stderr`. Threads that a function starts
itself, and other processes, do not belong to its call: what they print appears in the notebook.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from workbench.rules.secrets.mask import Mask, StreamMask

LIMIT = 1_048_576
CUT = "\n… more was printed than a log holds.\n"
_LOG: ContextVar[CallLog | None] = ContextVar("workbench_tool_log", default=None)


class CallLog:
    """The log of one call: a file, made when something is written. Used in any thread.

    Args:
        mask: what is secret in it.
        limit: how many characters it holds; what exceeds them is dropped.
    """

    def __init__(self, path: Path, mask: Mask = Mask(), limit: int = LIMIT) -> None:
        self._mask = StreamMask(mask.text)
        self._path = path
        self._left = limit
        self._file: TextIO | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Append a text."""
        with self._lock:
            if self._is_closed or not text:
                return
            self._keep(self._mask(text))

    def close(self) -> None:
        """Drop what a function writes that goes on after its call was answered."""
        with self._lock:
            if not self._is_closed:
                self._keep(self._mask.rest())
            self._close()

    def _keep(self, text: str) -> None:
        if not text:
            return
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
        self._file.write(text[: self._left])
        self._left -= len(text)
        if self._left < 0:
            self._file.write(CUT)
            self._close()

    def _close(self) -> None:
        self._is_closed = True
        if self._file is not None:
            self._file.close()


class _Divided:
    """A stream, except for what a tool writes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        log = _LOG.get()
        if log is None:
            written: int = self.stream.write(text)
            return written
        log.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def printing_to(log: CallLog) -> Iterator[None]:
    """Within the block, and in functions that are started from it, printed text goes to a log."""
    for name in ("stdout", "stderr"):  # a cell may have replaced them since the last call
        if not isinstance(getattr(sys, name), _Divided):
            setattr(sys, name, _Divided(getattr(sys, name)))
    token = _LOG.set(log)
    try:
        yield
    finally:
        _LOG.reset(token)


def restore() -> None:
    """Put the streams back that were replaced."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, _Divided):
            setattr(sys, name, stream.stream)
