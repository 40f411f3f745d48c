"""How the workbench itself is doing."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import Admit
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


async def test_a_quiet_project_says_so(workbench: Workbench) -> None:
    found = await workbench.call("get_performance")
    assert (found["queue_length"], found["connections"], found["pending_agents"], found["tasks"]) == (0, 0, 0, 0)
    assert found["cache_hits"] is None
    assert found["database_bytes"] > 0


async def test_what_is_going_on_is_measured(workbench: Workbench, admit: Admit) -> None:
    ada = (await admit("ada")).caller
    before = await workbench.call("get_performance")
    made = [workbench.call("create_task", title="T", persona_id="tester") for _ in range(50)]
    await asyncio.gather(*made)
    await workbench.call("register", name="waits")
    async with workbench.connected(ada, "websocket", "a"):
        found = await workbench.call("get_performance")
    assert found["writes_per_second"] >= before["writes_per_second"] + 5
    assert found["writes_per_commit"] > 1, "changes that meet share a commit"
    assert 0 < found["commit_ms"]["p50"] <= found["commit_ms"]["p95"] <= found["commit_ms"]["max"]
    assert (found["connections"], found["pending_agents"], found["tasks"]) == (1, 1, 50)
    assert found["events"] > before["events"]


async def test_readers_of_the_feed_are_served_from_memory_unless_they_come_late(workbench: Workbench) -> None:
    await workbench.call("create_task", title="T", persona_id="tester")
    async with workbench.feed.subscribe("task.*", after=0) as late:
        assert (await anext(late)).kind == "task.created"
        assert (await workbench.call("get_performance"))["cache_hits"] < 1
        before = (await workbench.call("get_performance"))["cache_hits"]
        await workbench.call("create_task", title="T", persona_id="tester")
        await anext(late)
        found = await workbench.call("get_performance")
    assert (found["feed_readers"], found["cache_hits"] > before) == (1, True)
