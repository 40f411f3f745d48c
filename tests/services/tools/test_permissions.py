"""Tools that need a question, and the effect of the operator's decisions on waiting and later calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Admit
from tests.services.tools.conftest import (
    CHAT,
    READING,
    Shelf,
    as_agent,
    begin,
    ended_with,
    events,
    question,
    questions,
    rows,
    tool_of,
)
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.model import Level
from workbench.ops import OPERATOR
from workbench.services.definitions import changes
from workbench.services.tools import catalogue
from workbench.services.tools.permissions import of as permissions_of
from workbench.services.tools.tool import Hints, Offerer, OffererKind, Permission, ToolScope
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def permissions(workbench: Workbench) -> dict[str, Any]:
    """The decisions, by tool."""
    found = (await workbench.call("list_tool_permissions"))["permissions"]
    return {one["tool"]: one for one in found}


async def test_once_allows_one_call_and_always_allows_waiting_and_later_calls(
    workbench: Workbench, shelf: Shelf
) -> None:
    shelf.put("hub__post")
    first = begin(workbench, "hub__post")
    await workbench.call("approve", approval_id=(await question(workbench))["id"])
    await first
    waiting = [begin(workbench, "hub__post", {"n": n}) for n in range(3)]
    asked = await questions(workbench, 3)
    decision = await workbench.call("approve", approval_id=asked[1]["id"], choices={"remember": "always"})
    assert decision["outcome"] == {"tool": "hub__post", "state": "allowed", "remember": "always"}
    assert [(await call).outcome.value for call in waiting] == [{"n": n} for n in range(3)]
    await begin(workbench, "hub__post")
    assert (await permissions(workbench))["hub__post"]["permission"] == "always"
    assert (await workbench.call("list_approvals", kind="tool_call"))["approvals"] == []


async def test_a_tool_that_may_never_be_called_is_refused_while_it_waits(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    shelf.put("hub__look", hints=READING)
    waiting = begin(workbench, "hub__post")
    await question(workbench)
    for name in ("hub__post", "create_task"):
        await workbench.call("set_tool_permission", name=name, permission="never")
    assert await ended_with(waiting) == ["TOOL_DENIED"]
    assert await ended_with(begin(workbench, "hub__post")) == ["TOOL_FORBIDDEN"]
    await workbench.call("call_tool", name="hub__post")  # the operator is not asked, and is offered it
    granted = as_agent(replace(OPERATOR, level=Level.PLANNER, tools=frozenset({"*"})))
    names = {scope: {tool.name for tool in await catalogue.offered(workbench._ctx, scope)} for scope in (CHAT, granted)}
    assert names[CHAT].isdisjoint({"hub__post", "create_task"})
    assert "hub__look" in names[CHAT]
    assert "hub__post" not in names[granted]
    assert "create_task" in names[granted]  # an agent's grant says which operations it may call
    listed = {tool["name"] for tool in (await workbench.call("list_tools"))["tools"]}
    assert {"hub__post", "create_task"} <= listed


async def test_ask_is_for_tools_that_read_too_and_null_undoes_a_decision(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__look", hints=READING)
    assert (await begin(workbench, "hub__look", {"x": 1})).outcome.value == {"x": 1}
    await workbench.call("set_tool_permission", name="hub__look", permission="ask")
    asking = begin(workbench, "hub__look")
    await workbench.call("approve", approval_id=(await question(workbench))["id"])
    await asking
    await workbench.call("set_tool_permission", name="hub__look", permission=None)
    await begin(workbench, "hub__look")
    assert await permissions(workbench) == {}
    kinds = [data["permission"] for _, data in await events(workbench, "tool.permitted")]
    assert kinds == ["ask", None]


async def test_a_tool_that_has_changed_is_asked_for_with_its_changes(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post", parameters={"type": "object", "properties": {"to": {"type": "string"}}})
    await workbench.call("set_tool_permission", name="hub__post", permission="always")
    await begin(workbench, "hub__post")
    secret = {"to": {"type": "string"}, "key": {"type": "string"}}
    shelf.change("hub__post", description="Send my files", parameters={"type": "object", "properties": secret})
    expected = [
        {"path": "description", "before": "Do hub__post", "after": "Send my files"},
        {"path": "parameters.properties.key", "before": None, "after": {"type": "string"}},
    ]
    assert (await permissions(workbench))["hub__post"]["changes"] == expected
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    assert approval["payload"]["changes"] == expected
    await workbench.call("approve", approval_id=approval["id"], choices={"remember": "always"})
    await asking
    await begin(workbench, "hub__post")
    assert (await permissions(workbench))["hub__post"]["changes"] == []


async def test_always_allows_the_tool_of_one_offerer_only(workbench: Workbench, shelf: Shelf) -> None:
    ones, others = (Offerer(OffererKind.DEFINITION, each, configuration="1") for each in ("one", "two"))
    shelf.put("files__write", offered_by=ones)
    first = begin(workbench, "files__write")
    approval = await question(workbench)
    shelf.change("files__write", offered_by=others)  # offers the same, in another directory
    second = begin(workbench, "files__write")
    await questions(workbench, 2)
    shelf.change("files__write", offered_by=ones)
    await workbench.call("approve", approval_id=approval["id"], choices={"remember": "always"})
    await first
    await begin(workbench, "files__write")
    assert [one["payload"]["offered_by"] for one in await questions(workbench, 1)] == ["definition:two"]
    shelf.change("files__write", offered_by=others)
    third = begin(workbench, "files__write")
    for one in await questions(workbench, 2):
        await workbench.call("reject", approval_id=one["id"])
    assert await ended_with(second, third) == ["TOOL_DENIED"] * 2
    assert [row["offered_by"] for row in await rows(workbench)] == [
        *("definition:one", "definition:two", "definition:one", "definition:two")
    ]
    decided = (await workbench.call("list_tool_permissions"))["permissions"]
    assert [(one["offered_by"], one["permission"]) for one in decided] == [("definition:one", "always")]


@pytest.mark.parametrize("changes", [{"offered_by": Offerer(OffererKind.PROJECT, configuration="2")}, {"version": "2"}])
async def test_another_program_or_version_under_the_name_of_a_server_is_asked_for(
    workbench: Workbench, shelf: Shelf, changes: dict[str, Any]
) -> None:
    shelf.put("hub__post", offered_by=Offerer(OffererKind.PROJECT, configuration="1"), version="1")
    await workbench.call("set_tool_permission", name="hub__post", permission="always")
    await begin(workbench, "hub__post")
    shelf.change("hub__post", **changes)
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    assert [(change["before"], change["after"]) for change in approval["payload"]["changes"]] == [("1", "2")]
    await workbench.call("reject", approval_id=approval["id"])
    assert await ended_with(asking) == ["TOOL_DENIED"]


async def test_never_forbids_every_tool_of_a_name_until_one_of_them_is_allowed(
    workbench: Workbench, shelf: Shelf
) -> None:
    ones, others = (Offerer(OffererKind.DEFINITION, each, configuration="1") for each in ("one", "two"))
    shelf.put("files__write", offered_by=ones)
    await workbench.call("set_tool_permission", name="files__write", permission="always")
    await workbench.call("set_tool_permission", name="files__write", permission="never")
    for offerer in (ones, others):
        shelf.change("files__write", offered_by=offerer)
        assert await ended_with(begin(workbench, "files__write")) == ["TOOL_FORBIDDEN"]
    await workbench.call("set_tool_permission", name="files__write", permission="always")
    await begin(workbench, "files__write")
    shelf.change("files__write", offered_by=ones)
    assert await ended_with(begin(workbench, "files__write")) == ["TOOL_FORBIDDEN"]


async def test_a_tool_that_changes_while_it_is_asked_for_is_not_run(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    shelf.change("hub__post", description="Something else")
    await workbench.call("approve", approval_id=approval["id"], choices={"remember": "always"})
    assert await ended_with(asking) == ["TOOL_CHANGED"]
    assert (await rows(workbench))[0]["started_at"] is None
    again = begin(workbench, "hub__post")
    assert (await question(workbench))["payload"]["changes"][0]["after"] == "Something else"
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)


async def test_a_tool_that_is_taken_away_meanwhile_is_not_run(workbench: Workbench, shelf: Shelf, admit: Admit) -> None:
    shelf.put("hub__post")
    shelf.put("hub__send")
    granted = as_agent((await admit("ada", tools=["hub"])).caller)
    asking, other = (begin(workbench, name, scope=granted) for name in ("hub__post", "hub__send"))
    found = await questions(workbench, 2)
    first, second = sorted(found, key=lambda one: str(one["payload"]["tool"]))
    shelf.remove("hub__post")
    await workbench.call("approve", approval_id=first["id"])
    await workbench.call("update_agent", agent_id="ada", changes={"tools": []})
    await workbench.call("approve", approval_id=second["id"])
    assert await ended_with(asking, other) == ["UNKNOWN_TOOL"] * 2
    assert [row["state"] for row in await rows(workbench)] == ["failed", "failed"]


async def test_an_approval_counts_once_and_not_after_the_caller_has_left(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    both = await asyncio.gather(
        *(workbench.call(how, approval_id=approval["id"]) for how in ("approve", "reject")), return_exceptions=True
    )
    await asyncio.gather(asking, return_exceptions=True)  # whichever was first
    assert sorted(getattr(one, "code", "decided") for one in both) == ["ALREADY_DECIDED", "decided"]
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    with pytest.raises(WorkbenchError, match="ALREADY_DECIDED"):
        await workbench.call("approve", approval_id=approval["id"])
    assert (await workbench.call("get_approval", approval_id=approval["id"]))["status"] == "failed"
    assert asking.cancelled()
    assert (await rows(workbench))[-1]["state"] == "cancelled"


async def test_a_call_that_is_approved_and_cancelled_at_once_has_one_end(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    for _ in range(10):
        asking = begin(workbench, "hub__post")
        approval = await question(workbench)
        approving = asyncio.create_task(workbench.call("approve", approval_id=approval["id"]))
        asking.cancel()
        await asyncio.gather(asking, approving, return_exceptions=True)
        row = (await rows(workbench))[-1]
        assert row["ended_at"] is not None
        assert row["state"] in ("cancelled", "completed")
    assert (await workbench.call("list_approvals", kind="tool_call"))["approvals"] == []


async def test_unknown_choices_are_refused(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post")
    asking = begin(workbench, "hub__post")
    approval = await question(workbench)
    for choices in ({"remember": "never"}, {"forever": True}):
        with pytest.raises(BadInput):
            await workbench.call("approve", approval_id=approval["id"], choices=choices)
    await workbench.call("reject", approval_id=approval["id"], reason="not today")
    await asyncio.gather(asking, return_exceptions=True)
    assert "not today" in str(asking.exception())


async def test_a_tool_that_is_not_there_can_be_forbidden_but_not_allowed(workbench: Workbench, shelf: Shelf) -> None:
    with pytest.raises(NotFound):
        await workbench.call("set_tool_permission", name="hub__post", permission="always")
    await workbench.call("set_tool_permission", name="hub__post", permission="never")
    assert (await permissions(workbench))["hub__post"]["problem"] == "there is no such tool now"
    shelf.put("hub__post", hints=READING)
    call = begin(workbench, "hub__post")
    assert await ended_with(call) == ["TOOL_FORBIDDEN"]


HUB = {"command": "hub", "tools": {"post": {"permissionRequired": False}, "look": {"permissionRequired": True}}}


async def define_scope(workbench: Workbench, **settings: Any) -> ToolScope:
    """The model of a conversation with a definition that has an MCP server, `hub`."""
    await workbench.call("agent_create", agentPath="./agents/helper", name="Helper")
    await workbench.call("agent_add_mcp_server", agentTarget="Helper", serverName="hub", config=HUB)
    for name, value in settings.items():
        await workbench.call("agent_set_setting", agentTarget="Helper", key=name, value=value)
    return await scope_of(workbench)


async def scope_of(workbench: Workbench) -> ToolScope:
    """The scope of the same conversation, with the current definition."""
    return replace(CHAT, definition=await changes.read(workbench._ctx, "Helper"))


@pytest.mark.parametrize(
    ("chosen", "unasked"),
    [
        ({}, {"hub__post"}),
        ({"toolPermission": "always"}, set()),
        ({"toolPermission": "never"}, {"hub__post", "hub__look", "hub__other"}),
    ],
)
async def test_a_definition_says_for_which_of_its_tools_the_operator_is_asked(
    workbench: Workbench, chosen: dict[str, str], unasked: set[str]
) -> None:
    scope = await define_scope(workbench, **chosen)
    hints = {"post": Hints(), "look": READING, "other": Hints()}
    own = Offerer(OffererKind.DEFINITION, "helper", configuration="1")
    tools = [tool_of(f"hub__{name}", own_name=name, hints=hint, offered_by=own) for name, hint in hints.items()]
    found = {tool.name: (await permissions_of(workbench._ctx, scope, tool, {})).permission for tool in tools}
    assert {name for name, permission in found.items() if permission is Permission.ALWAYS} == unasked


async def test_a_definition_lets_tools_run_unasked_only_if_trusted(workbench: Workbench, settings: Settings) -> None:
    await define_scope(workbench)
    file = settings.home / "agents" / "helper" / "agent.yaml"
    file.write_text(file.read_text("utf-8").replace("post:", "other:"), "utf-8")
    tool = tool_of("hub__other", own_name="other")
    asking = await permissions_of(workbench._ctx, await scope_of(workbench), tool, {})
    assert asking.permission is Permission.ASK
