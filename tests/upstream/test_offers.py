"""The list of a server's tools is checked: those with unusable names or schemas are left out with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.types import ListToolsResult

from workbench.client.mended import LEFT_OUT, NOTES, mend
from workbench.rules.tools import arguments
from workbench.upstream.offers import LARGEST_SCHEMA, LONGEST_DESCRIPTION, MOST_TOOLS, ServerToolOffer, _add_all

OBJECT: dict[str, Any] = {"type": "object"}


def offered(*tools: dict[str, Any]) -> tuple[dict[str, ServerToolOffer], list[str]]:
    """The tools that are used of a list, and why others are not."""
    found: dict[str, ServerToolOffer] = {}
    listed = {"tools": [{"inputSchema": OBJECT, **tool} for tool in tools]}
    mend(listed, lambda: "2025-11-25")
    page = ListToolsResult.model_validate(listed)
    assert page.meta is not None
    return found, [*page.meta[LEFT_OUT], *_add_all(found, page.tools), *page.meta[NOTES]]


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
        ({"name": "t", "inputSchema": {"type": "array"}}, "t: inputSchema.type: must be object"),
        ({"name": "t", "inputSchema": None}, "t: inputSchema: must be an object"),
        ({"description": "x"}, "name: required"),
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


def test_the_description_of_a_tool_is_inert_and_cut() -> None:
    text = "\x1b[31mred \u202e" + "x" * LONGEST_DESCRIPTION
    found, _ = offered({"name": "t", "description": text, "title": "a\nb", "annotations": {"readOnlyHint": True}})
    offer = found["t"]
    assert offer.description.startswith(r"\u001b[31mred \u202e")
    assert len(offer.description) < LONGEST_DESCRIPTION + 20
    assert (offer.title, offer.hints) == (r"a\nb", {"readOnlyHint": True})


def test_an_unusable_result_schema_or_a_second_tool_of_a_name_is_left_out() -> None:
    twice = [{"name": "t", "description": text} for text in ("first", "second")]
    found, problems = offered(*twice, {"name": "u", "outputSchema": {"$ref": "https://example.org/x"}})
    assert (found["t"].description, found["u"].result, problems) == ("first", None, ["t is listed twice"])


def test_a_part_of_a_tool_that_is_off_the_protocol_is_left_out_alone() -> None:
    odd = {"name": "odd", "icons": 3, "annotations": {"readOnlyHint": "perhaps", "title": "Odd"}}
    found, problems = offered(odd, {"name": "u", "outputSchema": {"description": "no type"}}, {"name": "v"})
    assert list(found) == ["odd", "u", "v"]
    assert found["u"].result == {"description": "no type"}
    assert found["odd"].hints == {}
    assert problems == [
        "odd is used without its annotations: annotations.readOnlyHint: must be true or false",
        "odd is used without its icons: icons: must be a list",
    ]


DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
PAIR = {"type": "array", "items": [{"type": "number"}, {"type": "string"}]}


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        ({**DRAFT_07, "properties": {"x": PAIR}}, {"x": [1, "a"]}, {"x": ["a", 1]}),
        ({"properties": {"x": PAIR}}, {"x": [1, "a"]}, {"x": ["a", 1]}),
        ({"properties": {"x": {"minimum": 1, "exclusiveMinimum": True}}}, {"x": 2}, {"x": 1}),
        ({"properties": {"x": {"type": "string", "pattern": r"^(?<y>\p{L})$"}}}, {"x": "a"}, {"x": 1}),
    ],
)
def test_arguments_are_checked_by_the_draft_of_their_schema(
    schema: dict[str, Any], fits: dict[str, Any], does_not: dict[str, Any]
) -> None:
    found, problems = offered({"name": "t", "inputSchema": schema})
    assert problems == []
    parameters = json.dumps(found["t"].parameters)
    assert arguments.problems(parameters, fits) == []
    assert arguments.problems(parameters, does_not)


def test_tools_of_a_server_are_limited_in_number() -> None:
    found, problems = offered(*({"name": f"t{number}"} for number in range(MOST_TOOLS + 3)))
    assert (len(found), len(problems)) == (MOST_TOOLS, 3)
