"""The texts that connect an agent, each of them tried as a person would."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests import given
from tests.conftest import Admit, Served
from workbench.app import Workbench
from workbench.services.agents.connect import NAME, NETLOC, PROJECT, STEPS
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

PLACEHOLDER = "wba_…your-token…"


async def texts(served: Served, **arguments: Any) -> dict[str, str]:
    """The texts by id."""
    instructions = await served.workbench.call("connection_instructions", **arguments)
    return {one["id"]: one["text"] for one in instructions["instructions"]}


def environment(*first: Path) -> dict[str, str]:
    """Variables with the path of programs and the configuration."""
    path = ":".join(map(str, (*first, Path(sys.executable).parent, os.environ["PATH"])))
    return {"PATH": path, "WORKBENCH_CONFIG": os.environ["WORKBENCH_CONFIG"]}


@asynccontextmanager
async def running(*argv: str, token: str | None = None) -> AsyncIterator[Process]:
    """A process of its own, with a token in its environment; what it says can be read."""
    env = environment() | ({"WORKBENCH_TOKEN": token} if token else {})
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


async def test_connection_instructions_name_the_server_and_hold_no_token(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    instructions = await served.workbench.call("connection_instructions", agent_id="ada")
    assert (instructions["url"], instructions["mcp_url"]) == (served.info.url, served.info.mcp_url)
    assert {one["id"] for one in instructions["instructions"]} >= {
        "websocket",
        "claude-code",
        "codex",
        "gemini",
        "mcp",
        "curl",
    }
    for one in instructions["instructions"]:
        assert not any(said in one["text"] for said in (NETLOC, NAME, PROJECT)), one["id"]
        if one["id"] != "mcp-stdio":
            assert served.info.url.removeprefix("http://") in one["text"], one["id"]
            assert "WORKBENCH_TOKEN" in one["text"], one["id"]
    for secret in (ada.token, served.workbench.operator_token):
        assert secret not in json.dumps(instructions)


async def test_connection_instructions_need_an_existing_agent_and_a_running_server(
    served: Served, workbench: Workbench, admit: Admit
) -> None:
    await given.refuses("AGENT_NOT_FOUND", workbench.call("connection_instructions", agent_id="nobody"))
    ada = await admit("ada")
    await given.refuses("FORBIDDEN", workbench.dispatch(ada.caller, "connection_instructions", {}))
    await served.servers.stop()
    await given.refuses("NO_SERVER", workbench.call("connection_instructions"))


async def test_the_script_registers_waits_and_goes_on_when_it_is_admitted(served: Served, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text((await texts(served))["websocket"])
    async with running(sys.executable, "-u", str(script)) as process:
        assert process.stdout is not None
        said = [(await process.stdout.readline()).decode() for _ in range(2)]
        assert said[0].startswith("Please select a tool")
        token = said[1].removeprefix("WORKBENCH_TOKEN is ").strip()
        [approval] = (await served.workbench.call("list_approvals"))["approvals"]
        assert approval["payload"]["name"] == NAME
        await served.workbench.call("approve", approval_id=approval["id"], choices={"agent_id": NAME})
        rest = await lines(process)
    assert ["agent_assigned" in rest[0], "authentication_success" in rest[1], NAME in rest[2]] == [True] * 3
    async with running(sys.executable, str(script), token=token) as process:
        again = await lines(process)
    assert "authentication_success" in again[1]
    assert "whoami_response" in again[2]
    assert "error" not in again[3]


@dataclass
class Typed:
    """The outcome of a typed text: its output, and its calls of the clients' programs."""

    out: str
    token: str
    calls: list[dict[str, Any]]

    @property
    def added(self) -> list[list[str]]:
        """The arguments of the commands that add a server."""
        return [call["argv"][2:] for call in self.calls if call["argv"][:2] == ["mcp", "add"]]


async def typed(text: str, path: Path, *programs: str) -> Typed:
    """Type a text into a shell, putting the token where it belongs; the clients only note how they are called."""
    for program in programs:
        stub = path / "bin" / program
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(STUB.format(python=sys.executable, calls=path / "calls"))
        stub.chmod(0o755)
    first, export, rest = text.partition("export WORKBENCH_TOKEN=")
    registered = await shell(first, path)
    token = registered.partition('"token": "')[2].partition('"')[0] or registered.partition('"token":"')[2][:47]
    assert token.startswith("wba_")
    out = await shell((export + rest).replace(PLACEHOLDER, token), path)
    calls = path / "calls"
    return Typed(out, token, [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else [])


STUB = """#!{python}
import json, os, sys
with open("{calls}", "a") as file:
    file.write(json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd()}}) + "\\n")
"""


async def shell(script: str, path: Path) -> str:
    """The output of a script that a shell runs to its end."""
    env = environment(path / "bin") | {"HOME": os.environ["HOME"]}
    process = await asyncio.create_subprocess_exec("sh", "-e", "-c", script, env=env, cwd=path, stdout=PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, script
    return out.decode()


async def answer(client: Client) -> dict[str, Any]:
    """The agent that the server takes the client for."""
    structured_content = (await client.call_tool("whoami", {})).structured_content
    assert structured_content is not None
    return structured_content


async def over_http(url: str, headers: dict[str, str]) -> dict[str, Any]:
    http = httpx2.AsyncClient(headers=headers, trust_env=False)
    async with http, Client(streamable_http_client(url, http_client=http)) as client:
        return await answer(client)


async def over_stdio(command: str, *args: str, **env: str) -> dict[str, Any]:
    async with Client(StdioServerParameters(command=command, args=[*args], env=environment() | env)) as client:
        return await answer(client)


def header(value: str) -> dict[str, str]:
    """A header as it is typed."""
    name, _, content = value.partition(": ")
    return {name: content}


def variables(added: list[str], option: str) -> dict[str, str]:
    """The variables that a command gives to the server."""
    return dict(added[at + 1].split("=", 1) for at, word in enumerate(added) if word == option)


async def test_the_instructions_connect_claude_code_over_http_and_stdio(served: Served, tmp_path: Path) -> None:
    ran = await typed((await texts(served))["claude-code"], tmp_path, "claude")
    http, stdio = ran.added
    assert http[:3] == ["--transport", "http", "workbench"]
    session = next(call["argv"][1] for call in ran.calls if call["argv"][:1] == ["--mcp-config"])
    given = json.loads(session.replace("${WORKBENCH_TOKEN}", ran.token))["mcpServers"]["workbench"]
    assert given["type"] == "http"
    options, command = stdio[: stdio.index("--")], stdio[stdio.index("--") + 1 :]
    answers = [
        await over_http(http[3], header(http[5])),
        await over_http(given["url"], given["headers"]),
        await over_stdio(*command, **variables(options, "--env")),
    ]
    place = served.workbench.settings.worktrees / NAME
    assert [(answer["agent_id"], answer["worktree_path"]) for answer in answers] == [(NAME, str(place))] * 3
    assert {call["cwd"] for call in ran.calls} == {str(place)}


async def test_the_instructions_connect_codex_over_http_and_stdio(served: Served, tmp_path: Path) -> None:
    ran = await typed((await texts(served))["codex"], tmp_path, "codex")
    http, stdio = ran.added
    assert (http[:2], http[3:]) == (["workbench", "--url"], ["--bearer-token-env-var", "WORKBENCH_TOKEN"])
    command = stdio[stdio.index("--") + 1 :]
    assert (await over_http(http[2], {"Authorization": f"Bearer {ran.token}"}))["agent_id"] == NAME
    assert (await over_stdio(*command, **variables(stdio, "--env")))["agent_id"] == NAME


async def test_the_instructions_connect_gemini_cli_over_http_and_stdio(served: Served, tmp_path: Path) -> None:
    ran = await typed((await texts(served))["gemini"], tmp_path, "gemini")
    http, stdio = ran.added
    assert http[:5] == ["--scope", "user", "--transport", "http", "--header"]
    assert (await over_http(http[7], header(http[5])))["agent_id"] == NAME
    assert stdio[-3:] == ["workbench", "workbench", "mcp"]
    assert (await over_stdio(*stdio[-2:], **variables(stdio, "-e")))["agent_id"] == NAME


async def test_the_instructions_give_any_mcp_client_a_working_configuration(served: Served, tmp_path: Path) -> None:
    ran = await typed((await texts(served))["mcp"], tmp_path)
    server = json.loads(ran.out)["mcpServers"]["workbench"]
    assert (await over_http(server["url"], server["headers"]))["agent_id"] == NAME


async def test_the_commands_for_curl_work(served: Served, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    ran = await typed((await texts(served))["curl"].replace("\ncurl", "\necho; curl"), tmp_path)
    who, events = [json.loads(line) for line in ran.out.splitlines() if line]
    assert (who["data"]["agent_id"], events["success"]) == (NAME, True)


async def test_a_known_agent_gets_a_new_token_in_place_of_the_registration(served: Served, admit: Admit) -> None:
    await admit("ada")
    found = await texts(served, agent_id="ada")
    for name in STEPS:
        assert "register" not in found[name].partition("\n# 4.")[0]
        assert f"workbench --project {served.workbench.settings.project} token ada\n" in found[name]


async def test_the_command_for_mcp_clients_needs_no_token(served: Served, tmp_path: Path) -> None:
    text = (await texts(served))["mcp-stdio"]
    server = json.loads(await shell(text, tmp_path))["mcpServers"]["workbench"]
    async with Client(StdioServerParameters(**server, env=environment())) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["register", "registration_status"]
        await client.call_tool("register", {"name": "eve", "persona_id": "implementer"})
        (admission,) = [line for line in text.splitlines() if line.endswith(" approve NAME")]
        assert "eve is admitted" in await shell(admission.removeprefix("#").replace("NAME", "eve"), tmp_path)
        assert (await answer(client))["agent_id"] == "eve"


async def test_a_project_with_spaces_and_quotes_in_its_path_is_quoted(tmp_path: Path, database: dict[str, Any]) -> None:
    place = tmp_path / 'it\'s a "project" $HOME'
    place.mkdir()
    settings = Settings(project=place, port=0, **database)
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        instructions = await workbench.call("connection_instructions")
        found = {one["id"]: one["text"] for one in instructions["instructions"]}
        server = json.loads(await shell(found["mcp-stdio"], tmp_path))["mcpServers"]["workbench"]
        assert server["args"] == ["--project", str(place), "mcp"]
        line = next(line for line in found["codex"].splitlines() if line.endswith(" mcp"))
        assert shlex.split(line)[-2] == str(place)
