"""B21: a call of an upstream MCP server's tool through Workbench, beside the same call through a proxy that is made of
the MCP package's own server and client, and does nothing else, and at the upstream itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from tests.bench.child import Child, play
from tests.bench.mcp_load import UPSTREAM, serve, serve_workbench, url_of
from tests.bench.project import opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns

PROXIED = "a proxied call"
BESIDE_UPSTREAM = "a proxied call, beside the upstream server"
BARE_PROXY = "the same call through a proxy made of the MCP package alone"
UPSTREAM_ITSELF = "the same call at the upstream server"
AGENT = "agent-0"
ARGUMENTS: dict[str, Any] = {"a": 1, "b": 2}


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds a call, of one client."""
    with scratch() as directory:
        seed = prepare(directory / "ours", agents=1, tasks=0)
        each = 10 if quick else 100
        with Child("b21", "upstream") as upstream:
            direct = url_of(upstream)
            with Child("b21", "ours", str(seed.root), direct) as ours, Child("b21", "proxy", direct) as proxy:
                calls = {
                    "ours": (url_of(ours), f"{UPSTREAM}__add", seed.tokens[0]),
                    "direct": (direct, "add", "none"),
                    "proxy": (url_of(proxy), "add", "none"),
                }
                times = take_turns(
                    rounds * SHORT, **{k: lambda c=c: asyncio.run(_milliseconds(*c, each)) for k, c in calls.items()}
                )
    return {
        PROXIED: Samples(times["ours"], times["proxy"], "ms"),
        BESIDE_UPSTREAM: Samples(times["ours"], times["direct"], "ms", UPSTREAM_ITSELF),
    }


async def _milliseconds(url: str, tool: str, token: str, each: int) -> float:
    """Wall time of a call by the client of the MCP package, which agents use, too."""
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await client.call_tool(tool, ARGUMENTS)
        started = time.perf_counter()
        for _ in range(each):
            if (await client.call_tool(tool, ARGUMENTS)).is_error:
                raise AssertionError(f"{tool} failed")
        return (time.perf_counter() - started) / each * 1e3


async def _ours(root: str, url: str) -> None:
    async with opened(Path(root)) as workbench:
        await workbench.call("update_agent", agent_id=AGENT, changes={"tools": [UPSTREAM]})
        await serve_workbench(workbench, url)


async def _upstream() -> None:
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    server: Any = MCPServer("upstream", log_level="CRITICAL")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def add(a: int, b: int) -> int:
        return a + b

    await serve(server.streamable_http_app())


async def _proxy(upstream: str) -> None:
    from mcp.client import Client
    from mcp.server import MCPServer

    async with Client(upstream) as client:
        server: Any = MCPServer("proxy", log_level="CRITICAL")

        @server.tool()
        async def add(a: int, b: int) -> int:
            result = await client.call_tool("add", {"a": a, "b": b})
            assert result.structured_content is not None
            return int(result.structured_content["result"])

        await serve(server.streamable_http_app())


ROW = Row(
    "B21",
    "MCP call of an upstream server's tool, with grant, permission and record",
    BARE_PROXY,
    {PROXIED: at_most(1.5)},
    run,
)

if __name__ == "__main__":
    play(ours=_ours, proxy=_proxy, upstream=_upstream)
