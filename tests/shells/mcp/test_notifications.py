"""Notifications over MCP, in both eras of the protocol: what changes reaches the clients that may read it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from mcp.server.subscriptions import ResourceUpdated, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST

from tests import given
from tests.conftest import Admit, Served
from tests.shells.mcp.sessions import ERAS, session
from tests.shells.mcp.test_resources import PLAN, tasks_in_two_sessions
from tests.shells.mcp.watching import notified, subscribe, unsubscribe
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.ops import OPERATOR
from workbench.shells.mcp.addresses import locate
from workbench.shells.mcp.changes import KINDS, MAX_WATCHED, FeedChanges, WatchingClient
from workbench.shells.mcp.notifications import MAX_STREAMS
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

TASK = "workbench://tasks/1"


async def new_task(served: Served, title: str = "Count") -> None:
    """Create a task that everyone sees."""
    await given.task(served.workbench, title)


async def test_an_agent_is_notified_when_its_tools_change(served: Served, admit: Admit, era: str) -> None:
    await admit("bob")
    async with notified(served, (await admit("ada")).token, era) as following:
        await served.workbench.call("update_agent", agent_id="bob", changes={"tool": "read"})
        await served.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
        assert {await following() for _ in range(3)} == {"tools", "resources", "prompts"}
        await served.workbench.call("update_agent_tool", tool_id="read", enabled=False)
        assert {await following() for _ in range(3)} == {"tools", "resources", "prompts"}


async def test_a_waiting_agent_is_notified_of_its_admission(served: Served, era: str) -> None:
    registration = await served.workbench.call("register", name="ada")
    async with (
        session(served, registration["token"], era) as client,
        notified(served, registration["token"], era) as following,
    ):
        before = await client.list_tools(cache_mode="refresh")
        await served.workbench.call("approve", approval_id=registration["approval_id"])
        assert {await following() for _ in range(3)} == {"tools", "resources", "prompts"}
        assert len((await client.list_tools(cache_mode="refresh")).tools) > len(before.tools)


async def test_watched_resources_are_announced_when_they_change(served: Served, admit: Admit, era: str) -> None:
    await served.workbench.call("create_plan", text=PLAN)
    await new_task(served)
    await given.project(served.workbench)
    await given.session(served.workbench, "one")
    ada = await admit("ada", session_id="one")
    context_id = (await served.workbench.dispatch(ada.caller, "write", {"content": {"title": "Note"}}))["context_id"]
    context, plan = f"workbench://contexts/{context_id}", "workbench://plans/penguins"
    async with notified(served, ada.token, era, TASK, plan, context, "workbench://contexts") as following:
        await served.workbench.call("set_priority", task_id=3, priority=900)
        await served.workbench.call("set_priority", task_id=1, priority=900)
        assert {await following() for _ in range(2)} == {TASK, plan}
        await new_task(served)
        assert await following() == "resources"
        await served.workbench.call("update_context", context_id=context_id, title="Corrected")
        assert {await following() for _ in range(2)} == {context, "workbench://contexts"}


async def test_the_operator_is_notified_of_waiting_approvals(served: Served) -> None:
    async with notified(served, served.workbench.operator_token, "auto", "workbench://approvals") as following:
        await served.workbench.call("register", name="ada")
        assert {await following() for _ in range(2)} == {"workbench://approvals", "resources"}


async def test_changes_that_an_agent_may_not_read_are_not_announced_to_it(
    served: Served, admit: Admit, era: str
) -> None:
    ada, _ = await tasks_in_two_sessions(served, admit)
    async with notified(served, ada.token, era, TASK, "workbench://tasks") as following:
        await served.workbench.call("set_priority", task_id=2, priority=900)
        await given.task(served.workbench, "x", session_id="bob")
        await served.workbench.call("set_priority", task_id=1, priority=900)
        assert [await following() for _ in range(2)] == ["workbench://tasks", TASK]
        await served.workbench.call("update_agent", agent_id="ada", changes={"session_id": "bob"})
        assert {await following() for _ in range(3)} == {"resources", TASK, "workbench://tasks"}
        await served.workbench.call("set_priority", task_id=1, priority=800)
        await served.workbench.call("set_priority", task_id=2, priority=100)
        assert await following() == "workbench://tasks"


async def test_unreadable_resources_are_refused_to_a_session_and_omitted_from_a_stream(
    served: Served, admit: Admit
) -> None:
    ada, _ = await tasks_in_two_sessions(served, admit)
    async with session(served, ada.token, "legacy") as client:
        for uri, code in [("workbench://tasks/2", "TASK_NOT_FOUND"), ("test://watched-resource", "RESOURCE_NOT_FOUND")]:
            with pytest.raises(MCPError) as caught:
                await subscribe(client, uri)
            assert caught.value.data["code"] == code
    wanted = [TASK, "workbench://tasks/2", "workbench://approvals", "test://watched-resource"]
    async with session(served, ada.token) as client, client.listen(resource_subscriptions=wanted) as stream:
        assert stream.honored.resource_subscriptions == [TASK]


async def test_a_resource_that_is_no_longer_watched_is_not_announced(served: Served, admit: Admit) -> None:
    await new_task(served)
    queue: asyncio.Queue[object] = asyncio.Queue()
    async with session(served, (await admit("ada")).token, "legacy", message_handler=queue.put) as client:
        await subscribe(client, TASK)
        await unsubscribe(client, TASK)
        await served.workbench.call("set_priority", task_id=1, priority=900)
        await new_task(served)
        assert (await queue.get()).method == "notifications/resources/list_changed"  # type: ignore[attr-defined]


# What a client costs


async def test_the_feed_is_followed_only_while_there_are_clients(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    assert not served.workbench.feed.patterns >= {*KINDS}
    for era in ERAS:
        async with notified(served, ada.token, era), notified(served, ada.token, era):
            assert served.workbench.feed.patterns >= {*KINDS}
        while served.workbench.feed.patterns >= {*KINDS}:  # the server learns that the client has left
            await asyncio.sleep(0)


async def test_a_client_that_watches_reads_nothing_of_the_history(served: Served, admit: Admit, era: str) -> None:
    for _ in range(50):
        await new_task(served)
    token, before = (await admit("ada")).token, served.workbench.feed.stats.fetched
    async with notified(served, token, era, TASK) as following:
        await served.workbench.call("set_priority", task_id=1, priority=900)
        assert await following() == TASK
    assert served.workbench.feed.stats.fetched == before


async def test_many_changes_of_one_resource_are_one_notification() -> None:
    client, sent = WatchingClient(OPERATOR), []
    delivered = asyncio.Event()

    async def send(change: ServerEvent) -> None:
        sent.append(change)
        delivered.set()

    client.watch(locate(TASK), TASK)
    for _ in range(10_000):
        client.add(*client.watched_among([TASK, "workbench://tasks/2"]))
    delivering = asyncio.create_task(client.deliver(send))
    await delivered.wait()
    delivering.cancel()
    assert sent == [ResourceUpdated(TASK)]


async def test_a_client_that_lags_too_far_behind_reads_everything_again(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"feed_queue": 1})) as workbench:
        client, sent = WatchingClient(OPERATOR), set()
        everything = asyncio.Event()

        async def send(change: ServerEvent) -> None:
            sent.add(change)
            if {ToolsListChanged(), ResourceUpdated(TASK)} <= sent:
                everything.set()

        client.watch(locate(TASK), TASK)
        async with FeedChanges(workbench).noted_for(client):
            delivering = asyncio.create_task(client.deliver(send))
            plan = "plan: p\ntasks:\n" + "".join(f"  - {{name: t{n}, title: T, persona: tester}}\n" for n in range(50))
            await workbench.call("create_plan", text=plan)
            await everything.wait()
            delivering.cancel()


def test_the_watched_resources_of_a_client_are_limited() -> None:
    client = WatchingClient(OPERATOR)
    for number in range(1, MAX_WATCHED + 1):
        client.watch(locate(f"workbench://tasks/{number}"), "x")
    client.watch(locate(TASK), "again")
    with pytest.raises(Conflict, match="TOO_MANY_SUBSCRIPTIONS"):
        client.watch(locate("workbench://tasks"), "x")


async def test_the_streams_of_an_agent_are_limited(served: Served, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(session(served, ada.token))
        for _ in range(MAX_STREAMS):
            await stack.enter_async_context(client.listen(tools_list_changed=True))
        with pytest.raises(MCPError) as caught:
            await stack.enter_async_context(client.listen(tools_list_changed=True))
        assert (caught.value.code, caught.value.data["code"]) == (INVALID_REQUEST, "TOO_MANY_SUBSCRIPTIONS")
        other = await stack.enter_async_context(session(served, bob.token))
        await stack.enter_async_context(other.listen(tools_list_changed=True))


# How streams end


@pytest.mark.parametrize("end", ["revoke_agent", "issue_token", "delete_agent"])
async def test_an_agent_is_connected_while_it_listens_and_a_stream_ends_with_its_token(
    served: Served, admit: Admit, end: str
) -> None:
    token = (await admit("ada")).token
    async with (
        served.workbench.feed.subscribe("agent.connected", "agent.disconnected") as events,
        session(served, token) as client,
    ):
        async with client.listen(tools_list_changed=True):
            assert (await anext(events)).data["transport"] == "mcp"
        assert (await anext(events)).kind == "agent.disconnected"
        async with client.listen(tools_list_changed=True) as stream:
            await served.workbench.call(end, agent_id="ada")
            assert [change async for change in stream] == []


async def test_the_streams_end_cleanly_when_the_servers_stop(
    served: Served, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await admit("ada")
    async with (
        session(served, ada.token, "legacy"),
        session(served, ada.token) as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        await served.servers.stop()
        with pytest.raises(StopAsyncIteration):
            await anext(aiter(stream))
    assert [record.message for record in caplog.records if record.exc_info] == []
