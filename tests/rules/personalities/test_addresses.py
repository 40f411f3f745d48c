"""The addresses at which traits may be called."""

from __future__ import annotations

import pytest

from workbench.rules.personalities.addresses import call_path, endpoint

BASE = "http://127.0.0.1:9000/koi-net"


def test_the_origin_of_the_node_is_called() -> None:
    for base_url, mcp_url in (
        (BASE, "http://127.0.0.1:9000/agents/ada"),
        (BASE, "http://127.0.0.1:9000/agents/ada/"),
        ("https://Example.org/koi-net", "https://example.org:443/agents/ada"),
        ("http://example.org/koi-net", "http://example.org:80/agents/ada"),
        ("http://[::1]:9000/koi-net", "http://[::1]:9000/agents/ada"),
    ):
        assert endpoint(base_url, mcp_url) == mcp_url.rstrip("/")


@pytest.mark.parametrize(
    "mcp_url",
    [
        None,
        "",
        "http://127.0.0.1:9001/agents/ada",
        "http://169.254.169.254:9000/agents/ada",
        "https://127.0.0.1:9000/agents/ada",
        "http://localhost:9000/agents/ada",
        "http://127.0.0.1:9000@internal/agents/ada",
        "http://internal@127.0.0.1:9000/agents/ada",
        "http://127.0.0.1:9000/agents/ada?to=",
        "http://127.0.0.1:9000/agents/ada#",
        "http://127.0.0.1:9000/agents/ada#x",
        "http://127.0.0.1:9000\\@internal/agents",
        "file:///etc/passwd",
        "//127.0.0.1:9000/agents/ada",
        "http://127.0.0.1:99999/agents/ada",
        "http://[::1/agents/ada",
    ],
)
def test_no_other_address_is_called(mcp_url: str | None) -> None:
    assert endpoint(BASE, mcp_url) is None


def test_a_node_without_an_address_is_not_called() -> None:
    assert endpoint(None, "http://127.0.0.1:9000/agents/ada") is None
    assert endpoint("ftp://127.0.0.1/", "ftp://127.0.0.1/") is None


def test_the_name_of_a_trait_is_one_part_of_the_path() -> None:
    assert call_path("a/../b?c#d") == "/tools/call/a%2F..%2Fb%3Fc%23d"
