"""The arguments of `workbench call`."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from workbench.cli import parse_arguments


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ([], {}),
        (["name=Ada"], {"name": "Ada"}),
        (["task_id=5", "x=1.5", "y=true", "z=null"], {"task_id": 5, "x": 1.5, "y": True, "z": None}),
        (['title="5"'], {"title": "5"}),
        (["run=a=b"], {"run": "a=b"}),
        (["text="], {"text": ""}),
        (["list=[1, 2]", 'map={"a": []}'], {"list": [1, 2], "map": {"a": []}}),
        (['{"a": {"b": 1}}'], {"a": {"b": 1}}),
        (["  {}"], {}),
    ],
    ids=str,
)
def test_arguments_are_pairs_or_one_object(typed: list[str], read: dict[str, Any]) -> None:
    assert parse_arguments(typed) == read


@pytest.mark.parametrize("typed", [["x"], ["{"], ["a=1", "b"], ["=1", "x"]], ids=str)
def test_malformed_arguments_are_refused(typed: list[str]) -> None:
    given.refused("INVALID_ARGUMENTS", parse_arguments, typed)
