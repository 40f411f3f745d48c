"""The parts of an answer, made of its frames."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.chat.transcript import TextPart, ToolPart, Transcript

CALL = {"call_id": "c1", "tool_name": "sum", "tool_input": "{}", "type": "ignored", "other": 1}


def of(*frames: tuple[str, dict[str, Any]]) -> Transcript:
    """What these frames amount to."""
    made = Transcript()
    for kind, data in frames:
        made.add(kind, data)
    return made


def tool(**more: Any) -> ToolPart:
    return ToolPart(call_id="c1", tool_name="sum", tool_input="{}", **more)


def test_text_is_one_part_until_something_else_comes() -> None:
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
