"""The texts that connect an agent, each of them tried as a person would."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import tomllib
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import Admit, Served
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.services.agents.connect import NAME, NETLOC, PROJECT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PLACEHOLDER = "wba_…your-token…"


async def texts(served: Served, **arguments: Any) -> dict[str, str]:
    """The texts by id."""
    told = await served.workbench.call("connection_instructions", **arguments)
    return {one["id"]: one["text"] for one in told["instructions"]}


@asynccontextmanager
async def running(*argv: str, token: str | None = None) -> AsyncIterator[Process]:
    """A process of its own, with a token in its environment; what it says can be read."""
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    env |= {"WORKBENCH_TOKEN": token} if token else {}
    process = await asyncio.create_subprocess_exec(*argv, env=env, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lines(process: Process) -> list[str]:
    """All that a process still says until it ends by itself."""
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().splitlines()


async def test_they_say_where_this_server_is_and_hold_no_token(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    told = await served.workbench.call("connection_instructions", agent_id="ada")
    assert (told["url"], told["mcp_url"]) == (served.info.url, served.info.mcp_url)
    assert {one["id"] for one in told["instructions"]} >= {"websocket", "claude-code", "codex", "gemini", "mcp", "curl"}
    for one in told["instructions"]:
        assert not any(said in one["text"] for said in (NETLOC, NAME, PROJECT)), one["id"]
        if one["id"] != "mcp-stdio":
            assert served.info.url.removeprefix("http://") in one["text"], one["id"]
            assert "WORKBENCH_TOKEN" in one["text"] or PLACEHOLDER in one["text"], one["id"]
    for secret in (ada.token, served.workbench.operator_token):
        assert secret not in json.dumps(told)


async def test_they_are_written_for_agents_that_there_are_and_a_server_that_runs(
    served: Served, workbench: Workbench, admit: Admit
) -> None:
    with pytest.raises(WorkbenchError, match="AGENT_NOT_FOUND"):
        await workbench.call("connection_instructions", agent_id="nobody")
    ada = await admit("ada")
    with pytest.raises(WorkbenchError, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "connection_instructions", {})
    await served.servers.stop()
    with pytest.raises(WorkbenchError, match="NO_SERVER"):
        await workbench.call("connection_instructions")


async def test_the_script_registers_waits_and_goes_on_when_it_is_admitted(served: Served, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text((await texts(served))["websocket"])
    async with running(sys.executable, "-u", str(script)) as process:
        assert process.stdout is not None
        said = [(await process.stdout.readline()).decode() for _ in range(2)]
        assert said[0].startswith("Please select a tool")
        token = said[1].removeprefix("WORKBENCH_TOKEN is ").strip()
        [asked] = (await served.workbench.call("list_approvals"))["approvals"]
        assert asked["payload"]["name"] == NAME
        await served.workbench.call("approve", approval_id=asked["id"], choices={"agent_id": NAME})
        rest = await lines(process)
    assert ["agent_assigned" in rest[0], "authentication_success" in rest[1], NAME in rest[2]] == [True] * 3
    async with running(sys.executable, str(script), token=token) as process:
        again = await lines(process)
    assert "authentication_success" in again[1]
    assert "whoami_response" in again[2]
    assert "error" not in again[3]


async def test_the_commands_for_curl_work(served: Served, admit: Admit) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    ada = await admit("ada")
    async with running(
        "sh", "-c", (await texts(served))["curl"].replace("\ncurl", "\necho; curl"), token=ada.token
    ) as p:
        answers = [json.loads(line) for line in await lines(p) if line]
    assert [answer["success"] for answer in answers] == [True] * 3
    assert answers[0]["data"]["status"] == "pending"
    assert answers[1]["data"]["agent_id"] == "ada"


async def test_the_configurations_of_mcp_clients_connect_one(served: Served, admit: Admit) -> None:
    ada, told = await admit("ada"), await texts(served)
    plain = json.loads(told["mcp"].replace(PLACEHOLDER, ada.token))["mcpServers"]["workbench"]
    gemini = json.loads(told["gemini"].replace("$WORKBENCH_TOKEN", ada.token))["mcpServers"]["workbench"]
    codex = tomllib.loads(told["codex"])["mcp_servers"]["workbench"]
    assert codex["bearer_token_env_var"] == "WORKBENCH_TOKEN"
    claude = shlex.split(told["claude-code"].replace("$WORKBENCH_TOKEN", ada.token), comments=True)
    assert claude[:6] == ["claude", "mcp", "add", "--transport", "http", "workbench"]
    name, _, value = claude[8].partition(": ")
    bearer = {"Authorization": f"Bearer {ada.token}"}
    for url, headers in (
        (plain["url"], plain["headers"]),
        (gemini["httpUrl"], gemini["headers"]),
        (codex["url"], bearer),
        (claude[6], {name: value}),
    ):
        http = httpx2.AsyncClient(headers=headers, trust_env=False)
        async with http, Client(streamable_http_client(url, http_client=http)) as client:
            result = await client.call_tool("whoami", {})
        assert result.structured_content is not None
        assert result.structured_content["agent_id"] == "ada"


async def test_the_command_for_mcp_clients_needs_no_token(served: Served) -> None:
    server = json.loads((await texts(served))["mcp-stdio"])["mcpServers"]["workbench"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    async with Client(
        StdioServerParameters(**server, env={"PATH": path, "WORKBENCH_CONFIG": os.environ["WORKBENCH_CONFIG"]})
    ) as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == ["register", "registration_status"]
