"""A call that one process runs is cancelled by another one that has the same store open."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import Child
from tests.services.tools.conftest import events, rows
from workbench.app import Workbench
from workbench.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CALLS = """
import asyncio, sys
from pathlib import Path
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.settings import Settings

async def main():
    async with Workbench.open(Settings(project=Path(sys.argv[1]))) as workbench:
        waits = {"name": "list_events", "arguments": {"after": 1_000_000, "wait_seconds": 30}}
        try:
            await workbench.call("call_tool", **waits)
        except WorkbenchError as error:
            print(error.code, error.message)

asyncio.run(main())
"""


async def test_a_call_of_another_process_is_cancelled_there_and_its_caller_learns_by_whom(
    settings: Settings, child: Child
) -> None:
    async with Workbench.open(settings) as workbench, workbench.feed.subscribe("tool.started") as news:
        process = child("-c", CALLS, settings.project)
        started = await anext(news)
        ended = await workbench.call("cancel_tool_call", call_id=started.data["call_id"])
        assert process.stdout is not None
        printed = await asyncio.to_thread(process.stdout.read)
        assert (ended["state"], ended["error_code"]) == ("cancelled", "TOOL_CANCELLED")
        assert printed.strip() == "TOOL_CANCELLED The call was cancelled by operator."
        assert [row["state"] for row in await rows(workbench)] == ["cancelled"]
        kinds = [kind for kind, _ in await events(workbench, "tool.*")]
        assert kinds == ["tool.started", "tool.cancellation_requested", "tool.completed"]
