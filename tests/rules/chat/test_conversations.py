"""The rest of a conversation's limits, and the parts of an answer, made of its frames."""

from __future__ import annotations

from typing import Any

import pytest

from tests.given import refused
from workbench.rules.chat.limits import ConversationLimits, Spent, money_left, require_left, tokens_left
from workbench.rules.chat.transcript import TextPart, ToolPart, Transcript

SPENT = Spent(answers=1_000, tokens=2_000, cost_usd=0.5, unpriced=0)
END = ". Raise it with update_conversation, or begin a new one."


@pytest.mark.parametrize(
    ("limit", "unpriced", "why"),
    [
        ({}, 1, None),
        ({"turns": 1_001, "tokens": 2_001, "cost_usd": 0.51, "seconds": 1}, 0, None),
        ({"turns": 1_000}, 0, "its 1,000 answers are used up"),
        ({"tokens": 2_000}, 0, "it has used 2,000 of 2,000 tokens"),
        ({"cost_usd": 0.5}, 0, "it has cost 0.5000 of 0.5 US dollars"),
        ({"cost_usd": 9}, 1, "the price of its model is unknown, so its limit of costs cannot be kept"),
    ],
)
def test_a_limit_that_is_reached_is_named(limit: dict[str, Any], unpriced: int, why: str | None) -> None:
    limits, spent = ConversationLimits(**limit), Spent(SPENT.answers, SPENT.tokens, SPENT.cost_usd, unpriced)
    if why is None:
        require_left(limits, spent)
        return
    error = refused("CHAT_LIMIT", require_left, limits, spent)
    assert error.message == f"The conversation has reached a limit: {why}{END}"
    assert error.details == {"limit": next(iter(limit))}


def test_a_limit_leaves_at_least_one_token_and_no_negative_cost() -> None:
    tokens = {None: None, 2_005: 5, 2_001: 1, 2_000: 1, 7: 1}
    assert {limit: tokens_left(ConversationLimits(tokens=limit), SPENT) for limit in tokens} == tokens
    money = {None: None, 2.0: 1.5, 0.5: 0.0, 0.25: 0.0}
    assert {limit: money_left(ConversationLimits(cost_usd=limit), SPENT) for limit in money} == money


# Answers

CALL = {"call_id": "c1", "tool_name": "sum", "tool_input": "{}", "type": "ignored", "other": 1}


def of(*frames: tuple[str, dict[str, Any]]) -> Transcript:
    """The parts that these frames make."""
    transcript = Transcript()
    for kind, data in frames:
        transcript.add(kind, data)
    return transcript


def tool(**more: Any) -> ToolPart:
    return ToolPart(call_id="c1", tool_name="sum", tool_input="{}", **more)


def test_consecutive_text_is_one_part() -> None:
    made = of(("token", {"content": "a"}), ("message", {"content": "no piece"}), ("token", {"content": "b"}))
    assert made.text == "ab"
    made.add("token", {"content": "c"})
    assert made.parts(ended=False) == [TextPart(text="abc")]
    for kind, text in (("thinking", "hm"), ("thinking", "m"), ("token", "d")):
        made.add(kind, {"content": text})
    made.add("tool_start", CALL)
    made.add("token", {"content": "e"})
    thinking = TextPart(type="thinking", text="hmm")
    parts = [TextPart(text="abc"), thinking, TextPart(text="d"), tool(), TextPart(text="e")]
    assert made.parts(ended=False) == parts
    assert made.text == "abcde"
    assert of().parts(ended=True) == []


WAITING = ("tool_waiting", {"approval_id": 3})
HALF = {"progress": 1.0, "total": 2.0, "message": "half"}
PROGRESS = ("tool_progress", {"approval_id": None, **HALF})


@pytest.mark.parametrize(
    ("frames", "state", "ended", "more"),
    [
        ([], "running", "cancelled", {}),
        ([WAITING], "waiting", "cancelled", {"approval_id": 3}),
        ([WAITING, PROGRESS], "running", "cancelled", {"approval_id": 3, **HALF}),
        ([("tool_complete", {"tool_result": "4"})], "completed", "completed", {"tool_result": "4"}),
        ([("tool_complete", {"tool_result": "no", "is_error": True})], "failed", "failed", {"tool_result": "no"}),
        ([("tool_complete", {"call_id": "another", "tool_result": "4"})], "running", "cancelled", {}),
    ],
)
def test_a_call_is_as_its_last_frame_says_and_cancelled_if_the_answer_ends_before_it(
    frames: list[tuple[str, dict[str, Any]]], state: str, ended: str, more: dict[str, Any]
) -> None:
    made = of(("tool_start", CALL), *((kind, {"call_id": "c1", **data}) for kind, data in frames))
    assert made.parts(ended=False) == [tool(state=state, **more)]
    assert made.parts(ended=True) == [tool(state=ended, **more)]
