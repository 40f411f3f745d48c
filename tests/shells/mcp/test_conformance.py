"""The conformance suite of the MCP project, for both eras of the protocol, where it is installed.

npm ci --prefix tests/worker/programs

Many of its scenarios call tools, prompts and resources of their own, which only a server made for the suite has: those
cannot succeed here. All others have to, and each check of `server-stateless` that needs no such tool.
"""

from __future__ import annotations

import asyncio
import json
import os
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
from workbench.app import Workbench
from workbench.shells.connections import Connections
from workbench.shells.mcp.in_process import Endpoint
from workbench.shells.serve import application

pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(240)]

PROGRAMS = Path(__file__).parents[2] / "worker" / "programs" / "node_modules" / ".bin"
NEEDS_TOOLS_OF_THE_SUITE = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""The checks of `server-stateless` that call a tool of the suite."""
PASSED = {
    "2025-11-25": {
        *("server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list"),
        *("dns-rebinding-protection", "server-sse-multiple-streams", "server-sse-polling"),
    },
    "2026-07-28": {
        *("tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found", "caching"),
        *("dns-rebinding-protection", "server-sse-multiple-streams", "http-header-validation"),
        *("input-required-result-missing-input-response", "input-required-result-unsupported-methods"),
        *("input-required-result-ignore-extra-params", "input-required-result-validate-input"),
        "tasks-status-notifications",
    },
}
"""The scenarios of each version that need nothing but what is offered here."""


@asynccontextmanager
async def served_for(workbench: Workbench, token: str) -> AsyncIterator[str]:
    """The address of the MCP endpoint, served for clients that cannot send a token: it is added to their requests."""
    stopping = asyncio.Event()
    endpoint = Endpoint(workbench, stopping)
    app = application(workbench, endpoint, stopping, Connections(workbench.settings, files=1_000))

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


async def failures(url: str, version: str, results: Path) -> dict[str, set[str]]:
    """The checks that fail, by scenario; those of a scenario that succeeds are an empty set."""
    process = await asyncio.create_subprocess_exec(
        *(PROGRAMS / "conformance", "server", "--url", url, "--requirements", version, "--output-dir", results),
        env=os.environ | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
        stdout=PIPE,
        stderr=STDOUT,
    )
    out, _ = await process.communicate()
    found = {}
    for file in results.glob("*/checks.json"):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name)
        assert named is not None
        checks = json.loads(file.read_text("utf-8"))
        found[named[1]] = {check["id"] for check in checks if check["status"] == "FAILURE"}
    assert found, out.decode()
    return found


@pytest.mark.parametrize("version", PASSED)
async def test_what_is_offered_conforms(workbench: Workbench, admit: Admit, tmp_path: Path, version: str) -> None:
    await workbench.call("create_task", title="Count penguins", persona_id="implementer")
    pam = await admit("pam", role="planner")
    async with served_for(workbench, pam.token) as url:
        found = await failures(url, version, tmp_path / "results")
    assert {scenario for scenario, ids in found.items() if not ids} == PASSED[version]
    if version == "2026-07-28":
        assert found["server-stateless"] == NEEDS_TOOLS_OF_THE_SUITE
