"""Secrets in arguments and results of tools are masked: those that the schema marks, and those that are known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.rules.tools.masking import MASK, masked

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
def test_what_the_schema_marks_is_masked(schema: Any, value: Any, shown: Any) -> None:
    assert masked(value, schema) == shown


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value_goes() -> None:
    schema = {"$defs": {"Tree": {"properties": {"key": PASSWORD, "next": {"$ref": "#/$defs/Tree"}}}}}
    tree = {"key": "a", "next": {"key": "b", "next": {"key": "c"}}}
    shown = {"key": MASK, "next": {"key": MASK, "next": {"key": MASK}}}
    assert masked(tree, schema | {"$ref": "#/$defs/Tree"}) == shown


@example(78_125_000_000, "000000")
@given(JSON, st.text(min_size=6, max_size=20))
def test_a_known_secret_occurs_nowhere(value: Any, secret: str) -> None:
    where = {"a": value, f"k{secret}": [secret, f"x{secret}y", {"deep": f"Bearer {secret}"}]}
    assert secret not in str(masked(where, {}, [secret])).replace(MASK, "")


def test_of_two_secrets_the_longer_one_is_masked_whole() -> None:
    assert masked("abcdefghij", {}, ["abcdef", "abcdefghij"]) == MASK


@given(JSON)
def test_without_secrets_the_value_stays(value: Any) -> None:
    assert masked(value, {}) == value
