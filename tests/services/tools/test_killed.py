"""A process that is killed while it asks for a call and runs another: the next one that serves interrupts both."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.services.tools.conftest import rows
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.settings import Settings
from workbench.shells.serve import Servers

pytestmark = [pytest.mark.anyio, pytest.mark.long]

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from workbench.app import Workbench
from workbench.ops import OPERATOR
from workbench.services.tools.calls import call
from workbench.services.tools.tool import Scope
from workbench.settings import Settings

async def main():
    async with Workbench.open(Settings(project=Path(sys.argv[1]))) as workbench:
        async with workbench.feed.subscribe("approval.requested", "tool.started") as events:
            model = Scope(OPERATOR, conversation_id="c")
            wanted = {"title": "One", "persona_id": "tester"}
            asking = asyncio.create_task(call(workbench._ctx, model, "create_task", wanted))
            waits = {"name": "list_events", "arguments": {"after": 1_000_000, "wait_seconds": 30}}
            running = asyncio.create_task(workbench.call("call_tool", **waits))
            for _ in range(2):
                await anext(events)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_calls_of_a_killed_process_are_interrupted_and_its_question_is_withdrawn(settings: Settings) -> None:
    command = [sys.executable, "-c", DIES, str(settings.project)]
    assert subprocess.run(command, check=False, timeout=60).returncode == -9
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
