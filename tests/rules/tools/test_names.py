"""Names of tools: every provider accepts them, and no two tools have the same one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.tools.names import exported, is_local, qualified

ACCEPTED = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
NAMES = st.text(st.sampled_from("ab_-1é. "), min_size=1, max_size=40) | st.text(min_size=1, max_size=80)


@given(NAMES, NAMES)
def test_every_tool_gets_a_name_that_providers_accept_and_no_local_tool_can_have(server: str, tool: str) -> None:
    name = qualified(server, tool)
    assert ACCEPTED.fullmatch(name)
    assert not is_local(name) or "__" not in name.strip("_")


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_tools_never_have_the_same_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (qualified(*one) == qualified(*other)) == (one == other)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("github", "create_issue", "github__create_issue"),
        ("github", "a__b", "github__a__b"),
        ("my-server", "x", "my-server__x"),
    ],
)
def test_a_plain_name_stays_plain(server: str, tool: str, name: str) -> None:
    assert qualified(server, tool) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a", "b__c"), ("a__b", "c")), (("a_", "b"), ("a", "_b")), (("a", "x" * 90), ("a", "x" * 91))],
)
def test_what_would_be_ambiguous_gets_a_hash(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert qualified(*one) != qualified(*other)


@pytest.mark.parametrize(("name", "is_one"), [("add", True), ("_private", True), ("a__b", False), ("1a", False)])
def test_a_local_tool_has_no_name_like_that_of_a_server_s_tool(name: str, is_one: bool) -> None:
    assert is_local(name) is is_one


@given(NAMES, NAMES)
def test_an_exported_tool_has_a_name_of_a_tool_that_runs_here(definition: str, tool: str) -> None:
    name = exported(definition, tool)
    assert ACCEPTED.fullmatch(name)
    assert is_local(name)


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_exported_tools_never_have_the_same_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (exported(*one) == exported(*other)) == (one == other)


def test_the_name_of_an_exported_tool_names_its_definition() -> None:
    assert exported("text-tools", "shorten") == "text-tools-shorten"
    assert exported("a", "b-c") != exported("a-b", "c") == "a-b-c"
