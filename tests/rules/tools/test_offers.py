"""How what a tool says about itself differs from what it said before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.rules.tools.offers import CHANGES, Change, changes


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [Change("a", 1, True)]),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, [Change("a.b", [1], [2])]),
        ({"a": {"b": 1}}, {"a": None}, [Change("a", {"b": 1}, None)]),
        ({"a": 1}, {"b": 2}, [Change("a", 1, None), Change("b", None, 2)]),
    ],
)
def test_each_place_that_differs_is_named(before: Any, after: Any, expected: list[Change]) -> None:
    assert changes(json.dumps(before), json.dumps(after)) == expected


def test_only_some_of_very_many_changes_are_shown() -> None:
    assert len(changes("{}", json.dumps({str(n): n + 1 for n in range(10_000)}))) == CHANGES
