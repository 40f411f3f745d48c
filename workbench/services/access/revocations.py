"""Tells those that wait for an agent when its token becomes invalid."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.ops import Caller
from workbench.store.base import Row

REASONS = {"agent.revoked": "REVOKED", "agent.deleted": "REVOKED", "agent.token_issued": "TOKEN_REPLACED"}
"""Events that invalidate a token, and the reason that each one gives."""


class Revocations:
    """The calls and connections that wait, by their agents. Use it on one loop.

    Noting that something waits costs next to nothing, as it is done for each call of a tool.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[str]]] = {}

    def note(self, event: Row) -> None:
        """Take an event of one of the kinds in `REASONS`."""
        for end in self._waiting.get(event["subject"].removeprefix("agent:"), ()):
            if not end.done():
                end.set_result(REASONS[event["kind"]])

    @contextmanager
    def awaited(self, caller: Caller) -> Iterator[asyncio.Future[str]]:
        """A future that gets the reason if the token of a caller's agent becomes invalid within the block."""
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if caller.agent is None:
            yield end
            return
        waiting = self._waiting.setdefault(caller.agent, set())
        waiting.add(end)
        try:
            yield end
        finally:
            waiting.discard(end)
            if not waiting and self._waiting.get(caller.agent) is waiting:
                del self._waiting[caller.agent]
