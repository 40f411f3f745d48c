"""The calls that were made: in pages, whole, cancelled alone, interrupted with their program, and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from tests.conftest import Admit, Served
from tests.services.tools import conftest
from tests.services.tools.conftest import CHAT, READING, Hanging, Shelf, as_agent, begin, ended_with, events, rows
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound
from workbench.ops import Ctx
from workbench.providers.frames import AnswerUsage
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools import call_log
from workbench.services.tools.calls import call as call_tool
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

MOVE = Query("move", "UPDATE tool_calls SET runner = :runner WHERE ended_at IS NULL")


async def test_calls_are_listed_newest_first_in_pages_and_filtered(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__look", hints=READING)
    for n in range(5):
        await begin(workbench, "hub__look", {"n": n})
    await workbench.call("call_tool", name="list_tasks")
    first = await workbench.call("list_tool_calls", limit=4)
    second = await workbench.call("list_tool_calls", limit=4, cursor=first["next_cursor"])
    pages = [[(call["tool_name"], call["tool_input"]) for call in page["calls"]] for page in (first, second)]
    looks = [("hub__look", f'{{"n":{n}}}') for n in range(5)]
    assert (pages, second["next_cursor"]) == ([[("list_tasks", "{}"), *looks[:1:-1]], looks[1::-1]], None)

    async def number(**only: Any) -> int:
        return len((await workbench.call("list_tool_calls", **only))["calls"])

    assert await number(source="mcp") == await number(server="hub") == await number(conversation_id="c1") == 5
    assert await number(name="list_tasks") == await number(source="local") == 1
    assert (await number(state="completed"), await number(state="open"), await number(task_id=1)) == (6, 0, 0)


async def test_a_list_of_calls_is_abridged_and_a_single_call_is_whole(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__look", hints=READING)
    done = await begin(workbench, "hub__look", {"text": "x" * 10_000})
    [listed] = (await workbench.call("list_tool_calls"))["calls"]
    assert (len(listed["tool_input"]), len(listed["tool_result"])) == (500, 500)
    whole = await workbench.call("get_tool_call", call_id=done.call_id)
    assert whole["arguments"] == whole["result"] == {"text": "x" * 10_000}
    assert (whole["state"], whole["wait_ms"], whole["server"]) == ("completed", 0, "hub")
    for op in ("get_tool_call", "cancel_tool_call"):
        with pytest.raises(NotFound, match="CALL_NOT_FOUND"):
            await workbench.call(op, call_id="other")
    with pytest.raises(Conflict, match="CALL_ENDED"):
        await workbench.call("cancel_tool_call", call_id=done.call_id)


async def test_an_agent_sees_and_cancels_only_its_calls(workbench: Workbench, hanging: Hanging, admit: Admit) -> None:
    ada, bob = [(await admit(name, tools=["hub"])).caller for name in ("ada", "bob")]
    waiting = begin(workbench, "hub__wait", scope=as_agent(ada))
    await hanging.begun.wait()
    [call] = (await workbench.dispatch(ada, "list_tool_calls", {"state": "open"}))["calls"]
    assert (call["agent_id"], call["state"]) == ("ada", "running")
    assert (await workbench.dispatch(bob, "list_tool_calls", {}))["calls"] == []
    with pytest.raises(NotFound):
        await workbench.dispatch(bob, "cancel_tool_call", {"call_id": call["call_id"]})
    ended = await workbench.dispatch(ada, "cancel_tool_call", {"call_id": call["call_id"]})
    assert (ended["state"], ended["error_code"]) == ("cancelled", "TOOL_CANCELLED")
    assert hanging.cancelled.is_set()
    assert await ended_with(waiting) == ["TOOL_CANCELLED"]


async def test_cancelling_a_call_leaves_others_and_what_comes_after(workbench: Workbench, hanging: Hanging) -> None:

    async def twice() -> list[str | None]:
        first = await asyncio.gather(begin(workbench, "hub__wait"), return_exceptions=True)
        await asyncio.sleep(0)
        second = await begin(workbench, "list_tasks")
        return [getattr(first[0], "code", None), second.tool.name]

    both = [asyncio.create_task(twice()) for _ in range(2)]
    while len(await rows(workbench)) < 2:
        await asyncio.sleep(0)
    first, second = [row["id"] for row in await rows(workbench)]
    await workbench.call("cancel_tool_call", call_id=first)
    assert (await rows(workbench))[1]["state"] == "running"
    await workbench.call("cancel_tool_call", call_id=second)
    assert [await one for one in both] == [["TOOL_CANCELLED", "list_tasks"]] * 2


async def test_cancelling_a_call_that_waits_withdraws_its_question(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    asking = begin(workbench, "hub__post", {"x": 1})
    approval = await conftest.question(workbench)
    ended = await workbench.call("cancel_tool_call", call_id=approval["payload"]["call_id"])
    assert (ended["state"], ended["started_at"]) == ("cancelled", None)
    assert (await workbench.call("get_approval", approval_id=approval["id"]))["status"] == "failed"
    await asyncio.gather(asking, return_exceptions=True)
    assert [kind for kind, _ in await events(workbench, "tool.*")] == ["tool.requested", "tool.abandoned"]


async def test_cancelling_the_calling_coroutine_cancels_the_call(workbench: Workbench, hanging: Hanging) -> None:
    waiting = begin(workbench, "hub__wait")
    await hanging.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [(row["state"], row["error_code"]) for row in await rows(workbench)] == [("cancelled", "TOOL_CANCELLED")]


@pytest.mark.parametrize("runner", ["999999999:1.0", "1:12345.0", "nonsense", ""])
async def test_calls_of_a_dead_program_are_ended(
    workbench: Workbench, shelf: Shelf, hanging: Hanging, runner: str
) -> None:
    shelf.put("hub__post")
    open_calls = [begin(workbench, "hub__wait"), begin(workbench, "hub__post")]
    approval = await conftest.question(workbench)
    await hanging.begun.wait()
    await call_log.interrupt_lost(workbench._ctx)
    assert [row["ended_at"] for row in await rows(workbench)] == [None, None]
    await workbench.store.write(lambda tx: tx.run(MOVE, runner=runner))
    with pytest.raises(Conflict, match="ALREADY_DECIDED"):
        await workbench.call("approve", approval_id=approval["id"], choices={"remember": "always"})
    found = {(row["state"], row["error_code"]) for row in await rows(workbench)}
    assert found == {("interrupted", "TOOL_INTERRUPTED")}
    for call in open_calls:
        call.cancel()
    await asyncio.wait(open_calls)
    assert {row["state"] for row in await rows(workbench)} == {"interrupted"}


async def test_calls_are_interrupted_when_the_servers_stop(workbench: Workbench, hanging: Hanging) -> None:
    waiting = begin(workbench, "hub__wait")
    await hanging.begun.wait()
    workbench.interrupt_calls()
    assert await ended_with(waiting) == ["TOOL_INTERRUPTED"]
    assert [row["state"] for row in await rows(workbench)] == ["interrupted"]


async def test_events_of_a_call_are_visible_only_to_its_caller(
    workbench: Workbench, shelf: Shelf, admit: Admit
) -> None:
    ada, bob = (await admit("ada", tools=["hub"])).caller, (await admit("bob")).caller
    shelf.put("hub__look", hints=READING)
    await begin(workbench, "hub__look", scope=as_agent(ada))
    for caller, expected in ((ada, 2), (bob, 0)):
        page = await workbench.dispatch(caller, "list_events", {"kinds": ["tool.*"]})
        assert len(page["events"]) == expected
    [(_, started), _] = await events(workbench, "tool.*")
    assert (started["agent"], started["source"], started["server"]) == ("ada", "mcp", "hub")
    assert started["tool_input"] == "{}"


async def test_a_call_keeps_its_last_reported_progress(workbench: Workbench, shelf: Shelf) -> None:
    reported, told = asyncio.Event(), []

    async def works(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        await call.surroundings.progress(1, 4, "first")
        await call.surroundings.progress(float("nan"), None, "no number")
        reported.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    async def follow(progress: float, total: float | None, message: str | None) -> None:
        told.append((total, message))

    shelf.put("hub__work", works, hints=READING)
    waiting = asyncio.create_task(call_tool(workbench._ctx, CHAT, "hub__work", {}, Surroundings(follow)))
    await reported.wait()
    while (call := (await workbench.call("list_tool_calls", state="running"))["calls"][0])["progress"] is None:
        await asyncio.sleep(0)
    assert (call["progress"], call["progress_total"], call["progress_message"]) == (1, 4, "first")
    assert told == [(4, "first"), (None, "no number")]
    await workbench.call("cancel_tool_call", call_id=call["call_id"])
    await asyncio.gather(waiting, return_exceptions=True)
    ended = await workbench.call("get_tool_call", call_id=call["call_id"])
    assert (ended["state"], ended["progress"], ended["progress_message"]) == ("cancelled", 1, "first")


async def test_a_call_keeps_its_last_report_and_what_its_model_has_used(workbench: Workbench, shelf: Shelf) -> None:
    async def works(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        for done in range(1, 101):
            await call.surroundings.progress(done, 100, None)
        return ToolOutcome([], {}, usage=AnswerUsage(120, 7, 1, Decimal("0.0025")))

    shelf.put("hub__work", works, hints=READING)
    shelf.put("hub__look", hints=READING)
    done, other = await begin(workbench, "hub__work"), await begin(workbench, "hub__look")
    ended = await workbench.call("get_tool_call", call_id=done.call_id)
    assert (ended["progress"], ended["progress_total"], ended["progress_message"]) == (100, 100, None)
    assert (ended["input_tokens"], ended["output_tokens"], ended["cost_usd"]) == (120, 7, 0.0025)
    plain = await workbench.call("get_tool_call", call_id=other.call_id)
    assert {plain[name] for name in ("progress", "progress_total", "input_tokens", "cost_usd")} == {None}


# Over HTTP


@pytest.fixture
async def agent(served: Served, shelf: Shelf, admit: Admit) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client of an agent that was granted the tools of the server `hub`."""
    shelf.put("hub__post")
    headers = {"Authorization": f"Bearer {(await admit('ada', tools=['hub'])).token}"}
    async with httpx2.AsyncClient(base_url=served.info.url, headers=headers, trust_env=False, verify=False) as made:
        yield made


async def test_the_catalogue_and_calls_have_endpoints(served: Served, shelf: Shelf, agent: httpx2.AsyncClient) -> None:
    answer = (await agent.get("/api/tools")).json()
    assert list(answer) == ["tools"]
    tools = {tool["name"]: tool for tool in answer["tools"]}
    assert (tools["hub__post"]["source"], tools["whoami"]["source"]) == ("mcp", "local")
    assert {"name": "name", "type": "string", "required": True} in tools["get_tool"]["parameters"]
    assert {"name": "source", "type": "string, null", "required": False} in tools["list_tools"]["parameters"]
    enveloped = (await agent.post("/api/ops/list_tools", json={})).json()
    assert enveloped["data"] == answer
    assert (await agent.get("/api/tools/hub__post")).json()["data"]["parameters"] == {"type": "object"}
    assert (await agent.get("/api/tools/hub__none")).status_code == 404
    await served.workbench.call("set_tool_permission", name="hub__post", permission="always")
    made = (await agent.post("/api/tools/hub__post/call", json={"x": [1]})).json()["data"]
    assert made["result"] == {"x": [1]}
    [call] = (await agent.get("/tool-calls?state=completed")).json()
    assert (await agent.get(f"/api/tool-calls/{call['call_id']}")).json()["data"]["arguments"] == {"x": [1]}
    assert (await agent.get("/api/tool-permissions")).status_code == 403


@pytest.mark.parametrize("runs", [False, True])
async def test_a_client_that_disconnects_ends_its_call(
    served: Served, shelf: Shelf, agent: httpx2.AsyncClient, runs: bool
) -> None:
    hanging = Hanging()
    shelf.put("hub__wait", hanging)
    calling = asyncio.create_task(agent.post("/api/tools/hub__wait/call", json={}))
    approval = await conftest.question(served.workbench)
    async with served.workbench.feed.subscribe("tool.completed", "tool.abandoned") as ends:
        if runs:
            await served.workbench.call("approve", approval_id=approval["id"])
            await hanging.begun.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        ended = await anext(ends)
    assert ended.data["state"] == "cancelled"
    assert hanging.cancelled.is_set() == runs
    assert [row["state"] for row in await rows(served.workbench)] == ["cancelled"]
    status = (await served.workbench.call("get_approval", approval_id=approval["id"]))["status"]
    assert status == ("approved" if runs else "failed")
