"""The schema of a tool: arguments are checked, changes are named, secrets are masked."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.secrets.forms import MASK
from workbench.rules.tools.arguments import problems
from workbench.rules.tools.masking import masked
from workbench.rules.tools.offers import CHANGES, changes

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
def test_a_bad_argument_is_named_without_its_value(arguments: dict[str, Any], expected: list[Any]) -> None:
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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, [("a.b", [1], [2])]),
        ({"a": {"b": 1}}, {"a": None}, [("a", {"b": 1}, None)]),
        ({"a": 1}, {"b": 2}, [("a", 1, None), ("b", None, 2)]),
    ],
)
def test_each_place_that_differs_is_named(before: Any, after: Any, expected: list[Any]) -> None:
    assert [astuple(change) for change in changes(json.dumps(before), json.dumps(after))] == expected


def test_only_some_of_very_many_changes_are_shown() -> None:
    assert len(changes("{}", json.dumps({str(n): n + 1 for n in range(10_000)}))) == CHANGES


# Secrets: those that the schema marks, and those that are known

PASSWORD = {"type": "string", "format": "password"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ({"properties": {"key": PASSWORD}}, {"key": "k", "name": "n"}, {"key": MASK, "name": "n"}),
        ({"properties": {"keys": {"items": PASSWORD}}}, {"keys": ["a", "b"]}, {"keys": [MASK, MASK]}),
        ({"additionalProperties": PASSWORD}, {"a": "b"}, {"a": MASK}),
        ({"properties": {"key": {"anyOf": [PASSWORD, {"type": "null"}]}}}, {"key": "k"}, {"key": MASK}),
        ({"properties": {"key": {"anyOf": [PASSWORD, {"type": "null"}]}}}, {"key": None}, {"key": None}),
        ({"$defs": {"Key": PASSWORD}, "properties": {"a": {"$ref": "#/$defs/Key"}}}, {"a": "k"}, {"a": MASK}),
        ({"prefixItems": [{}, PASSWORD], "items": {}}, ["a", "b", "c"], ["a", MASK, "c"]),
        ({"$ref": "#"}, {"a": 1}, {"a": 1}),
        (True, {"a": 1}, {"a": 1}),
    ],
)
def test_values_that_a_schema_marks_are_masked(schema: Any, value: Any, shown: Any) -> None:
    assert masked(value, schema) == shown


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value_goes() -> None:
    schema = {"$defs": {"Tree": {"properties": {"key": PASSWORD, "next": {"$ref": "#/$defs/Tree"}}}}}
    tree = {"key": "a", "next": {"key": "b", "next": {"key": "c"}}}
    shown = {"key": MASK, "next": {"key": MASK, "next": {"key": MASK}}}
    assert masked(tree, schema | {"$ref": "#/$defs/Tree"}) == shown


@given(JSON)
def test_without_marks_the_value_stays(value: Any) -> None:
    assert masked(value, {}) == value
