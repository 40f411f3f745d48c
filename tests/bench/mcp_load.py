"""MCP servers in children, and a client so thin that the time it measures is the server's."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn

from tests.bench.child import Child, say
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.system.interpreter import rare_collections

UPSTREAM = "up"
"""The name of the MCP server whose tools a project passes on."""
PROTOCOL = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Call:
    """A tool call that a client repeats: with its token, if the server wants one."""

    tool: str
    arguments: Mapping[str, Any]
    token: str | None = None


class Target:
    """A server in a child that has said its port; its clients call at the same time, each one call after another."""

    def __init__(self, child: Child, calls: Callable[[Any], Sequence[Call]], each: int) -> None:
        hello = child.hear()
        self._url = _mcp_url(hello)
        self._calls = calls(hello)
        self._each = each

    def milliseconds(self, clients: int) -> float:
        """Wall time of a call, divided among the clients."""
        return asyncio.run(self._measure(self._calls[:clients]))

    async def _measure(self, calls: Sequence[Call]) -> float:
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
            started = time.perf_counter()
            await asyncio.gather(*(self._client(http, call) for call in calls))
            return (time.perf_counter() - started) / self._each / len(calls) * 1e3

    async def _client(self, http: httpx2.AsyncClient, call: Call) -> None:
        headers = headers_of("tools/call", call.token) | {"Mcp-Name": call.tool}
        params = {"name": call.tool, "arguments": call.arguments, "_meta": META}
        for number in range(self._each):
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            answer = (await http.post(self._url, json=body, headers=headers)).json()
            if "result" not in answer or answer["result"].get("isError"):
                raise AssertionError(f"{call.tool}: {answer}")


def headers_of(method: str, token: str | None) -> dict[str, str]:
    """The headers of a request."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": PROTOCOL, "Mcp-Method": method}
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def url_of(child: Child) -> str:
    """Where the MCP server in a child that has just started answers."""
    return _mcp_url(child.hear())


def _mcp_url(hello: Mapping[str, Any]) -> str:
    return f"http://127.0.0.1:{hello['port']}/mcp"


async def serve(app: Any, **hello: Any) -> None:
    """In a child: serve a bare application as Workbench serves its own, until the parent lets go."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
    running = asyncio.create_task(server.serve(sockets=[bound]))
    while not server.started:
        await asyncio.sleep(0.002)
    await _announced(port=bound.getsockname()[1], **hello)
    server.should_exit = True
    await running


async def _announced(**hello: Any) -> None:
    """In a child: say that the server is there, and wait for the parent to let go."""
    say(hello)
    await asyncio.to_thread(sys.stdin.read)


async def serve_workbench(workbench: Workbench, upstream: str | None = None, **hello: Any) -> None:
    """In a child: serve a project, as `workbench serve` does, until the parent lets go.

    Args:
        upstream: the URL of an MCP server whose tools are passed on.
    """
    with rare_collections(workbench.settings.gc_threshold):
        async with Servers(workbench) as servers:
            info = await servers.start(0)
            if upstream is not None:  # its tools can be called as soon as this is done
                await workbench.call("add_tool_server", name=UPSTREAM, config={"url": upstream})
            await _announced(port=int(info.url.rpartition(":")[2]), **hello)
