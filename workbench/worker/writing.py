"""The right to write in a worktree, or to use a device: this process holds its lock while it makes an attempt."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from workbench.errors import Unavailable
from workbench.process import Writer, WriterLock

log = logging.getLogger(__name__)


class AttemptLock:
    """The right to write in a worktree, or to use a device, for one attempt; at the end of the context, it is free.

    Args:
        path: the lock of the worktree or the device; None: there is none, and every method does nothing.
        task: the task as it was claimed.
    """

    def __init__(self, path: Path | None, task: Mapping[str, Any]) -> None:
        self._lock = WriterLock(path) if path else None
        self._task = task
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def enter(self) -> None:
        """Try to get the lock, and end the processes of a killed holder. The server checks whether it succeeded.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        if self._lock is None:
            return
        if not self._held.enter_context(self._lock.held()):
            self._held.close()
            return
        try:
            self._lock.end_rest()
        except Unavailable as error:
            log.warning("%s", error.message)
            self._held.close()
            return
        self._lock.record(Writer.of_this_process(self._task["id"], self._task["attempt"]))
        self._entered = True

    @property
    def is_held(self) -> bool:
        """Whether `enter` has succeeded."""
        return self._entered

    def evict(self) -> None:
        """End the supervisor that holds the lock, with everything that it started.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``.
        """
        if self._lock is not None:
            self._lock.evict()

    def leave(self) -> None:
        """Give up the right once no process of the attempt runs."""
        if self._lock is not None and self._entered:
            self._lock.forget()
        self._entered = False
        self._held.close()

    _entered = False
