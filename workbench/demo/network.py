"""The demo of spec 5: a coordinator and two agents, three processes; discovery, and a call from end to end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.client.discovery import RunningServer, find_server
from workbench.client.http import HttpClient
from workbench.errors import Unavailable
from workbench.state.settings import shipped

COORDINATOR = "coordinator"
AGENTS = ("helpful-agent", "creative-agent")
TOOL = "helpful-agent__calculate"
EXPRESSION = "6 * (3 + 4)"
START_SECONDS = 60.0
DISCOVERY_SECONDS = 30.0
END_SECONDS = 10.0
PAUSE_SECONDS = 0.1

Say = Callable[[str], None]


@dataclass(frozen=True)
class Demonstration:
    """What the demo has shown.

    Args:
        personalities: those that the coordinator found: names, versions, and the names of their tools.
        result: what the call returned.
        call: its record at the agent that ran it.
    """

    personalities: list[dict[str, Any]]
    result: Any
    call: dict[str, Any]


async def run(directory: Path, say: Say) -> Demonstration:
    """Run the demo; its processes end with it.

    Args:
        directory: for the state of the three nodes.

    Raises:
        Unavailable: ``DEMO_FAILED``: a process did not start, or what it should show did not happen.
    """
    async with AsyncExitStack() as stack:
        contact = f"http://127.0.0.1:{_free_port()}/koi-net"
        nodes = {}
        for name in (COORDINATOR, *AGENTS):
            say(f"Starting {name}, a process of its own.")
            config = _configured(name, contact)
            nodes[name] = await stack.enter_async_context(_node(name, config, directory / name))
        say("Waiting until the coordinator has found the agents on the network.")
        found = await _discovered(nodes[COORDINATOR])
        for one in found:
            say(f"  {one['name']}/{one['version']}, tools: {', '.join(one['tools']) or 'none'}")
        say(f"Calling {TOOL} with {EXPRESSION!r}, through the coordinator.")
        answer = await nodes[COORDINATOR].call("call_tool", name=TOOL, arguments={"expression": EXPRESSION})
        result = answer["result"]["result"]
        say(f"  The answer of helpful-agent: {result}")
        calls = (await nodes[AGENTS[0]].call("list_tool_calls"))["calls"]
        return Demonstration(found, result, calls[0])


def _configured(name: str, contact: str) -> dict[str, str]:
    """The environment for a node: free ports in place of those in the examples."""
    section = "coordinator" if name == COORDINATOR else "agent"
    base_url = contact if name == COORDINATOR else f"http://127.0.0.1:{_free_port()}/koi-net"
    changes: dict[str, Any] = {section: {"base_url": base_url}}
    if name != COORDINATOR:
        changes["network"] = {"first_contact": contact}
    return {"KOI_MCP_CONFIG": json.dumps(changes)}


@asynccontextmanager
async def _node(name: str, environment: Mapping[str, str], directory: Path) -> AsyncIterator[HttpClient]:
    """A node as a process, with a client of its operator."""
    role = "coordinator" if name == COORDINATOR else "agent"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "output.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "workbench.cli", "koi", role),
            *("--config", str(shipped("data", "koi", f"{name}.json")), "--directory", str(directory)),
            cwd=directory,
            env={**os.environ, **environment, "WORKBENCH_CONFIG": str(directory)},  # it leaves no note of itself
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        server = await _joined(name, directory, process)
        async with HttpClient(server.info.url, server.operator_token) as client:
            yield client
    finally:
        await _ended(process)


async def _joined(name: str, directory: Path, process: asyncio.subprocess.Process) -> RunningServer:
    """The server of a node, once it takes part in the network.

    Raises:
        Unavailable: ``DEMO_FAILED``.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while process.returncode is None:
                server = await find_server(directory / ".aiswarm" / "server.json")
                if server is not None and await _takes_part(server):
                    return server
                await asyncio.sleep(PAUSE_SECONDS)
    written = (directory / "output.log").read_text("utf-8", "replace").strip().splitlines()[-5:]
    raise Unavailable("DEMO_FAILED", "\n".join([f"{name} did not start.", *written]))


async def _takes_part(server: RunningServer) -> bool:
    async with HttpClient(server.info.url, server.operator_token) as client:
        return bool((await client.call("get_network"))["joined"])


async def _ended(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_SECONDS)


async def _discovered(coordinator: HttpClient) -> list[dict[str, Any]]:
    """The personalities of the agents, as the coordinator lists them.

    Raises:
        Unavailable: ``DEMO_FAILED``.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCOVERY_SECONDS):
            while True:
                found: list[dict[str, Any]] = (await coordinator.call("list_personalities"))["personalities"]
                if {one["name"] for one in found} >= set(AGENTS):
                    return found
                await asyncio.sleep(PAUSE_SECONDS)
    raise Unavailable("DEMO_FAILED", "The coordinator did not find the agents.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
