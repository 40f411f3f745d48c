"""Text and cards of tools, in a terminal and in a notebook."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.cli.chat.parts import as_page, as_text
from workbench.rules.chat.transcript import CallState, TextPart, ToolPart


def call(**more: Any) -> ToolPart:
    """A call of a tool."""
    return ToolPart(**{"call_id": "1", "tool_name": "add", "tool_input": '{"a": 1, "b": "two"}', **more})


@pytest.mark.parametrize(
    ("state", "more", "shown"),
    [
        (CallState.RUNNING, {}, '→ add(a=1, b="two")'),
        (CallState.WAITING, {"approval_id": 7}, "? add waits for you: `workbench approvals`"),
        (CallState.COMPLETED, {"tool_result": "3\nall"}, "← add: 3 all"),
        (CallState.FAILED, {"tool_result": "TOOL_FAILED: no"}, "✗ add: TOOL_FAILED: no"),
        (CallState.CANCELLED, {}, "✗ add: cancelled"),
    ],
)
def test_a_call_is_a_line_and_its_end_another(state: CallState, more: dict[str, Any], shown: str) -> None:
    lines = as_text(call(state=state, **more)).splitlines()
    assert lines[0] == '→ add(a=1, b="two")'
    assert lines[-1] == shown


def test_a_tool_of_a_server_is_marked() -> None:
    part = call(tool_name="islands__count", source="mcp", server="islands")
    assert as_text(part) == '→ islands__count(a=1, b="two") · MCP'
    assert "<code>islands__count</code> <small>MCP · islands · running</small>" in as_page(part)


def test_a_card_has_the_whole_arguments_and_the_result_and_a_line_their_beginning() -> None:
    long = '{"text": "' + "x" * 500 + '"}'
    page = as_page(call(tool_input=long, tool_result="y" * 500, duration_ms=12.3))
    assert page.startswith("<details")
    for part in ("x" * 500, "y" * 500, "0.01 s"):
        assert part in page
    assert as_text(call(tool_input=long)) == f'→ add(text="{"x" * 58}…)'


@pytest.mark.parametrize("text", ["not JSON", "[1]", '{"a": 1'])
def test_arguments_that_are_no_object_are_shown_as_they_are(text: str) -> None:
    assert as_text(call(tool_input=text)) == f"→ add({text})"
    assert "<pre" in as_page(call(tool_input=text))


def test_text_of_models_and_tools_is_inert_in_terminals_and_pages() -> None:
    part = call(tool_name="x\x1b[2J", tool_input="<b>", tool_result="<img>\u202e", state=CallState.COMPLETED)
    assert not {"\x1b", "\u202e"} & set(as_text(part))
    assert not any(tag in as_page(part) for tag in ("<img>", "<b>"))
    assert as_text(TextPart(text="a\x1b[2J")) == "a\\u001b[2J"


def test_thoughts_are_distinguished_from_the_answer() -> None:
    part = TextPart(type="thinking", text="Let me see.\n")
    assert as_text(part) == "(Let me see.)"
    assert "<summary><em>thinking</em></summary>" in as_page(part)
