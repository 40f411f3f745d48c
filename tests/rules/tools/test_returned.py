"""What functions return, as answers: text for models, and an object that fits the declared schema."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from workbench.errors import Unavailable
from workbench.rules.tools.returned import returned

LIMIT = 1_000


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
        (Any, "a\0b", "'a\\x00b'", None),
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
    answer = made.answer(value, LIMIT)
    if text is not None:
        assert (answer.text, answer.structured) == (text, structured)
    if made.schema is not None:
        assert made.schema["type"] == "object"
        Draft202012Validator(made.schema).validate(answer.structured)


def test_what_has_no_schema_is_answered_as_text() -> None:
    made = returned(type("Strange", (), {}))
    assert made.schema is None
    assert made.answer(3, LIMIT).text == "3"


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (int, "many", "whole number"),
        (Node, {"name": 3}, "name: "),
        (str, "a\0b", "NUL"),
        (str, "\ud800", ""),
        (bytes, b"\xff", "utf-8"),
    ],
)
def test_what_is_not_declared_is_refused(annotation: Any, value: Any, reason: str) -> None:
    with pytest.raises(Unavailable, match=f"TOOL_RESULT_INVALID.*{reason}"):
        returned(annotation).answer(value, LIMIT)


@pytest.mark.parametrize("annotation", [None, str])
def test_a_result_that_is_too_large_is_refused(annotation: Any) -> None:
    with pytest.raises(Unavailable, match=r"TOOL_RESULT_TOO_LARGE.*returned 5,0"):
        returned(annotation).answer("x" * 5_000, LIMIT)
