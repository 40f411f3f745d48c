"""Names, paths and placeholders in definitions, and the smallest edit of a file: tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from workbench.definition_files.places import NAME_LIMIT, PATH_LIMIT, flaw, flaw_of_name
from workbench.rules.definitions.layout import edited
from workbench.rules.definitions.mcp_servers import McpServer
from workbench.rules.definitions.model import fill, placeholders
from workbench.rules.definitions.names import EntryName, fitting, repeated

NAME: TypeAdapter[str] = TypeAdapter(EntryName)
LETTERS = "it consists of letters without accents, digits, '-', '_', and, inside, '.' and spaces"
DEVICE = "it is the name of a device on Windows"


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
def test_a_fitting_name_is_always_valid_and_free(text: str, others: list[str]) -> None:
    taken: list[str] = []
    for one in (*others, text):
        taken.append(fitting(one, taken))
        assert NAME.validate_python(taken[-1])
    assert repeated(taken) == []


def test_names_of_tools_are_those_that_a_list_of_tools_can_hold() -> None:
    server: TypeAdapter[Any] = TypeAdapter(McpServer)
    for name in ("read_file", "fs.read-file", "fs/read", "ns:tool", "A1"):
        assert name in server.validate_python({"command": "x", "tools": {name: {}}}).tools
    for name in ("", "x,Bash", "Bash(rm *)", "a b", "a\n", "*", "é", "x" * 201):
        with pytest.raises(ValidationError):
            server.validate_python({"command": "x", "tools": {name: {"permissionRequired": False}}})


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a/b.md", None),
        ("a..b", None),
        ("a/" * (PATH_LIMIT // 2), None),
        ("a" * 256, "one of its parts is longer than 255 bytes"),
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
        *((name, LETTERS) for name in ("", ".a", "a.", "a ", " a", "-rf", "ä", "a/b", "a:b", "a*")),
        *((name, LETTERS) for name in ("r\u0435viewer", "\uff52eviewer", "re\u200bviewer")),  # they look alike
        *((name, DEVICE) for name in ("con", "AUX", "nul.txt", "com1", "con.txt.md", "con .txt")),
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


# What a file states is changed as little as possible; its defaults are `a: 1` and `b: 2`


def full(value: Any) -> Any:
    """The stated fields, with the defaults."""
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
def test_an_unchanged_value_is_stated_as_before(stated: Any, new: Any, shortest: Any, result: Any) -> None:
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
def test_unchanged_items_of_a_list_are_stated_as_before_in_any_place(new: Any, shortest: Any, result: Any) -> None:
    stated = [{"a": 1}, {"b": 3, "a": 1}]
    assert edited(stated, [full(item) for item in stated], new, shortest) == result
