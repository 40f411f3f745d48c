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
    parts = [
        TextPart(text="abc"),
        TextPart(type="thinking", text="hmm"),
        TextPart(text="d"),
        tool(),
        TextPart(text="e"),
    ]
    assert made.parts(ended=False) == parts
    assert made.text == "abcde"
    assert of().parts(ended=True) == []


@pytest.mark.parametrize(
    ("frames", "running", "ended"),
    [
        ([], {"state": "running"}, {"state": "cancelled"}),
        (
            [("tool_waiting", {"approval_id": 3})],
            {"state": "waiting", "approval_id": 3},
            {"state": "cancelled", "approval_id": 3},
        ),
        (
            [
                ("tool_waiting", {"approval_id": 3}),
                ("tool_progress", {"approval_id": None, "progress": 1.0, "total": 2.0, "message": "half"}),
            ],
            {"state": "running", "approval_id": 3, "progress": 1.0, "total": 2.0, "message": "half"},
            {"state": "cancelled", "approval_id": 3, "progress": 1.0, "total": 2.0, "message": "half"},
        ),
        ([("tool_complete", {"tool_result": "4"})], {"state": "completed", "tool_result": "4"}, None),
        (
            [("tool_complete", {"tool_result": "no", "is_error": True})],
            {"state": "failed", "tool_result": "no"},
            None,
        ),
        ([("tool_complete", {"call_id": "another", "tool_result": "4"})], {"state": "running"}, {"state": "cancelled"}),
    ],
)
def test_a_call_is_as_its_last_frame_says_and_cancelled_if_the_answer_ends_before_it(
    frames: list[tuple[str, dict[str, Any]]], running: dict[str, Any], ended: dict[str, Any] | None
) -> None:
    made = of(("tool_start", CALL), *((kind, {"call_id": "c1", **data}) for kind, data in frames))
    assert made.parts(ended=False) == [tool(**running)]
    assert made.parts(ended=True) == [tool(**(running if ended is None else ended))]
