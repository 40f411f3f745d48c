"""What a server lists is checked: tools with unusable names and schemas are left out, and said why."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.types import Tool

from workbench.upstream.offers import LARGEST_SCHEMA, LONGEST_DESCRIPTION, MOST_TOOLS, Offer, _add_all

OBJECT: dict[str, Any] = {"type": "object"}


def offered(*tools: dict[str, Any]) -> tuple[dict[str, Offer], list[str]]:
    """The tools that are used of a list, and why others are not."""
    found: dict[str, Offer] = {}
    made = [Tool.model_validate({"inputSchema": OBJECT, **tool}) for tool in tools]
    return found, _add_all(found, made)


def deep(levels: int) -> dict[str, Any]:
    """A schema that nests."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ({"name": ""}, "empty"),
        ({"name": "x" * 201}, "longer than 200 characters"),
        ({"name": "evil\x1b[2J"}, r"not printable"),
        ({"name": "t", "inputSchema": {"type": "array"}}, "not that of an object"),
        ({"name": "t", "inputSchema": {"type": "object", "properties": {"x": {"type": 3}}}}, "is no JSON Schema"),
        ({"name": "t", "inputSchema": {"type": "object", "description": "x" * LARGEST_SCHEMA}}, "is larger than"),
        ({"name": "t", "inputSchema": deep(40)}, "is not usable as JSON"),
        ({"name": "t", "inputSchema": {"properties": {"x": {"$ref": "http://10.0.0.1/x"}}}}, "which is elsewhere"),
        ({"name": "t", "inputSchema": {"properties": {"x": {"$ref": "file:///etc/passwd"}}}}, "which is elsewhere"),
    ],
)
def test_a_tool_that_cannot_be_used_is_left_out_with_the_reason(tool: dict[str, Any], why: str) -> None:
    found, [problem] = offered(tool, {"name": "good"})
    assert set(found) == {"good"}
    assert why in problem
    assert problem.isprintable()


def test_what_a_tool_says_of_itself_is_inert_and_cut() -> None:
    text = "\x1b[31mred \u202e" + "x" * LONGEST_DESCRIPTION
    found, _ = offered({"name": "t", "description": text, "title": "a\nb", "annotations": {"readOnlyHint": True}})
    offer = found["t"]
    assert offer.description.startswith(r"\u001b[31mred \u202e")
    assert len(offer.description) < LONGEST_DESCRIPTION + 20
    assert (offer.title, offer.hints) == (r"a\nb", {"readOnlyHint": True})


def test_an_unusable_schema_of_the_result_is_left_out_alone_and_so_is_a_second_tool_of_one_name() -> None:
    twice = [{"name": "t", "description": text} for text in ("first", "second")]
    found, problems = offered(*twice, {"name": "u", "outputSchema": {"$ref": "https://example.org/x"}})
    assert (found["t"].description, found["u"].result, problems) == ("first", None, ["t is listed twice"])


def test_there_is_a_most_of_tools() -> None:
    found, problems = offered(*({"name": f"t{number}"} for number in range(MOST_TOOLS + 3)))
    assert (len(found), len(problems)) == (MOST_TOOLS, 3)
