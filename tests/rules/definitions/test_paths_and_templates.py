"""What paths of definitions may be, and what becomes of the placeholders of their templates: tables."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.paths import NAME_LIMIT, PATH_LIMIT, flaw, flaw_of_name
from workbench.rules.definitions.templates import fill, placeholders

LETTERS = "it consists of letters without accents, digits, '-', '_', and, inside, '.' and spaces"
DEVICE = "it is the name of a device on Windows"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a/b.md", None),
        ("a..b", None),
        ("a" * PATH_LIMIT, None),
        ("a" * (PATH_LIMIT + 1), "it is longer than 4,000 characters"),
        ("", "it is empty"),
        ("a\n", "it contains characters that cannot be shown"),
        ("a\\b", "its parts are separated by '/'"),
        ("a/../b", "it must not contain '..'"),
        ("a\\\n", "it contains characters that cannot be shown"),
    ],
)
def test_a_path_that_cannot_be_used_says_why(path: str, why: str | None) -> None:
    assert flaw(path) == why


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a", None),
        ("_a b.c-", None),
        ("a" * NAME_LIMIT, None),
        ("a" * (NAME_LIMIT + 1), "it is longer than 100 characters"),
        *((name, LETTERS) for name in ("", ".a", "a.", "a ", "-a", "ä", "a/b")),
        *((name, DEVICE) for name in ("con", "NUL", "con.txt.md", "con .txt")),
        ("console", None),
        ("a.con", None),
    ],
)
def test_a_name_that_cannot_be_used_says_why(name: str, why: str | None) -> None:
    assert flaw_of_name(name) == why


@pytest.mark.parametrize(
    ("template", "names", "values", "filled"),
    [
        ("{a} and {b-2}", {"a", "b-2"}, {"a": "x", "b-2": 1}, "x and 1"),
        ("{a}{a}", {"a"}, {"a": "{b}", "b": "no"}, "{b}{b}"),
        ("<{a}>", {"a"}, {}, "<>"),
        ("<{a}>", {"a"}, {"a": None}, "<>"),
        ("{a}", {"a"}, {"a": {"ä": [True]}}, '{"ä": [true]}'),
        ("{} { a} {2} {{_}}", {"_"}, {"_": ""}, "{} { a} {2} {}"),
    ],
)
def test_a_placeholder_is_replaced_once(template: str, names: set[str], values: dict[str, Any], filled: str) -> None:
    assert (placeholders(template), fill(template, values)) == (names, filled)
