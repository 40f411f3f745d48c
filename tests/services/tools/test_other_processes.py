"""Calls of other processes: one that is killed while it asks and runs, and one whose call is cancelled from here."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import Child
from tests.services.tools.conftest import events, rows
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

BEGIN = """
import asyncio, os, signal, sys
from pathlib import Path
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.ops import OPERATOR
from workbench.services.tools.calls import call
from workbench.services.tools.tool import ToolScope
from workbench.state.settings import Settings

WAITS = {"name": "list_events", "arguments": {"after": 1_000_000, "wait_seconds": 30}}

async def main():
    async with Workbench.open(Settings(project=Path(sys.argv[1]))) as workbench:
"""
DIES = """
        async with workbench.feed.subscribe("approval.requested", "tool.started") as events:
            model = ToolScope(OPERATOR, conversation_id="c")
            wanted = {"title": "One", "persona_id": "tester"}
            asking = asyncio.create_task(call(workbench._ctx, model, "create_task", wanted))
            running = asyncio.create_task(workbench.call("call_tool", **WAITS))
            for _ in range(2):
                await anext(events)
            os.kill(os.getpid(), signal.SIGKILL)
"""
CALLS = """
        try:
            await workbench.call("call_tool", **WAITS)
        except WorkbenchError as error:
            print(error.code, error.message)
"""
RUN = "\nasyncio.run(main())\n"


async def test_calls_and_questions_of_a_killed_process_are_closed(settings: Settings, child: Child) -> None:
    process = child("-c", BEGIN + DIES + RUN, settings.project)
    assert await asyncio.to_thread(process.wait, 60) == -9
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        assert {row["state"] for row in await rows(workbench)} == {"waiting", "running"}
        [question] = (await workbench.call("list_approvals", kind="tool_call"))["approvals"]
        await servers.start(0)
        found = {(row["state"], row["error_code"]) for row in await rows(workbench)}
        assert found == {("interrupted", "TOOL_INTERRUPTED")}
        assert (await workbench.call("get_approval", approval_id=question["id"]))["status"] == "failed"
        with pytest.raises(Conflict, match="ALREADY_DECIDED"):
            await workbench.call("approve", approval_id=question["id"])
        assert (await workbench.call("list_tasks"))["tasks"] == []


async def test_a_call_of_another_process_is_cancelled_there(settings: Settings, child: Child) -> None:
    async with Workbench.open(settings) as workbench, workbench.feed.subscribe("tool.started") as news:
        process = child("-c", BEGIN + CALLS + RUN, settings.project)
        started = await anext(news)
        ended = await workbench.call("cancel_tool_call", call_id=started.data["call_id"])
        assert process.stdout is not None
        printed = await asyncio.to_thread(process.stdout.read)
        assert (ended["state"], ended["error_code"]) == ("cancelled", "TOOL_CANCELLED")
        assert printed.strip() == "TOOL_CANCELLED The call was cancelled by operator."
        assert [row["state"] for row in await rows(workbench)] == ["cancelled"]
        kinds = [kind for kind, _ in await events(workbench, "tool.*")]
        assert kinds == ["tool.started", "tool.cancellation_requested", "tool.completed"]
