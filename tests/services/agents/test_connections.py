"""The connections of agents, and the states that follow from them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conftest import Admit, Clock, Served, admitted
from workbench.app import Workbench
from workbench.model import ServerInfo
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def state(workbench: Workbench, name: str = "ada") -> tuple[str, str, str, int]:
    """Registration, spec 1's status, presence and the number of connections."""
    agent = await workbench.call("get_agent", agent_id=name)
    return agent["registration_status"], agent["status"], agent["presence"], agent["connections"]


async def kinds(workbench: Workbench, name: str = "ada") -> list[str]:
    """The kinds of an agent's events since its admission."""
    return [e["kind"] for e in (await workbench.call("list_events", subject=name))["events"]][2:]


async def test_an_agent_is_active_as_long_as_one_of_its_connections_lives(workbench: Workbench, admit: Admit) -> None:
    ada = (await admit("ada")).caller
    assert (await state(workbench))[:2] == ("assigned", "disconnected")
    async with workbench.connected(ada, "websocket", "a"):
        assert await state(workbench) == ("active", "connected", "idle", 1)
        async with workbench.connected(ada, "websocket", "b"):
            assert (await state(workbench))[3] == 2
        assert await state(workbench) == ("active", "connected", "idle", 1)
    assert (await state(workbench))[:2] == ("inactive", "disconnected")
    async with workbench.connected(ada, "sse", "c"):
        assert (await state(workbench))[0] == "active"
    assert await kinds(workbench) == [
        *("agent.connected", "agent.activated", "agent.connected", "agent.disconnected"),
        *("agent.disconnected", "agent.deactivated", "agent.connected", "agent.activated"),
        *("agent.disconnected", "agent.deactivated"),
    ]


async def test_a_connection_that_is_given_up_while_it_opens_is_closed(workbench: Workbench, admit: Admit) -> None:
    ada = (await admit("ada")).caller
    opening = asyncio.create_task(workbench.connected(ada, "websocket", "a").__aenter__())
    await asyncio.sleep(0)  # it waits for its commit
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert await kinds(workbench) == [
        *("agent.connected", "agent.activated", "agent.disconnected", "agent.deactivated"),
    ]


async def test_the_next_server_closes_the_connections_of_a_killed_one(settings: Settings) -> None:
    async with Workbench.open(settings) as workbench:
        ada = (await admitted(workbench, "ada")).caller
        gone = ServerInfo(pid=1, started=0.0, nonce="gone", url="", ws_url="", mcp_url="")
        await workbench.serving(gone)
        async with workbench.connected(ada, "websocket", "a"):
            assert await state(workbench) == ("active", "connected", "idle", 1)
            async with Servers(workbench) as servers:
                await servers.start(0)
                assert (await state(workbench))[:2] == ("inactive", "disconnected")
    async with Workbench.open(settings) as workbench:
        assert (await kinds(workbench))[-2:] == ["agent.disconnected", "agent.deactivated"]


@pytest.fixture
async def timed(settings: Settings, clock: Clock) -> Any:
    """An open project whose clock the test moves, and that listens often."""
    async with Workbench.open(settings.model_copy(update={"silent_seconds": 0.2}), clock=clock) as opened:
        yield opened


async def test_an_agent_falls_silent_without_a_heartbeat_but_not_while_it_holds_a_task(
    timed: Workbench, clock: Clock
) -> None:
    ada = (await admitted(timed, "ada")).caller

    async def silent_after(seconds: float) -> None:
        async with timed.feed.subscribe("agent.deactivated") as events:
            clock.forward(seconds)
            assert (await anext(events)).data == {"reason": "no heartbeat"}
        assert (await state(timed))[0::2] == ("inactive", "inactive")

    await timed.dispatch(ada, "heartbeat_and_get_tasks", {})
    await silent_after(1)
    await timed.call("create_task", title="T", persona_id="implementer", lease_seconds=60, max_retries=0)
    await timed.dispatch(ada, "claim_task", {})
    clock.forward(30)
    await timed.duties["expiring presence"].perform(timed._ctx)
    assert (await state(timed))[0::2] == ("active", "active")
    await silent_after(31)


async def test_an_open_connection_does_not_reactivate_a_revoked_agent(served: Served, admit: Admit) -> None:
    ada = (await admit("ada")).caller
    async with served.workbench.connected(ada, "websocket", "a"):
        await served.workbench.call("revoke_agent", agent_id="ada")
    assert (await state(served.workbench))[0] == "revoked"
