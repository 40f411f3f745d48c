"""What a file states is changed as little as possible: a table. Its defaults are `a: 1` and `b: 2`."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.minimal_edit import edited


def full(value: Any) -> Any:
    """What is stated, with the defaults."""
    return {"a": 1, "b": 2, **value} if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("stated", "new", "shortest", "result"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, {}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 3}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": 5, "b": 2}, {"a": 1, "b": 2}, {}, {"a": 1, "b": 2}),
        ({"a": 5, "b": 2}, {"a": None, "b": 2}, {"a": None}, {"b": 2, "a": None}),
        ({"a": 5, "b": 2}, {"a": None, "b": 2}, {}, {"b": 2}),
        ({"a": None}, {"a": None, "b": 3}, {"b": 3}, {"a": None, "b": 3}),
        ({"c": 1}, {"a": 1, "b": 2}, {}, {}),
        ({"a": 1}, [1], [1], [1]),
    ],
)
def test_of_a_mapping_what_stays_the_same_is_stated_as_before(
    stated: Any, new: Any, shortest: Any, result: Any
) -> None:
    assert edited(stated, full(stated), new, shortest) == result


@pytest.mark.parametrize(
    ("new", "shortest", "result"),
    [
        ([{"a": 1, "b": 2}, {"a": 1, "b": 4}], [{}, {"b": 4}], [{"a": 1}, {"b": 4}]),
        ([{"a": 1, "b": 3}, {"a": 1, "b": 2}], [{"b": 3}, {}], [{"b": 3, "a": 1}, {"a": 1}]),
        ([{"a": 1, "b": 2}], [{}], [{"a": 1}]),
        ("text", "text", "text"),
    ],
)
def test_of_a_list_items_that_stay_are_stated_as_before_wherever_they_are(new: Any, shortest: Any, result: Any) -> None:
    stated = [{"a": 1}, {"b": 3, "a": 1}]
    assert edited(stated, [full(item) for item in stated], new, shortest) == result
