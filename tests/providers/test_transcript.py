"""The history of a conversation: kept, refused, and extended after an interruption."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.given import refused
from tests.providers.conftest import Asking
from tests.providers.dialects import EVERY, OPENAI_CHAT, Dialect
from tests.providers.wire import Call, Step
from workbench.providers import transcript
from workbench.providers.frames import Frame, Token, ToolCompleted, ToolStarted

pytestmark = pytest.mark.anyio

INTERRUPTED: list[Frame] = [
    Token("I add."),
    ToolStarted("c1", "add", '{"a": 1}'),
    ToolStarted("c2", "add", '{"a": 2}'),
    ToolCompleted("c2", "add", "sum=2", is_error=False),
    Token("And "),
    Token("again."),
    ToolStarted("c3", "fail", "{not JSON"),
    ToolCompleted("c3", "fail", "TOOL_TIMEOUT: No.", is_error=True),
    Token("Well"),
]


def kept(value: Any) -> Any:
    """A value as a store returns it."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_a_provider_takes_the_history_of_an_interrupted_answer(ask: Asking, dialect: Dialect) -> None:
    extended = kept(transcript.extended(None, "Add, please.", INTERRUPTED))
    answer = await ask.whole(dialect, Step(["Yes."]), prompt="Go on.", history=extended)
    sent = json.dumps(answer.requests[0].body)
    wanted = ("Add, please.", "I add.", transcript.LOST, "And again.", "TOOL_TIMEOUT", "Well", "Go on.")
    places = [sent.index(part) for part in wanted]
    assert places == sorted(places)
    assert "sum=2" in sent
    assert "Yes." in json.dumps(kept(answer.completed.history))


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_a_conversation_goes_on_with_its_history(ask: Asking, dialect: Dialect) -> None:
    call = Step(["Let me see."], [Call("c1", "nothing", "{}")])
    first = (await ask.whole(dialect, call, Step(["First."]), prompt="One?")).completed
    second = await ask.whole(dialect, Step(["Second."]), prompt="Two?", history=kept(first.history))
    sent = json.dumps(second.requests[0].body)
    assert all(part in sent for part in ("One?", "Let me see.", "nothing", "First.", "Two?"))
    assert second.completed.text == "Second."


async def test_an_answer_that_was_lost_before_its_first_frame_leaves_its_question(ask: Asking) -> None:
    extended = kept(transcript.extended(None, "Are you there?", []))
    answer = await ask.whole(OPENAI_CHAT, Step(["Yes."]), prompt="Hello?", history=extended)
    sent = json.dumps(answer.requests[0].body["messages"][1:])
    assert "Are you there?" in sent
    assert "Hello?" in sent


def test_a_history_that_cannot_be_read_is_refused() -> None:
    of_this_version = {"version": transcript.VERSION}
    strange: dict[str, Any] = of_this_version | {"messages": [{"kind": "unknown"}]}
    for unreadable in ({}, {"version": "older/1", "messages": []}, of_this_version, strange):
        refused("HISTORY_UNREADABLE", transcript.loaded, unreadable)


def test_a_history_in_the_format_of_this_version_is_readable() -> None:
    """A stored history: this form must be readable as long as the version is the same."""
    call = {"part_kind": "tool-call", "tool_name": "add", "args": {"a": 1}, "tool_call_id": "c1"}
    result = {"part_kind": "tool-return", "tool_name": "add", "content": "1", "tool_call_id": "c1"}
    messages = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}, call]},
        {"kind": "request", "parts": [result]},
    ]
    assert len(transcript.loaded({"version": transcript.VERSION, "messages": messages})) == 3
