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
def test_every_tool_gets_a_name_that_providers_accept_and_of_two_kinds(place: str, tool: str) -> None:
    server_tool, local = qualified(place, tool), exported(place, tool)
    assert ACCEPTED.fullmatch(server_tool)
    assert not is_local(server_tool) or "__" not in server_tool.strip("_")
    assert ACCEPTED.fullmatch(local)
    assert is_local(local)


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_tools_never_have_the_same_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    for name in (qualified, exported):
        assert (name(*one) == name(*other)) == (one == other)


def test_a_plain_name_stays_plain_and_what_would_be_ambiguous_gets_a_hash() -> None:
    plain = [("github", "create_issue"), ("github", "a__b"), ("my-server", "x")]
    assert [qualified(*both) for both in plain] == ["github__create_issue", "github__a__b", "my-server__x"]
    assert exported("text-tools", "shorten") == "text-tools-shorten"
    assert exported("a", "b-c") != exported("a-b", "c") == "a-b-c"
    for one, other in (
        (("a", "b__c"), ("a__b", "c")),
        (("a_", "b"), ("a", "_b")),
        (("a", "x" * 90), ("a", "x" * 91)),
    ):
        assert qualified(*one) != qualified(*other)


@pytest.mark.parametrize(("name", "is_one"), [("add", True), ("_private", True), ("a__b", False), ("1a", False)])
def test_a_local_tool_has_no_name_like_that_of_a_server_s_tool(name: str, is_one: bool) -> None:
    assert is_local(name) is is_one
