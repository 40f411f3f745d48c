"""Arguments are checked against the schema of the tool, which may be somebody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.rules.tools.arguments import problems

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/Number"}},
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"Number": {"type": "integer", "maximum": 9}},
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"a": 1, "b": 2}, []),
        ({"a": 1}, [{"field": "arguments", "reason": "required, but missing: b"}]),
        ({"a": "secret", "b": 2}, [{"field": "a", "reason": "must be of type integer"}]),
        ({"a": 1, "b": 12}, [{"field": "b", "reason": "does not satisfy maximum: 9"}]),
        ({"a": 1, "b": 2, "c": 3}, [{"field": "arguments", "reason": "unknown name c"}]),
        ({"a": 1, "b": 2, "A": 3}, [{"field": "arguments", "reason": "unknown name A (did you mean a?)"}]),
    ],
)
def test_what_does_not_fit_is_named_without_its_value(arguments: dict[str, Any], expected: list[Any]) -> None:
    assert problems(json.dumps(ADD), arguments) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "(a+)+$"}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_left_to_the_tool(schema: dict[str, Any]) -> None:
    assert problems(json.dumps(schema), {"a": "a" * 40 + "!"}) == []
