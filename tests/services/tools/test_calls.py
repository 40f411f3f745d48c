"""Calls of tools: found, permitted, their arguments checked, recorded, run; no record of them shows a secret."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable
from functools import cache
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.tools.conftest import CHAT, READING, Shelf, begin, ended_with, events, question, rows
from workbench.app import Workbench
from workbench.errors import NotFound, Refused, Unavailable
from workbench.ops import OPERATOR, Ctx
from workbench.rules.tools import arguments as checks
from workbench.services.tools import calls
from workbench.services.tools.tool import ToolInvocation, ToolOutcome, ToolScope

pytestmark = pytest.mark.anyio


def model_calls(workbench: Workbench, name: str, **arguments: Any) -> Awaitable[calls.Finished]:
    return calls.call(workbench._ctx, CHAT, name, arguments)


async def test_a_call_is_recorded_with_its_arguments_and_its_result(workbench: Workbench) -> None:
    done = await workbench.call("call_tool", name="create_project", arguments={"name": "Atlas"})
    what = {"tool_name": "create_project", "source": "local", "server": None, "is_error": False}
    assert {name: done[name] for name in what} == what
    assert done["result"]["name"] == "Atlas"
    [row] = await rows(workbench)
    assert (row["id"], row["caller"]) == (done["call_id"], "operator")
    assert (row["state"], row["error_code"]) == ("completed", None)
    assert json.loads(row["arguments"]) == {"name": "Atlas"}
    assert json.loads(row["result"]) == done["result"]
    [(_, started), (_, completed)] = await events(workbench, "tool.*")
    assert json.loads(started["tool_input"]) == {"name": "Atlas"}
    assert started["call_id"] == completed["call_id"] == done["call_id"]
    assert (completed["is_error"], completed["source"]) == (False, "local")
    assert completed["duration_ms"] >= 0


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [("creat_project", {}, "UNKNOWN_TOOL"), ("create_project", {"nam": 1}, "INVALID_ARGUMENTS")],
)
async def test_a_failed_call_says_why(workbench: Workbench, name: str, arguments: dict[str, Any], code: str) -> None:
    error = await given.refusal(workbench.call("call_tool", name=name, arguments=arguments))
    assert error.code == code
    assert "create_project" in error.message
    assert [row["error_code"] for row in await rows(workbench)] == [code]


async def test_an_agent_calls_tools_that_it_was_granted(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    with pytest.raises(Refused, match="no tools"):
        await workbench.dispatch(ada.caller, "list_tools", {})
    await workbench.call("update_agent", agent_id="ada", changes={"tools": ["notebook", "github"]})
    granted = await workbench.identify(ada.token)
    assert granted.tools == {"notebook", "github"}
    names = {tool["name"] for tool in (await workbench.dispatch(granted, "list_tools", {}))["tools"]}
    assert "claim_task" in names
    assert "approve" not in names
    await workbench.call("update_agent", agent_id="ada", changes={"tools": None})
    with pytest.raises(Refused, match="no tools"):
        await workbench.dispatch(await workbench.identify(ada.token), "call_tool", {"name": "whoami"})


async def test_the_model_of_a_conversation_asks_before_it_changes_anything(workbench: Workbench) -> None:
    await model_calls(workbench, "list_tasks")
    for decision, state, code in (("approve", "completed", None), ("reject", "failed", "TOOL_DENIED")):
        calling = asyncio.ensure_future(model_calls(workbench, "create_task", title=decision, persona_id="implementer"))
        approval = await question(workbench)
        assert approval["payload"]["arguments"]["title"] == decision
        await workbench.call(decision, approval_id=approval["id"])
        await asyncio.gather(calling, return_exceptions=True)
        assert getattr(calling.exception(), "code", None) == code
        assert (await rows(workbench))[-1]["state"] == state
    assert [task["title"] for task in (await workbench.call("list_tasks"))["tasks"]] == ["approve"]


async def test_a_model_cannot_do_what_only_the_operator_may(workbench: Workbench) -> None:
    with pytest.raises(NotFound, match="UNKNOWN_TOOL"):
        await model_calls(workbench, "approve", approval_id=1)


async def test_the_library_loads_beside_the_loop(
    workbench: Workbench, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, go_on, library = threading.Event(), threading.Event(), checks._library

    def slow() -> Any:
        loading.set()
        assert go_on.wait(30), "the loop waits for the library"
        return library()

    monkeypatch.setattr(checks, "_library", cache(slow))
    shelf.put("add", parameters={"type": "object", "required": ["numbers of this test"]})
    call = begin(workbench, "add", {}, ToolScope(OPERATOR))
    await asyncio.to_thread(loading.wait, 30)
    go_on.set()
    assert await ended_with(call) == ["INVALID_ARGUMENTS"]


# Secrets in arguments, results and errors, and results that are large

MARKED = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}
KNOWN = 'pw-"3141"\nsecond line'
"""A secret with characters that JSON escapes, and two lines."""
FORMS = [KNOWN, json.dumps(KNOWN)[1:-1], "second line"]
"""How it may occur in a text."""


async def records(workbench: Workbench) -> str:
    """All that is kept of calls, and of questions about them."""
    kept = [await rows(workbench), await events(workbench, "*")]
    approvals = (await workbench.call("list_approvals", status=None))["approvals"]
    calls = (await workbench.call("list_tool_calls"))["calls"]
    whole = [await workbench.call("get_tool_call", call_id=call["call_id"]) for call in calls]
    exported = await workbench.call("export", resource="events")
    return json.dumps([kept, approvals, calls, whole, exported], ensure_ascii=False)


async def test_arguments_that_a_schema_marks_secret_are_masked_except_in_the_call(
    workbench: Workbench, shelf: Shelf
) -> None:
    shelf.put("hub__post", parameters=MARKED, result=MARKED)
    asking = begin(workbench, "hub__post", {"key": "open-sesame", "to": "me"})
    approval = await question(workbench)
    assert approval["payload"]["arguments"] == {"key": "••••••", "to": "me"}
    await workbench.call("approve", approval_id=approval["id"])
    assert (await asking).outcome.value == {"key": "open-sesame", "to": "me"}
    kept = await records(workbench)
    assert "open-sesame" not in kept
    assert kept.count("••••••") >= 4


@pytest.mark.parametrize("how", ["returns", "fails", "raises"])
async def test_a_marked_argument_is_masked_only_in_the_records_of_its_call(
    workbench: Workbench, shelf: Shelf, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    caplog.set_level(logging.DEBUG)

    async def leak(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        text = f"signed in with {call.arguments.get('key')}, once"
        assert call.surroundings.progress is not None
        await call.surroundings.progress(1, 2, text)
        if how == "fails":
            raise Unavailable("DOWN", text)
        if how == "raises":
            raise ValueError(text)
        return ToolOutcome([{"type": "text", "text": text}])

    shelf.put("hub__sign_in", leak, parameters=MARKED, hints=READING)
    shelf.put("hub__plain", leak, hints=READING)
    await ended_with(begin(workbench, "hub__sign_in", {"key": "open-sesame", "to": "me"}))
    kept = await records(workbench)
    assert "signed in with ••••••, once" in kept
    assert "open-sesame" not in kept + caplog.text
    await ended_with(begin(workbench, "hub__plain", {"key": "open-sesame"}))
    assert "signed in with open-sesame" in await records(workbench)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["returns", "fails", "raises"])
async def test_secrets_that_are_known_are_masked_wherever_they_occur(
    workbench: Workbench, shelf: Shelf, caplog: pytest.LogCaptureFixture, form: str, how: str
) -> None:
    caplog.set_level(logging.DEBUG)
    workbench._ctx.secrets.add([KNOWN])

    async def leak(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        text = f"the key is {call.arguments['text']}!"
        if how == "fails":
            raise Unavailable("DOWN", text)
        if how == "raises":
            raise ValueError(text)
        return ToolOutcome([{"type": "text", "text": text}])

    shelf.put("hub__leak", leak, hints=READING)
    call = begin(workbench, "hub__leak", {"text": form, "list": [{form: 1}]})
    assert await ended_with(call) == [{"returns": None, "fails": "DOWN", "raises": "TOOL_FAILED"}[how]]
    kept = await records(workbench)
    for other in FORMS:
        assert other not in kept
        assert json.dumps(other)[1:-1] not in kept
        assert other not in caplog.text


async def test_the_log_of_a_large_result_is_made_beside_the_loop(workbench: Workbench, shelf: Shelf) -> None:
    big: dict[str, Any] = {"rows": [{"n": n, "text": "x" * 50} for n in range(20_000)]}

    async def many(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome([], big)

    shelf.put("hub__many", many, hints=READING)
    done = await begin(workbench, "hub__many")
    assert done.outcome.value == big
    assert (await workbench.call("get_tool_call", call_id=done.call_id))["result"] == big
    [_, (_, completed)] = await events(workbench, "tool.*")
    assert len(completed["tool_result"]) == workbench.settings.tool_shown_chars


@pytest.mark.parametrize("value", ["x" * 2_000, {"a": ["y" * 1_500]}])
async def test_a_result_that_is_too_large_fails_its_call(workbench: Workbench, shelf: Shelf, value: Any) -> None:
    limited = workbench.settings.model_copy(update={"max_tool_result_bytes": 1_024})
    workbench._ctx = workbench._ctx._replace(settings=limited)

    async def much(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome([], value)

    shelf.put("hub__much", much, hints=READING)
    call = begin(workbench, "hub__much")
    assert await ended_with(call) == ["TOOL_RESULT_TOO_LARGE"]
    assert [(row["state"], row["error_code"]) for row in await rows(workbench)] == [("failed", "TOOL_RESULT_TOO_LARGE")]
