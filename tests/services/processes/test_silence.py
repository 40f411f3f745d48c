"""An agent that gives no sign of life is marked once, and goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.services.processes import samples
from workbench.state.settings import Settings
from workbench.store.queries import Query, beside

pytestmark = pytest.mark.anyio

SQL = beside(samples.__file__)
STARTED = Query(
    "started",
    "INSERT INTO processes (agent_id, profile, pid, started, mark, spawned_at) "
    "VALUES (:agent, 'script', 7, 0.0, NULL, 0)",
)
STALL = 600


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(settings.model_copy(update={"stall_seconds": STALL}), clock=clock) as opened:
        yield opened


async def test_an_agent_that_neither_computes_nor_asks_is_marked_as_silent_until_it_does(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    agent = ada.caller.agent
    await workbench.call("create_task", title="think", persona_id="implementer")
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
    await workbench.store.write(lambda tx: tx.run(STARTED, agent=agent))

    async def look(cpu_seconds: float) -> tuple[str, list[str]]:
        """What is seen of the agent, and the events of its silence, after a look at what it has used."""
        sample = {"kind": "agent", "owner": agent, "pid": 7, "cpu_seconds": cpu_seconds, "processes": 1}
        await workbench.store.write(lambda tx: tx.run(SQL.add, sample, memory_bytes=1, now=tx.now))
        await workbench.duties["noticing silent agents"].perform(workbench._ctx)
        seen = await workbench.call("get_agent", agent_id="ada")
        events = (await workbench.call("list_events", kinds=["agent.silent", "agent.heard"]))["events"]
        return seen["presence"], [event["kind"] for event in events]

    assert await look(1.0) == ("active", [])
    clock.forward(STALL + 1)
    assert await look(1.5) == ("silent", ["agent.silent"])  # what heartbeats need
    clock.forward(5)
    assert await look(1.5) == ("silent", ["agent.silent"])
    clock.forward(5)
    assert await look(30.0) == ("active", ["agent.silent", "agent.heard"])
