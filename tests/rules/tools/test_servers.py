"""The file with a project's MCP servers is read as other clients write it; what is wrong stays with its own server."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.tools.servers import MOST_SERVERS, parsed


def test_programs_and_urls_are_told_apart_and_keys_of_other_clients_are_left_out() -> None:
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


def test_there_is_a_most_of_servers() -> None:
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
