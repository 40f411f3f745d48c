"""The right to write in a worktree: this process holds its lock while it makes an attempt there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from workbench.errors import Unavailable
from workbench.process import Writer, WriterLock
from workbench.worker.startup import WorktreePlace

log = logging.getLogger(__name__)


class WorktreeWriter:
    """The right to write in a worktree for one attempt; a context manager, at whose end the lock is free.

    Args:
        place: the worktree; None: there is none, and every method does nothing.
        task: the task as it was claimed.
    """

    def __init__(self, place: WorktreePlace | None, task: Mapping[str, Any]) -> None:
        self._lock = WriterLock(place.writer) if place else None
        self._task = task
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def enter(self) -> None:
        """Try to become the writer, and end the processes of a killed one. The server checks whether it succeeded.

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

    def leave(self) -> None:
        """Give up the right once no process of the attempt runs."""
        if self._lock is not None and self._entered:
            self._lock.forget()
        self._entered = False
        self._held.close()

    _entered = False
