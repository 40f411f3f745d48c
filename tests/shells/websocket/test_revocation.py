"""Revoking an agent or its token ends its WebSocket connections."""

from __future__ import annotations

import pytest

from tests.conftest import Admit, Served, Talk, Talks, limited
from tests.shells.websocket.conftest import closed, connections_of, decide_others, gone

pytestmark = pytest.mark.anyio


async def test_revoking_ends_an_agents_connections_at_once(served: Served, talk: Talks, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    by_message = await talk("one", ada.token)
    by_subprotocol = await talk("two", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    other = await talk("three", bob.token)
    await served.workbench.call("revoke_agent", agent_id="ada")
    for line in (by_message, by_subprotocol):
        assert await closed(line) == (4401, "REVOKED")
    assert (await other.say("bob", "whoami"))["data"]["agent_id"] == "bob"
    assert (await other.say("bob", "authenticate", token=ada.token))["code"] == "INVALID_TOKEN"


async def test_revoking_ends_also_the_connection_of_a_client_that_does_not_read(served: Served, line: Talk) -> None:
    await line.say("ada", "subscribe", after=None, kinds=["task.*"])
    line.socket.transport.pause_reading()
    for _ in range(200):
        await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="x" * 100_000))
    await served.workbench.call("revoke_agent", agent_id="ada")
    await gone(served, times=1)
    assert await connections_of(served, "ada") == ("disconnected", 0)
    line.socket.transport.abort()  # else it waits for the farewell that it does not read


async def test_another_token_ends_the_connections_made_with_the_old_one(served: Served, line: Talk) -> None:
    await served.workbench.call("issue_token", agent_id="ada")
    assert await closed(line) == (4401, "TOKEN_REPLACED")


@limited(feed_queue=1)
async def test_revoking_many_at_once_ends_all_their_connections(served: Served, line: Talk) -> None:
    await decide_others(served, "agent.revoked")
    await served.workbench.call("revoke_agent", agent_id="ada")
    assert await closed(line) == (4401, "REVOKED")


async def test_a_rebound_connection_belongs_only_to_its_second_agent(served: Served, line: Talk, admit: Admit) -> None:
    bob = await admit("bob")
    await line.say("ada", "subscribe", after=None)
    assert (await line.say("me", "authenticate", token=bob.token))["agent_id"] == "bob"
    assert await connections_of(served, "ada") == ("disconnected", 0)
    assert await connections_of(served, "bob") == ("connected", 1)
    assert (await line.say("bob", "unsubscribe"))["data"] == {"ended": 0}
    assert (await line.say("ada", "whoami"))["code"] == "FORBIDDEN"
    await served.workbench.call("revoke_agent", agent_id="ada")
    assert (await line.say("bob", "whoami"))["data"]["agent_id"] == "bob"
    await served.workbench.call("revoke_agent", agent_id="bob")
    assert await closed(line) == (4401, "REVOKED")
