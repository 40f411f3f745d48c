"""The tools of an answer: those that the conversation chose, with the operator's permission where it is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import given
from tests.services.conversations.conftest import Chat
from tests.services.tools.conftest import READING, Shelf, shelf
from workbench.ops import Ctx
from workbench.services.tools.tool import ToolInvocation, ToolOutcome

pytestmark = pytest.mark.anyio
__all__ = ["shelf"]

Begin = Callable[..., Any]


def calling(tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """A model that calls a tool, then says something."""
    return [{"say": "Wait.", "calls": [{"tool": tool, "input": arguments}]}, {"say": "Done."}]


TIDY = calling("create_task", title="Tidy up", persona_id="tester")


def of_type(frames: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [frame["data"] for frame in frames if frame["type"] == kind]


async def tool_part(chat: Chat) -> dict[str, Any]:
    """The only call of the last turn."""
    [found] = [part for part in (await chat.turns())[-1]["parts"] if part["type"] == "tool"]
    part: dict[str, Any] = found
    return part


async def asked(chat: Chat, kind: str, until: str = "complete") -> dict[str, Any]:
    """Ask something; the only frame of a kind, up to one that is waited for."""
    await chat.send("Do it.")
    [frame] = of_type(await chat.until(until), kind)
    return dict(frame)


async def test_an_operation_that_reads_is_called_if_the_conversation_asks_for_workbench(begin: Begin) -> None:
    chat = await begin(calling("list_tasks"), tools=["workbench"])
    await chat.send("Which tasks are there?")
    frames = await chat.ended()
    [start], [complete] = of_type(frames, "tool_start"), of_type(frames, "tool_complete")
    assert (start["tool_name"], start["tool_input"], start["source"]) == ("list_tasks", "{}", "local")
    assert start["call_id"] == complete["call_id"]
    assert json.loads(complete["tool_result"])["tasks"] == []
    assert (complete["is_error"], of_type(frames, "complete")[0]["state"]) == (False, "completed")
    part = await tool_part(chat)
    assert (part["state"], part["tool_name"], part["record_id"]) == ("completed", "list_tasks", complete["record_id"])


async def test_a_conversation_is_offered_chosen_operations_but_never_the_operators(
    begin: Begin,
) -> None:
    operators = ("approve", "agent_create", "ask", "update_agent")
    called = [("list_tasks", {}), *((name, {"tools": ["workbench"]}) for name in operators)]
    for name, choices in called:
        chat = await begin(calling(name), **choices)
        assert (await asked(chat, "tool_complete"))["is_error"], name
        assert (await tool_part(chat))["state"] == "failed"
        if choices:
            assert (await given.refusal(begin([], tools=[name]))).code == "UNKNOWN_TOOL"
    kept = (await chat.workbench.call("list_tool_calls"))["calls"]
    assert [(call["tool_name"], call["error_code"], call["caller"]) for call in reversed(kept)] == [
        (name, "UNKNOWN_TOOL", "chat:Helper") for name, _ in called
    ]


async def test_a_changing_call_waits_for_the_operator_during_the_answer(begin: Begin) -> None:
    chat = await begin(TIDY, tools=["workbench"], limits={"seconds": 5})
    waiting = await asked(chat, "tool_waiting", "tool_waiting")
    part = await tool_part(chat)
    assert (part["state"], part["approval_id"]) == ("waiting", waiting["approval_id"])
    question = await chat.workbench.call("get_approval", approval_id=waiting["approval_id"])
    assert question["payload"]["arguments"] == {"title": "Tidy up", "persona_id": "tester"}
    assert question["requester"] == "chat:Helper"
    await chat.workbench.call("approve", approval_id=waiting["approval_id"])
    assert not of_type(await chat.ended(), "tool_complete")[0]["is_error"]
    assert [task["title"] for task in (await chat.workbench.call("list_tasks"))["tasks"]] == ["Tidy up"]


async def test_the_progress_of_a_call_comes_as_frames_and_stays_with_the_call(begin: Begin, shelf: Shelf) -> None:
    go_on = asyncio.Event()

    async def works(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        await call.surroundings.progress(float("inf"), None, "no number")
        await call.surroundings.progress(2, 5, "reading\x1b[2J")
        await go_on.wait()
        return ToolOutcome([{"type": "text", "text": "Read."}])

    shelf.put("hub__work", works, hints=READING)
    chat = await begin(calling("hub__work"), tools=["hub"])
    frame = await asked(chat, "tool_progress", "tool_progress")
    assert (frame["progress"], frame["total"]) == (2, 5)
    assert "\x1b" not in frame["message"]
    part = await tool_part(chat)
    assert (part["state"], part["progress"], part["total"]) == ("running", 2, 5)
    go_on.set()
    [complete] = of_type(await chat.ended(), "tool_complete")
    assert (complete["tool_result"], (await tool_part(chat))["progress"]) == ("Read.", 2)


async def test_the_model_learns_of_a_refused_call_and_continues(begin: Begin) -> None:
    chat = await begin(TIDY, tools=["workbench"])
    waiting = await asked(chat, "tool_waiting", "tool_waiting")
    await chat.workbench.call("reject", approval_id=waiting["approval_id"], reason="Not now.")
    frames = await chat.ended()
    [complete] = of_type(frames, "tool_complete")
    assert complete["is_error"]
    assert complete["tool_result"] == "TOOL_DENIED: The operator refused this call of create_task: Not now.."
    assert frames[-1]["data"]["state"] == "completed"


async def test_stopping_a_waiting_answer_withdraws_the_question(begin: Begin) -> None:
    chat = await begin(TIDY, tools=["workbench"])
    waiting = await asked(chat, "tool_waiting", "tool_waiting")
    await chat.call("stop_answer")
    question = await chat.workbench.call("get_approval", approval_id=waiting["approval_id"])
    assert question["status"] == "failed"
    assert (await tool_part(chat))["state"] == "cancelled"


async def test_a_model_reads_references_on_request_with_a_tool(begin: Begin) -> None:
    chat = await begin(calling("get_reference", reference_name="style"))
    reference = {"name": "style", "text": "Short sentences.", "include": "agent"}
    await chat.workbench.call("agent_add_reference", agentTarget="./agents/helper", reference=reference)
    assert "Short sentences." in (await asked(chat, "tool_complete"))["tool_result"]


def test_a_model_reads_text_and_only_the_names_of_pictures() -> None:
    blocks = [
        {"type": "text", "text": "A plot:"},
        {"type": "image", "data": "A" * 400, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.md", "text": "# A"}},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA", "mimeType": "application/x"}},
    ]
    assert ToolOutcome(blocks).text == "A plot:\n[image/png, 300 bytes]\n# A\n[application/x, 3 bytes]"
    assert ToolOutcome([], {"sum": 3}).text == '{"sum":3}'
