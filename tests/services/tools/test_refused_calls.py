"""Calls refused before they wait or run: their records have the caller, the arguments and the code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.tools.conftest import CHAT, READING, Shelf, as_agent, begin, ended_with, events, question, rows
from workbench import __version__
from workbench.app import Workbench
from workbench.ops import Caller, running_calls
from workbench.services.tools import calls
from workbench.services.tools.tool import Offerer, OffererKind, ToolScope

pytestmark = pytest.mark.anyio

MARKED = {
    "type": "object",
    "properties": {"key": {"type": "string", "format": "password"}, "n": {"type": "integer"}},
}


async def refusal_code(workbench: Workbench, scope: ToolScope, name: str, **arguments: Any) -> str:
    return (await given.refusal(calls.call(workbench._ctx, scope, name, arguments))).code


async def grant_tools(workbench: Workbench, admit: Admit, *tools: str) -> Caller:
    ada = await admit("ada")
    await workbench.call("update_agent", agent_id="ada", changes={"tools": list(tools)})
    return await workbench.identify(ada.token)


async def test_every_refusal_leaves_a_record_with_its_code_its_caller_and_masked_arguments(
    workbench: Workbench, shelf: Shelf, admit: Admit
) -> None:
    shelf.put("hub__sign", parameters=MARKED)
    shelf.put("hub__never", parameters=MARKED)
    shelf.put("hub__down", parameters=MARKED, problem="it is stopped")
    shelf.put("own__sign", parameters=MARKED, server="own")
    await workbench.call("set_tool_permission", name="hub__never", permission="never")
    ada = as_agent(await grant_tools(workbench, admit, "hub"))
    wanted = [
        ("hub__sign", {"n": "one"}, "INVALID_ARGUMENTS", "mcp"),
        ("hub__never", {}, "TOOL_FORBIDDEN", "mcp"),
        ("hub__down", {}, "TOOL_UNAVAILABLE", "mcp"),
        ("own__sign", {}, "UNKNOWN_TOOL", "mcp"),
        ("approve", {}, "UNKNOWN_TOOL", "operation"),
        ("hub__sing", {}, "UNKNOWN_TOOL", "unknown"),
    ]
    for name, arguments, code, _ in wanted:
        assert await refusal_code(workbench, ada, name, key="open-sesame", **arguments) == code
    kept = await rows(workbench)
    assert [(row["tool_name"], row["error_code"], row["kind"]) for row in kept] == [
        (name, code, kind) for name, _, code, kind in wanted
    ]
    assert {(row["caller"], row["state"], row["started_at"], row["ended_at"] is None) for row in kept} == {
        ("ada", "failed", None, False)
    }
    own = (await workbench.dispatch(ada.caller, "list_tool_calls", {}))["calls"]
    assert [call["tool_name"] for call in own] == [name for name, *_ in reversed(wanted)]
    announced = await events(workbench, "tool.*")
    assert [data["error_code"] for kind, data in announced if kind == "tool.refused"] == [
        code for _, _, code, _ in wanted
    ]
    shown = [json.loads(row["arguments"])["key"] for row in kept]
    assert shown == ["••••••"] * 4 + ["open-sesame"] * 2  # nothing says that these are secret
    assert "sesame" not in json.dumps([data for _, data in announced[:5]], ensure_ascii=False)


@pytest.mark.parametrize("how", ["its operation", "the door of MCP"])
async def test_an_agent_without_tools_that_calls_one_is_on_record(
    workbench: Workbench, shelf: Shelf, admit: Admit, how: str
) -> None:
    shelf.put("hub__look")
    ada = (await admit("ada")).caller
    if how == "its operation":
        await given.refusal(workbench.dispatch(ada, "call_tool", {"name": "hub__look", "arguments": {"n": 1}}))
    else:
        await given.refusal(workbench.call_tool(ada, "hub__look", {"n": 1}, workbench._ctx.surroundings))
    [row] = await rows(workbench)
    assert (row["tool_name"], row["caller"], json.loads(row["arguments"])) == ("hub__look", "ada", {"n": 1})
    assert row["error_code"] == "FORBIDDEN"


async def test_a_flood_of_refused_calls_leaves_few_records_which_say_how_many_there_were(
    workbench: Workbench, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_calls, "REFUSALS", 3)
    shelf.put("hub__look")
    ctx = workbench._ctx
    for _ in range(10):
        await refusal_code(workbench, CHAT, "nosuch", text="x" * 30_000)
    first = await rows(workbench)
    assert len(first) == 3
    assert max(len(row["arguments"]) for row in first) < 21_000
    assert await refusal_code(workbench, ToolScope(Caller(CHAT.caller.level, "another")), "nosuch") == "UNKNOWN_TOOL"
    assert len(await rows(workbench)) == 4
    clock = ctx.local.running_calls
    later = ctx.store.now() + 3_600 * 1_000_000
    assert clock.note_refusal(CHAT.caller.name, later) == 7
    assert clock.note_refusal(CHAT.caller.name, later) == 0


async def test_a_call_that_is_not_refused_has_one_record(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__look")
    assert await ended_with(begin(workbench, "hub__look", {}, ToolScope(Caller(CHAT.caller.level, "operator")))) == [
        None
    ]
    assert [row["state"] for row in await rows(workbench)] == ["completed"]


async def test_every_call_records_the_version_of_the_tool_that_ran(workbench: Workbench, shelf: Shelf) -> None:
    said = shelf.put("hub__look", hints=READING)
    shelf.put("hub__ask", version="1", offered_by=Offerer(OffererKind.NOTEBOOK))
    await calls.call(workbench._ctx, CHAT, "hub__look", {})
    waiting = begin(workbench, "hub__ask")
    approval = await question(workbench)
    shelf.change("hub__ask", version="2")  # as a function that was defined anew while the operator was asked
    await workbench.call("approve", approval_id=approval["id"])
    await ended_with(waiting)
    await workbench.call("call_tool", name="list_tasks")
    assert await refusal_code(workbench, CHAT, "nosuch") == "UNKNOWN_TOOL"
    versions = [(row["tool_name"], row["version"]) for row in await rows(workbench)]
    assert versions == [
        *[("hub__look", said.fingerprint), ("hub__ask", "2"), ("list_tasks", __version__), ("nosuch", None)]
    ]
