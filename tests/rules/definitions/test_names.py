"""Names of rules, references, tools and servers that are made of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from workbench.rules.definitions.names import EntryName, fitting, repeated

NAME: TypeAdapter[str] = TypeAdapter(EntryName)


@pytest.mark.parametrize(
    ("text", "taken", "name"),
    [
        ("cite_2-x", [], "cite_2-x"),
        ("-x-", [], "-x-"),
        ("Arcade.dev", [], "Arcade-dev"),
        ("  Prüfung à la carte! ", [], "Prufung-a-la-carte"),
        ("日本", [], "unnamed"),
        ("CON", [], "CON-2"),
        ("a", ["A", "a-2"], "a-3"),
        ("x" * 200, [], "x" * 100),
        ("x" * 100, ["x" * 100], "x" * 95 + "-2"),
    ],
)
def test_a_text_becomes_a_name_that_looks_like_it(text: str, taken: list[str], name: str) -> None:
    assert fitting(text, taken) == name


@given(st.text(), st.lists(st.text(), max_size=5))
def test_it_is_always_a_valid_name_that_is_free(text: str, others: list[str]) -> None:
    taken: list[str] = []
    for one in (*others, text):
        taken.append(fitting(one, taken))
        assert NAME.validate_python(taken[-1])
    assert repeated(taken) == []
