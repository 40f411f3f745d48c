"""What of a table has to be read again."""

from __future__ import annotations

import asyncio


class Stale:
    """Collects what has changed until it is taken. Use it on one loop."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._ids: set[str] | None = set()

    def note(self, ids: set[str] | None) -> None:
        """Note changed rows by their ids; None: it may be any."""
        self._ids = None if ids is None or self._ids is None else self._ids | ids
        self._news.set()

    async def taken(self) -> set[str] | None:
        """Wait until something has changed; the rows since the last time, None: it may be any."""
        await self._news.wait()
        self._news.clear()
        ids, self._ids = self._ids, set()
        return ids
