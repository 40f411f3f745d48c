"""Tools of the catalogue over MCP: which are listed, and what their calls return."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult

from tests.conftest import Admit, Admitted, Served
from tests.shells.mcp.catalogue import Endless, Tools, returning, text
from tests.shells.mcp.sessions import data, session, stdio_session
from tests.shells.mcp.watching import notified
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.ops import Ctx
from workbench.services.tools.tool import ToolInvocation, ToolOutcome

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESOURCE = {"type": "resource", "resource": {"uri": "notes://1", "mimeType": "text/plain", "text": "A note."}}
LINK = {"type": "resource_link", "uri": "notes://2", "name": "another note"}
NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
COUNT: dict[str, Any] = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def offer(tools: Tools) -> None:
    """A function of a notebook, and tools of two servers."""
    tools.offer("add", returning(text("3")))
    tools.offer("notes__search", returning(text("none")), server="notes")
    tools.offer("mail__send", returning(text("sent")), server="mail", reads=False)
    tools.offer("mail__old", returning(text("gone")), server="mail", problem="the server has stopped")


async def tool_names(served: Served, token: str, era: str = "auto") -> set[str]:
    """The tools that are listed and are no operations."""
    async with session(served, token, era) as client:
        return {tool.name for tool in (await client.list_tools()).tools} - set(served.workbench.catalogue)


GRANTS: dict[str, tuple[list[str] | None, set[str]]] = {
    "none": (None, set()),
    "all": (["*"], {"add", "notes__search", "mail__send"}),
    "sources": (["notebook", "mail"], {"add", "mail__send"}),
    "one": (["notes__search"], {"notes__search"}),
}


async def test_an_agent_is_offered_the_tools_that_it_was_granted_and_that_work(
    served: Served, admit: Admit, tools: Tools, era: str
) -> None:
    offer(tools)
    for name, (granted, expected) in GRANTS.items():
        assert await tool_names(served, (await admit(f"of-{name}", tools=granted)).token, era) == expected, name
    assert await tool_names(served, served.workbench.operator_token) == {"add", "notes__search", "mail__send"}
    reader = await admit("reader", tools=["*"], tool="read")
    assert await tool_names(served, reader.token) == set()
    async with session(served, reader.token) as client:
        with pytest.raises(MCPError, match="no operation 'add'"):
            await client.call_tool("add", {})
    one = await admit("other", tools=["notes"])
    async with session(served, one.token) as client:
        with pytest.raises(MCPError) as failure:
            await client.call_tool("mail__send", {})
    assert failure.value.data["code"] == "UNKNOWN_TOOL"


async def test_a_tool_has_its_schema_and_hints_and_its_results_arrive_unchanged(
    served: Served, ada: Admitted, tools: Tools, era: str
) -> None:
    blocks = [text("Three things:"), IMAGE, RESOURCE, LINK]
    tools.offer("show", returning(*blocks))
    tools.offer("list", returning(structured=[1, 2]), result=NUMBERS)
    tools.offer("complain", returning(text("No such note."), is_error=True))
    tools.offer("count", returning(structured={"count": 1}), result=COUNT, parameters={"properties": {"of": {}}})
    tools.offer("numbers", returning(structured=[1, 2]), result=NUMBERS, reads=False)
    async with session(served, ada.token, era) as client:
        found = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert (await client.call_tool("count", {})).structured_content == {"count": 1}
        result = await client.call_tool("list", {})
        shown, complaint = await client.call_tool("show", {}), await client.call_tool("complain", {})
    count, numbers = found["count"], found["numbers"]
    assert (count.description, count.output_schema) == ("Does count.", COUNT)
    assert count.input_schema == {"type": "object", "properties": {"of": {}}}
    assert count.annotations is not None
    assert numbers.annotations is not None
    assert (count.annotations.read_only_hint, numbers.annotations.read_only_hint) == (True, False)
    assert numbers.output_schema == (None if era == "legacy" else NUMBERS)
    [block] = result.content
    assert block.type == "text"
    assert json.loads(block.text) == [1, 2]
    assert result.structured_content == (None if era == "legacy" else [1, 2])
    sent = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in shown.content]
    assert (sent, shown.is_error) == (blocks, False)
    assert complaint.is_error
    assert complaint.structured_content is None


async def fail(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    if call.arguments.get("coded"):
        raise Conflict("NOTE_LOCKED", "Another person edits the note.")
    raise RuntimeError("no such note")


def code_of(result: CallToolResult) -> str:
    assert result.is_error
    return str(data(result)["error"]["code"])


async def test_a_call_that_fails_says_why(served: Served, admit: Admit, tools: Tools, era: str) -> None:
    tools.offer("fail", fail, parameters={"type": "object", "properties": {"coded": {"type": "boolean"}}})
    tools.offer("garbage", returning({"type": "hologram"}))
    ada = await admit("ada", tools=["fail", "garbage"])
    async with session(served, ada.token, era) as client:
        assert code_of(await client.call_tool("fail", {"coded": True})) == "NOTE_LOCKED"
        assert code_of(await client.call_tool("fail", {})) == "TOOL_FAILED"
        assert code_of(await client.call_tool("fail", {"coded": 1})) == "INVALID_ARGUMENTS"
        [part] = (await client.call_tool("garbage", {})).content
        assert "'hologram', is of a kind that is not known" in part.text
        with pytest.raises(MCPError, match="Did you mean fail") as failure:
            await client.call_tool("fails", {})
    assert (failure.value.code, failure.value.data["code"]) == (INVALID_PARAMS, "UNKNOWN_TOOL")


async def test_an_agent_is_notified_of_other_tools(served: Served, admit: Admit, tools: Tools, era: str) -> None:
    offer(tools)
    ada, bob = await admit("ada", tools=["notes"]), await admit("bob")
    call = served.workbench.call
    async with notified(served, ada.token, era) as of_ada, notified(served, bob.token, era) as of_bob:
        await served.workbench.store.write(lambda tx: tx.emit("tools.changed", "tools"))
        assert await of_ada() == "tools"
        await call("update_agent", agent_id="ada", changes={"tools": ["mail"]})
        assert await of_ada() == "tools"
        assert await tool_names(served, ada.token, era) == {"mail__send"}
        await call("update_agent", agent_id="bob", changes={"tools": ["*"]})
        assert await of_bob() == "tools"  # and of nothing before


async def test_a_tool_that_the_operator_forbids_is_no_longer_offered(
    served: Served, ada: Admitted, tools: Tools, era: str
) -> None:
    offer(tools)
    decide = served.workbench.call
    async with notified(served, ada.token, era) as of_ada:
        await decide("set_tool_permission", name="mail__send", permission="never")
        assert await of_ada() == "tools"
        assert await tool_names(served, ada.token, era) == {"add", "notes__search"}
        assert "mail__send" in await tool_names(served, served.workbench.operator_token, era)
        await decide("set_tool_permission", name="mail__send", permission=None)
        assert await of_ada() == "tools"
    assert "mail__send" in await tool_names(served, ada.token, era)
    await decide("set_tool_permission", name="mail__send", permission="never")
    async with session(served, ada.token, era) as client:
        assert code_of(await client.call_tool("mail__send", {})) == "TOOL_FORBIDDEN"


@pytest.mark.long
async def test_an_agent_over_stdio_gets_the_tools_and_can_cancel_a_call(
    served: Served, admit: Admit, tools: Tools, era: str
) -> None:
    endless = Endless()
    offer(tools)
    tools.offer("endless", endless)
    ada = await admit("ada", tools=["notebook"])
    changed = asyncio.Event()

    async def note(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            changed.set()

    async with stdio_session(served.workbench.settings.project, ada.token, era, message_handler=note) as client:
        assert "add" in {tool.name for tool in (await client.list_tools()).tools}
        [block] = (await client.call_tool("add", {})).content
        assert block.type == "text"
        assert block.text == "3"
        tools.offer("subtract", returning(text("1")))
        if era == "legacy":
            await served.workbench.store.write(lambda tx: tx.emit("tools.changed", "tools"))
            await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await served.workbench.store.write(lambda tx: tx.emit("tools.changed", "tools"))
                await anext(aiter(changes))
        names = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
        assert {"add", "subtract"} <= names
        call = asyncio.create_task(client.call_tool("endless", {}))
        await endless.began.wait()
        call.cancel()
        await endless.was_cancelled.wait()


async def states(workbench: Workbench) -> list[str]:
    """The states of all calls, in the order of their beginnings."""
    from workbench.store.queries import Query

    query = Query("states", "SELECT state FROM tool_calls ORDER BY id")
    return [row["state"] for row in await workbench.store.read(lambda tx: tx.all(query))]


async def test_cancelling_the_call_or_stopping_the_servers_cancels_the_tool(
    served: Served, ada: Admitted, tools: Tools, era: str
) -> None:
    tools.offer("add", returning(text("3")))
    async with session(served, ada.token, era) as client:
        for stops in (False, True):
            tools.offer("endless", endless := Endless())
            call = asyncio.create_task(client.call_tool("endless", {}))
            await endless.began.wait()
            if stops:
                await served.servers.stop()
                assert code_of(await call) == "NO_SERVER"
            else:
                call.cancel()
            await endless.was_cancelled.wait()
            if not stops:
                assert not (await client.call_tool("add", {})).is_error
    assert await states(served.workbench) == ["cancelled", "completed", "interrupted"]


async def test_a_call_that_needs_permission_waits_for_the_operator(
    served: Served, admit: Admit, tools: Tools, era: str
) -> None:
    tools.offer("mail__send", returning(text("sent")), server="mail", reads=False)
    ada = await admit("ada", tools=["mail"])
    call = served.workbench.call
    heard: asyncio.Queue[str | None] = asyncio.Queue()

    async def note(done: float, total: float | None, message: str | None) -> None:
        heard.put_nowait(message)

    async with session(served, ada.token, era) as client:
        for decision in ("approve", "reject"):
            async with served.workbench.feed.subscribe("approval.requested") as asked:
                sending = asyncio.create_task(client.call_tool("mail__send", {}, progress_callback=note))
                approval_id = int((await anext(asked)).subject.partition(":")[2])
            while await heard.get() != f"Waiting for the operator to decide approval {approval_id}.":
                pass
            await call(decision, approval_id=approval_id)
            result = await sending
            assert (code_of(result) if result.is_error else None) == {"reject": "TOOL_DENIED"}.get(decision)
