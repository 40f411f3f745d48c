"""Calls over MCP that wait: they report progress, and end with the token of their agent or when the servers stop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp.client import Client

from tests import given
from tests.conftest import Admit, Served
from tests.shells.mcp.sessions import session
from workbench.shells.mcp import progress

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WAITS: list[tuple[str, dict[str, Any]]] = [
    ("wait_for_task", {"task_id": 1}),
    ("wait_for_task", {"task_id": 1, "wait_seconds": 30}),
    ("heartbeat_and_get_tasks", {"wait_seconds": 30}),
    ("list_events", {"after": 1_000_000, "wait_seconds": 30}),
]


class Waiting:
    """A call that waits; `reports` are the progress of it."""

    def __init__(self, client: Client, name: str, arguments: dict[str, Any]) -> None:
        self.reports: list[float] = []
        self._reported = asyncio.Event()
        self.call = asyncio.create_task(client.call_tool(name, arguments, progress_callback=self._note))

    async def has_reported(self, times: int = 1) -> None:
        while len(self.reports) < times:
            self._reported.clear()
            await self._reported.wait()

    async def error(self) -> str:
        result = await self.call
        assert result.is_error
        [text] = result.content
        assert text.type == "text"
        return str(json.loads(text.text)["error"]["code"])

    async def _note(self, done: float, total: float | None, message: str | None) -> None:
        assert message is not None
        self.reports.append(done)
        self._reported.set()


async def test_a_call_that_waits_reports_its_progress(
    served: Served, admit: Admit, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_REPORTS", 0.01)
    async with session(served, (await admit("ada")).token, era) as client:
        waiting = Waiting(client, "heartbeat_and_get_tasks", {"wait_seconds": 30})
        await waiting.has_reported(3)
        await given.task(served.workbench, "Count")
        result = (await waiting.call).structured_content
        assert result is not None
        assert [task["id"] for task in result["available"]] == [1]
        assert waiting.reports == sorted(set(waiting.reports))


async def test_a_call_that_does_not_wait_reports_nothing(served: Served, admit: Admit, era: str) -> None:
    async with session(served, (await admit("ada")).token, era) as client:
        for name in ("whoami", "heartbeat_and_get_tasks"):
            called = Waiting(client, name, {})
            assert not (await called.call).is_error
            assert called.reports == []


@pytest.mark.parametrize("end", ["NO_SERVER", "INVALID_TOKEN"])
async def test_calls_that_wait_end_when_the_servers_stop_or_with_the_token_of_their_agent(
    served: Served, admit: Admit, era: str, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    await given.task(served.workbench, "Count", "tester")
    async with session(served, (await admit("ada")).token, era) as client:
        waiting = [Waiting(client, name, arguments) for name, arguments in WAITS]
        for call in waiting:
            await call.has_reported()
        if end == "NO_SERVER":
            await served.servers.stop()
        else:
            await served.workbench.call("revoke_agent", agent_id="ada")
        assert [await call.error() for call in waiting] == [end] * len(WAITS)
        failed = [record.getMessage() for record in caplog.records if record.exc_info or record.levelname == "ERROR"]
        assert failed == []
