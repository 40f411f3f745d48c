"""Permissions for some calls of a tool: those of a conversation, of a task, or with such arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.tools.conftest import CHAT, Shelf, as_agent, begin, question, questions
from workbench.app import Workbench
from workbench.services.tools.tool import ToolScope

pytestmark = pytest.mark.anyio


async def allow(workbench: Workbench, scope: ToolScope, arguments: dict[str, Any], **choices: Any) -> dict[str, Any]:
    """Allow the call with these arguments, and others by some choices; the outcome."""
    call = begin(workbench, "hub__post", arguments, scope)
    decision = await workbench.call("approve", approval_id=(await question(workbench))["id"], choices=choices)
    await call
    return dict(decision["outcome"])


async def asks(workbench: Workbench, arguments: dict[str, Any], scope: ToolScope = CHAT) -> bool:
    """Whether the operator is asked about such a call."""
    call = begin(workbench, "hub__post", arguments, scope)

    async def pending() -> list[Any]:
        return list((await workbench.call("list_approvals", kind="tool_call"))["approvals"])

    async def answered() -> bool:
        return call.done() or bool(await pending())

    await given.until(answered)
    if call.done():
        return False
    await workbench.call("reject", approval_id=(await pending())[0]["id"])
    await given.refuses("TOOL_DENIED", call)
    return True


async def test_what_is_allowed_in_a_conversation_is_asked_about_in_others_and_ends_with_it(
    workbench: Workbench, shelf: Shelf
) -> None:
    shelf.put("hub__post")
    conversation = (await workbench.call("create_conversation", model="test:script"))["id"]
    mine = replace(CHAT, conversation_id=conversation)
    assert (await allow(workbench, mine, {"n": 1}, remember="conversation"))["remember"] == "conversation"
    assert [await asks(workbench, {"n": 2}, scope) for scope in (mine, CHAT)] == [False, True]
    [permission] = (await workbench.call("list_tool_permissions"))["permissions"]
    assert (permission["permission"], permission["conversation_id"]) == ("always", conversation)
    shelf.change("hub__post", description="Something else")
    assert await asks(workbench, {}, mine), "a tool that has changed is another one"
    await workbench.call("delete_conversation", conversation_id=conversation)
    assert (await workbench.call("list_tool_permissions"))["permissions"] == []


async def test_what_is_allowed_for_a_task_is_asked_about_for_the_next(
    workbench: Workbench, shelf: Shelf, admit: Admit
) -> None:
    shelf.put("hub__post")
    ada = await admit("ada", tools=["hub"])
    scope = as_agent(ada.caller)
    call = begin(workbench, "hub__post", scope=scope)
    approval = await question(workbench)
    choices = {"remember": "task"}
    await given.refuses("INVALID_ARGUMENTS", workbench.call("approve", approval_id=approval["id"], choices=choices))
    await workbench.call("reject", approval_id=approval["id"])
    await given.refuses("TOOL_DENIED", call)
    earlier, later = await given.task(workbench), await given.task(workbench)
    await given.claim(workbench, ada, later)
    await allow(workbench, scope, {}, remember="task")
    assert not await asks(workbench, {"n": 2}, scope)
    await given.claim(workbench, ada, earlier)
    assert await asks(workbench, {}, scope), "it works on the one that it has begun last"
    await given.done_by(workbench, ada, "complete_task", earlier)
    assert not await asks(workbench, {}, scope)
    await given.done_by(workbench, ada, "complete_task", later)
    assert await asks(workbench, {}, scope)


async def test_calls_with_such_arguments_are_allowed_also_those_that_wait_and_no_others(
    workbench: Workbench, shelf: Shelf
) -> None:
    shelf.put("hub__post")
    within = [begin(workbench, "hub__post", {"path": f"notes/{name}", "text": "x"}) for name in "ab"]
    outside = begin(workbench, "hub__post", {"path": "notes/../keys", "text": "x"})
    asked = {approval["payload"]["arguments"]["path"]: approval["id"] for approval in await questions(workbench, 3)}
    for wrong in ({"path": "notes/*"}, {"path": "other/*", "text": "*"}, ["notes/*"], {"path": 3, "text": "*"}):
        work = workbench.call("approve", approval_id=asked["notes/a"], choices={"arguments": wrong})
        await given.refuses("INVALID_ARGUMENTS", work)
    patterns = {"path": "notes/*", "text": "*"}
    await workbench.call("approve", approval_id=asked["notes/a"], choices={"arguments": patterns})
    for call in within:
        await call
    [left] = (await workbench.call("list_approvals", kind="tool_call"))["approvals"]
    assert left["id"] == asked["notes/../keys"]
    await workbench.call("reject", approval_id=left["id"])
    await given.refuses("TOOL_DENIED", outside)
    assert not await asks(workbench, {"path": "notes/c", "text": "y"})
    assert await asks(workbench, {"path": "notes/c", "text": "y", "force": True})
    await workbench.call("set_tool_permission", name="hub__post", permission="ask")
    assert await asks(workbench, {"path": "notes/c", "text": "y"}), "a later decision about the tool takes it back"
