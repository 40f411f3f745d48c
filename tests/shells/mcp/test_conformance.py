"""The conformance suites of the MCP project, for both eras of the protocol, where they are installed.

npm ci --prefix tests/worker/programs

The suites call tools, prompts and resources of their own, which `tests.shells.mcp.suite` adds to Workbench's server.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from tests.conftest import Admit
from tests.shells.mcp.suite import tools
from tests.shells.mcp.suite.protocol import load
from workbench.app import Workbench
from workbench.services.tools import catalogue
from workbench.services.tools.sources import SOURCES
from workbench.shells.connections import ServerConnections
from workbench.shells.mcp.in_process import McpApplication
from workbench.shells.models.gateway import Gateway
from workbench.shells.serve import application

pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(240)]

PROGRAMS = Path(__file__).parents[2] / "worker" / "programs" / "node_modules"
SUITES = {
    "of 2025": ("conformance-of-2025", "--suite", "all"),
    "2025-11-25": ("@modelcontextprotocol/conformance", "--requirements", "2025-11-25"),
    "2026-07-28": ("@modelcontextprotocol/conformance", "--requirements", "2026-07-28"),
}
FAILED = {"FAILURE", "WARNING"}
EXPECTED = {
    "server-sse-polling": {"server-sse-priming-event", "server-sse-retry-field"},
}
"""Advice that Workbench does not follow: a stream that was cut off is not resumed, its calls are made again."""
OFFERS_NO_TASKS = re.compile("tasks-(?!status-notifications).*")
"""The scenarios of an optional extension that Workbench does not have, but for one that passes without it."""


@asynccontextmanager
async def served_for(workbench: Workbench, token: str) -> AsyncIterator[str]:
    """The address of the MCP endpoint, served for clients that cannot send a token: it is added to their requests."""
    stopping = asyncio.Event()
    endpoint = McpApplication(workbench, stopping)
    load(endpoint._manager.app)
    app = application(
        workbench, endpoint, Gateway(workbench, stopping), stopping, ServerConnections(workbench.settings, files=1_000)
    )

    async def authorised(scope: Scope, receive: Receive, send: Send) -> None:
        scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await app(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(authorised, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        async with endpoint.run(), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[bound]))
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
            stopping.set()
            await endpoint.end()
            server.should_exit = True


async def failures(url: str, suite: tuple[str, ...], results: Path) -> dict[str, set[str]]:
    """The checks that fail or warn, by scenario; those of a scenario that succeeds are an empty set."""
    package, *options = suite
    process = await asyncio.create_subprocess_exec(
        *(PROGRAMS / ".bin" / "node", PROGRAMS / package / "dist" / "index.js"),
        *("server", "--url", url, *options, "--output-dir", results),
        stdout=PIPE,
        stderr=STDOUT,
    )
    out, _ = await process.communicate()
    found = {}
    for file in results.glob("*/checks.json"):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name)
        assert named is not None
        checks = json.loads(file.read_text("utf-8"))
        found[named[1]] = {check["id"] for check in checks if check["status"] in FAILED}
    assert found, out.decode()
    return found


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES.keys())
async def test_the_endpoint_conforms(
    workbench: Workbench, admit: Admit, tmp_path: Path, suite: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "SOURCES", [*SOURCES, tools])
    pam = await admit("pam", role="planner", tools=["*"])
    async with served_for(workbench, pam.token) as url:
        found = await failures(url, suite, tmp_path / "results")
    failed = {name: ids for name, ids in found.items() if ids and not OFFERS_NO_TASKS.fullmatch(name)}
    assert failed == {name: ids for name, ids in EXPECTED.items() if name in found}
