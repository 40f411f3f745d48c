"""The tasks that exchange something with peers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

FAILED_SECONDS = 5.0

log = logging.getLogger(__name__)


class PeerTasks:
    """Tasks of a node: at most one of each kind for each peer, so that none waits for another peer.

    Args:
        on_end: called when a task may be started again.
        failed_seconds: the pause after a failure, before a task of the same kind and peer may start.
    """

    def __init__(self, on_end: Callable[[], None] = lambda: None, failed_seconds: float = FAILED_SECONDS) -> None:
        self._on_end = on_end
        self._failed_seconds = failed_seconds
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, kind: str, peer: str, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Start a task, unless one of its kind runs for the peer, or has just failed. A failure is logged."""
        key = kind, peer
        if self._is_closed or key in self._running:
            return False
        self._running[key] = task = asyncio.create_task(work(), name=f"{kind} {peer}")
        task.add_done_callback(lambda _: self._note_end(key, task))
        return True

    async def close(self) -> None:
        """End all tasks, and start no more."""
        self._is_closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _note_end(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            self._release(key)
            return
        log.error("%s failed", task.get_name(), exc_info=error)
        asyncio.get_running_loop().call_later(self._failed_seconds, self._release, key)

    def _release(self, key: tuple[str, str]) -> None:
        del self._running[key]
        self._on_end()
