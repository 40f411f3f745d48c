"""Names of tools, which every provider accepts, and servers, whose file is read as other clients write it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.tools.names import is_local, qualified
from workbench.rules.tools.servers import MOST_SERVERS, parsed

ACCEPTED = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
NAMES = st.text(st.sampled_from("ab_-1é. "), min_size=1, max_size=40) | st.text(min_size=1, max_size=80)


@given(NAMES, NAMES)
def test_every_tool_gets_a_name_that_providers_accept(place: str, tool: str) -> None:
    name = qualified(place, tool)
    assert ACCEPTED.fullmatch(name)
    assert not is_local(name) or "__" not in name.strip("_")


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_tools_never_have_the_same_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (qualified(*one) == qualified(*other)) == (one == other)


def test_a_plain_name_stays_plain_and_what_would_be_ambiguous_gets_a_hash() -> None:
    plain = [("github", "create_issue"), ("github", "a__b"), ("my-server", "x")]
    assert [qualified(*both) for both in plain] == ["github__create_issue", "github__a__b", "my-server__x"]
    for one, other in (
        (("a", "b__c"), ("a__b", "c")),
        (("a_", "b"), ("a", "_b")),
        (("a", "x" * 90), ("a", "x" * 91)),
    ):
        assert qualified(*one) != qualified(*other)


@pytest.mark.parametrize(("name", "is_one"), [("add", True), ("_private", True), ("a__b", False), ("1a", False)])
def test_a_local_tool_has_no_name_like_that_of_a_server_s_tool(name: str, is_one: bool) -> None:
    assert is_local(name) is is_one


# The file with a project's MCP servers


def test_programs_and_urls_are_distinguished_and_keys_of_other_clients_left_out() -> None:
    found = parsed(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server"], "autoApprove": ["read"], "timeout": 3},
                "web": {"type": "http", "url": "https://example.org/mcp", "disabled": True},
            },
            "inputs": [],
        }
    )
    assert found.servers == {
        "files": StdioServer(command="npx", args=["-y", "server"]),
        "web": HttpServer(url="https://example.org/mcp"),
    }
    assert (found.disabled, found.problems) == ({"web"}, {})


def test_a_server_that_is_broken_or_has_an_ambiguous_name_does_not_harm_the_others() -> None:
    names = ("a__b", "notebook", "workbench", "", "-a", "a b", "ä", "x" * 51, "GOOD")
    broken = {"none": None, "empty": {}, "number": {"command": 3}, **{name: {"command": "x"} for name in names}}
    found = parsed({"mcpServers": {"good": {"command": "x"}} | broken})
    assert set(found.servers) == {"good"}
    assert found.problems.keys() == broken.keys()


def test_servers_of_a_file_are_limited_in_number() -> None:
    entries = {f"s{number}": {"command": "x"} for number in range(MOST_SERVERS + 2)}
    found = parsed({"mcpServers": entries})
    assert (len(found.servers), len(found.problems)) == (MOST_SERVERS, 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["mcpServers", "command", "url", "args", "env", "type"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_content_is_servers_or_problems(data: Any) -> None:
    found = parsed(data)
    assert found.servers.keys().isdisjoint(found.problems)
    assert found.disabled <= found.servers.keys()
