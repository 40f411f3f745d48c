"""Tells those that wait for an agent when its token becomes invalid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.ops import Caller
from workbench.store.base import Row

REASONS = {
    "agent.revoked": "REVOKED",
    "agent.deleted": "REVOKED",
    "agent.token_issued": "TOKEN_REPLACED",
    "agent.terminated": "TOKEN_ENDED",
    "agent.exited": "TOKEN_ENDED",
    "agent.survived": "TOKEN_ENDED",
    "agent.token_ended": "TOKEN_ENDED",  # that of one attempt's command
}
"""Events that invalidate a token, and the reason that each one gives."""


class Revocations:
    """The calls and connections that wait, by their agents. Use it on one loop.

    Noting that something waits costs next to nothing, as it is done for each call of a tool.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[asyncio.Future[str], Caller]] = {}

    def note(self, event: Row) -> None:
        """Take an event of one of the kinds in `REASONS`."""
        reason = REASONS[event["kind"]]
        data = json.loads(event["data"]) if event["kind"] == "agent.token_ended" else None
        for end, caller in self._waiting.get(event["subject"].removeprefix("agent:"), {}).items():
            if not end.done() and (data is None or caller.attempt == (data["task_id"], data["attempt"])):
                end.set_result(reason)

    @contextmanager
    def awaited(self, caller: Caller) -> Iterator[asyncio.Future[str]]:
        """A future that gets the reason if the token of a caller's agent becomes invalid within the block."""
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if caller.agent is None:
            yield end
            return
        waiting = self._waiting.setdefault(caller.agent, {})
        waiting[end] = caller
        try:
            yield end
        finally:
            del waiting[end]
            if not waiting and self._waiting.get(caller.agent) is waiting:
                del self._waiting[caller.agent]
