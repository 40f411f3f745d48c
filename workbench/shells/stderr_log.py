"""The log of `workbench serve`: on standard error, written by a thread of its own.

Standard error may be a pipe that is not read, or a stopped terminal. A server that wrote to it itself would then wait
for ever: it would answer nobody, close nothing, and not even notice a signal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from queue import Full, Queue

from workbench.rules.secrets.forms import masked_by_form

KEPT_RECORDS = 1_000
END_SECONDS = 1.0
"""How long the last records may take to be written."""


@contextlib.contextmanager
def stderr_log(descriptor: int = 2) -> Iterator[None]:
    """Write warnings and errors of all loggers to a file descriptor until the block ends."""
    handler = _Writer(descriptor)
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return masked_by_form(super().format(record))


class _Writer(logging.Handler):
    """Hands records to a thread. When too many wait to be written, further ones are counted and dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.WARNING)
        self._descriptor = descriptor
        self._lines: Queue[str | None] = Queue(KEPT_RECORDS)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="workbench-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        with contextlib.suppress(Full):
            if self._dropped:
                self._lines.put_nowait(f"{self._dropped} records were dropped: nothing read them")
                self._dropped = 0
            self._lines.put_nowait(line)
            return
        self._dropped += 1

    def close(self) -> None:
        with contextlib.suppress(Full):
            self._lines.put_nowait(None)
        self._thread.join(END_SECONDS)
        super().close()

    def _write(self) -> None:
        """The thread: uses no lock that the end of the interpreter waits for."""
        with contextlib.suppress(OSError):  # closed: records go nowhere
            while (line := self._lines.get()) is not None:
                unwritten = f"{line}\n".encode(errors="backslashreplace")
                while unwritten:
                    unwritten = unwritten[os.write(self._descriptor, unwritten) :]
