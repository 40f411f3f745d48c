"""B27: 70 tools listed over MCP, operations and those of an upstream server, beside a bare server with the same."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from tests.bench.child import Child, play
from tests.bench.mcp_load import META, UPSTREAM, headers_of, serve, serve_workbench, url_of
from tests.bench.project import identify, opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns
from workbench.shells.mcp.server import offered

TOOLS = 70
AGENT = "agent-0"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds a list, of one client."""
    with scratch() as directory:
        seed = prepare(directory / "ours", agents=1, tasks=0)
        token, each = seed.tokens[0], 5 if quick else 40
        with (
            Child("b27", "upstream") as upstream,
            Child("b27", "ours", str(seed.root), token, url_of(upstream)) as ours,
        ):
            here = url_of(ours)
            listed = directory / "tools.json"
            listed.write_text(json.dumps(asyncio.run(_listed(here, token, 1))))
            with Child("b27", "bare", str(listed)) as bare:
                times = take_turns(
                    rounds * SHORT,
                    ours=partial(_milliseconds, here, token, each),
                    bare=partial(_milliseconds, url_of(bare), token, each),
                )
    return {"": Samples(times["ours"], times["bare"], "ms")}


def _milliseconds(url: str, token: str, each: int) -> float:
    started = time.perf_counter()
    asyncio.run(_listed(url, token, each))
    return (time.perf_counter() - started) / each * 1e3


async def _listed(url: str, token: str, times: int) -> list[dict[str, Any]]:
    """The tools, listed so often one after the other."""
    headers = headers_of("tools/list", token)
    async with httpx2.AsyncClient(timeout=30, trust_env=False, headers=headers) as http:
        for number in range(times):
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {"_meta": META}}
            answer = (await http.post(url, json=body)).json()
            assert len(answer["result"]["tools"]) == TOOLS
    tools: list[dict[str, Any]] = answer["result"]["tools"]
    return tools


async def _ours(root: str, token: str, url: str) -> None:
    async with opened(Path(root)) as workbench:
        (caller,) = await identify(workbench, [token])
        granted = [f"{UPSTREAM}__tool_{number}" for number in range(TOOLS)]
        await workbench.call("update_agent", agent_id=AGENT, changes={"tools": granted[:1]})
        own = len(offered(workbench.catalogue.values(), await workbench.renewed(caller)))
        await workbench.call("update_agent", agent_id=AGENT, changes={"tools": granted[own:]})
        await serve_workbench(workbench, url)


async def _upstream() -> None:
    from mcp.server import MCPServer

    server: Any = MCPServer("upstream", log_level="CRITICAL")

    async def add(a: int, b: int = 2) -> int:
        """Add two numbers, and return what they are together."""
        return a + b

    for number in range(TOOLS):
        server.add_tool(add, name=f"tool_{number}")
    await serve(server.streamable_http_app())


async def _bare(listed: str) -> None:
    from mcp.server import MCPServer
    from mcp.types import Tool

    raw = [Tool.model_validate(tool).model_dump() for tool in json.loads(Path(listed).read_text())]

    class Bare(MCPServer):
        """Makes the tools of its list anew for each request, as its parent class does."""

        async def list_tools(self) -> list[Tool]:
            return [Tool(**tool) for tool in raw]

    await serve(Bare("bare", log_level="CRITICAL").streamable_http_app())


ROW = Row(
    "B27",
    f"MCP list of {TOOLS} tools: operations, and tools of an upstream server",
    "the same tools in a bare MCPServer, without tokens",
    {"": at_most(1.2)},
    run,
)

if __name__ == "__main__":
    play(ours=_ours, bare=_bare, upstream=_upstream)
