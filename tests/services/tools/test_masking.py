"""Secrets in arguments, results and errors: no record of a call shows them, its caller and its tool get them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.services.tools.conftest import READING, Shelf, begin, ended_with, events, question, rows
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.ops import Ctx
from workbench.services.tools.tool import Call, Outcome

pytestmark = pytest.mark.anyio

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


async def test_what_a_schema_marks_is_masked_everywhere_but_in_the_call(workbench: Workbench, shelf: Shelf) -> None:
    shelf.put("hub__post", parameters=MARKED, result=MARKED)
    asking = begin(workbench, "hub__post", {"key": "open-sesame", "to": "me"})
    asked = await question(workbench)
    assert asked["payload"]["arguments"] == {"key": "••••••", "to": "me"}
    await workbench.call("approve", approval_id=asked["id"])
    assert (await asking).outcome.value == {"key": "open-sesame", "to": "me"}
    kept = await records(workbench)
    assert "open-sesame" not in kept
    assert kept.count("••••••") >= 4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["returns", "fails", "raises"])
async def test_secrets_that_are_known_are_masked_wherever_they_occur(
    workbench: Workbench, shelf: Shelf, caplog: pytest.LogCaptureFixture, form: str, how: str
) -> None:
    caplog.set_level(logging.DEBUG)
    workbench._ctx.secrets.add([KNOWN])

    async def leak(ctx: Ctx, call: Call) -> Outcome:
        text = f"the key is {call.arguments['text']}!"
        if how == "fails":
            raise Unavailable("DOWN", text)
        if how == "raises":
            raise ValueError(text)
        return Outcome([{"type": "text", "text": text}])

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

    async def many(ctx: Ctx, call: Call) -> Outcome:
        return Outcome([], big)

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

    async def much(ctx: Ctx, call: Call) -> Outcome:
        return Outcome([], value)

    shelf.put("hub__much", much, hints=READING)
    call = begin(workbench, "hub__much")
    assert await ended_with(call) == ["TOOL_RESULT_TOO_LARGE"]
    assert [(row["state"], row["error_code"]) for row in await rows(workbench)] == [("failed", "TOOL_RESULT_TOO_LARGE")]
