"""The time limit of an answer, which does not count the time in which it waits for the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from workbench.errors import Conflict


class Deadline:
    """A time limit that can be paused.

    Args:
        seconds: how long the block of `enforced` may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = seconds
        self._pauses = 0
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def enforced(self) -> AsyncIterator[None]:
        """Limit the time of the block.

        Raises:
            Conflict: ``CHAT_LIMIT``.
        """
        try:
            async with asyncio.timeout(self._seconds) as timeout:
                self._timeout = timeout
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            raise Conflict("CHAT_LIMIT", f"The answer took longer than {self._seconds:g} s.", limit="seconds") from None
        finally:
            self._timeout = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock while the block runs, and while any other such block does."""
        if not self._pauses:
            self._pause()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._resume()

    def _pause(self) -> None:
        if self._timeout is not None and (when := self._timeout.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def _resume(self) -> None:
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
