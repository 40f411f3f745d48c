"""Agents that wait for room."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, admitted
from tests.services.processes.running import agent, crowded, over, process, spawn
from tests.worker.working import done
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


async def begun(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once it has one."""
    while (details := await process(served, agent_id))["state"] == "queued":
        await asyncio.sleep(0.02)
    return details


async def test_agents_wait_for_a_free_place_in_the_order_of_their_requests(settings: Settings) -> None:
    async with crowded(settings, max_agents_running=1, max_agents_queued=2) as served:
        names = ["first", "second", "third"]
        agents = [await spawn(served, name=name) for name in names]
        assert [(agent["state"], agent["pid"] is None) for agent in agents] == [
            ("running", False),
            *[("queued", True)] * 2,
        ]
        assert [(await process(served, name))["queue_place"] for name in names] == [None, 1, 2]
        await given.refuses("TOO_MANY_AGENTS", spawn(served, name="fourth"))
        assert [a["agent_id"] for a in (await served.workbench.call("list_agents"))["agents"]] == names
        await served.workbench.call("terminate_agent", agent_id="first")
        assert (await begun(served, "second"))["state"] == "running"
        assert (await process(served, "third"))["queue_place"] == 1
        os.kill((await process(served, "second"))["pid"], signal.SIGKILL)
        assert (await begun(served, "third"))["state"] == "running"
        task = await done(served)
        assert task["attempts"][0]["agent_id"] == "third"
        assert await given.kinds(served.workbench, "agent.queued") == ["agent.queued"] * 2


async def test_an_agent_that_waits_for_room_can_be_ended(settings: Settings) -> None:
    async with crowded(settings, max_agents_running=1) as served:
        await spawn(served, name="first")
        await spawn(served, name="second", environment={"KEY": "secret"})
        await served.workbench.call("terminate_agent", agent_id="second", reason="Enough.")
        details = await process(served, "second")
        assert (details["state"], details["reason"], details["queue_place"]) == ("ended", "Enough.", None)
        assert (await agent(served, "second"))["registration_status"] == "inactive"
        await served.workbench.call("terminate_agent", agent_id="first")
        await over(served, "first")
        assert (await process(served, "second"))["pid"] is None
        await given.refuses("NOT_RUNNING", served.workbench.call("terminate_agent", agent_id="second"))


async def test_a_planner_may_run_only_its_share_of_agents(settings: Settings) -> None:
    async with crowded(settings, max_agents_per_planner=1) as served:
        paula, pete = [await admitted(served.workbench, name, "planner") for name in ("paula", "pete")]
        states = [(await spawn(served, who))["state"] for who in (paula, paula, pete)]
        assert states == ["running", "queued", "running"]
        assert (await spawn(served))["state"] == "running"
