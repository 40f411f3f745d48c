"""Results of tools: any returned value is JSON text, short enough to be shown, and fits its declaration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests.conftest import nested
from tests.given import refused
from workbench.rules.tools.results import as_json, is_small, shortened
from workbench.rules.tools.returned import returned
from workbench.rules.wire import json_safety


class Silent:
    """An object that cannot be represented."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        (float("nan"), "NaN"),
        (Silent(), "<Silent, whose repr raised RuntimeError>"),
        ("\ud800", "'\\ud800'"),
        ("a\0b", "'a\\x00b'"),
    ],
)
def test_a_value_that_is_not_json_becomes_text(value: Any, expected: Any) -> None:
    assert json.loads(as_json(value)) == expected


@given(
    st.recursive(
        st.text() | st.floats() | st.integers(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    )
)
def test_every_result_can_be_stored_and_sent(value: Any) -> None:
    json_safety.check(json_safety.decode(as_json(value)))


def test_a_recursive_or_too_deep_value_is_shown_by_its_repr() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json.loads(as_json(endless)) == "[[...]]"
    assert json.loads(as_json(nested(100))).startswith("[[[")


def test_a_long_text_is_shown_in_part() -> None:
    assert shortened("x" * 1_000, 100) == "x" * 99 + "…"
    assert shortened("x", 100) == "x"


@pytest.mark.parametrize(
    ("value", "nodes", "characters", "small"),
    [
        ("abc", 1, 4, True),
        ("abc", 1, 3, False),
        ({"ab": "c"}, 2, 4, True),
        ({"ab": "c"}, 2, 3, False),
        ({"ab": "c"}, 1, 9, False),
        ([1, [2]], 4, 1, True),
        ([1, [2]], 3, 1, False),
        ([""] * 499, 500, 1, True),
        ([""] * 500, 500, 1, False),
    ],
)
def test_a_value_is_small_up_to_its_two_limits(value: Any, nodes: int, characters: int, small: bool) -> None:
    assert is_small(value, nodes, characters) is small


def test_the_usual_limits_are_five_hundred_nodes_and_fifty_thousand_characters() -> None:
    sizes = [is_small([0] * many) for many in (499, 500)] + [is_small("x" * many) for many in (49_999, 50_000)]
    assert sizes == [True, False, True, False]


LIMIT, ROWS = 1_000, 10


class Node(BaseModel):
    """A node of a tree."""

    name: str
    below: list[Node] = []


@pytest.mark.parametrize(
    ("annotation", "value", "text", "structured"),
    [
        (None, "plain", "plain", None),
        (None, None, "null", None),
        (Any, {"a": (1, 2)}, '{"a":[1,2]}', None),
        (str, "plain", "plain", {"result": "plain"}),
        (list[int], (1, 2), "[1,2]", {"result": [1, 2]}),
        (dict[str, float], {"a": 1}, '{"a":1.0}', {"a": 1.0}),
        (int | None, None, "null", {"result": None}),
        (Node, {"name": "a", "below": [{"name": "b"}]}, None, None),
        (list[Node], [{"name": "a"}], None, None),
    ],
)
def test_the_answer_fits_what_the_function_declares(
    annotation: Any, value: Any, text: str | None, structured: dict[str, Any] | None
) -> None:
    made = returned(annotation)
    answer = made.answer(value, LIMIT, ROWS)
    if text is not None:
        assert (answer.text, answer.structured) == (text, structured)
    if made.schema is not None:
        assert made.schema["type"] == "object"
        Draft202012Validator(made.schema).validate(answer.structured)


def test_a_result_type_without_a_schema_is_answered_as_text() -> None:
    made = returned(type("Strange", (), {}))
    assert made.schema is None
    assert made.answer(3, LIMIT, ROWS).text == "3"


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (int, "many", "whole number"),
        (Any, "a\0b", "NUL"),
        (float, float("nan"), "result must be of type number, and JSON has no NaN"),
        (Node, {"name": 3}, "name: "),
        (str, "a\0b", "NUL"),
        (str, "\ud800", ""),
        (bytes, b"\xff", "utf-8"),
    ],
)
def test_a_result_that_does_not_fit_its_annotation_is_refused(annotation: Any, value: Any, reason: str) -> None:
    assert reason in refused("TOOL_RESULT_INVALID", returned(annotation).answer, value, LIMIT, ROWS).message


def test_a_result_that_is_too_large_is_refused() -> None:
    for annotation in (None, str):
        error = refused("TOOL_RESULT_TOO_LARGE", returned(annotation).answer, "x" * 5_000, LIMIT, ROWS)
        assert "returned 5,0" in error.message
