"""`workbench mcp` as an agent starts it: a real process, spoken to by the library's own client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import ToolListChangedNotification

from tests import given
from tests.conftest import Admit, Command, Served
from tests.shells.mcp.sessions import data, stdio_session
from workbench.model import Level
from workbench.ops import Caller
from workbench.shells.mcp.guidance import guidance
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

Start = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def start(settings: Settings) -> Start:
    """`async with start(token, era) as client`: the process, with a client at its other end."""
    return partial(stdio_session, settings.project)


class Announced:
    """Whether a session was told that there are other tools."""

    def __init__(self) -> None:
        self._changed = anyio.Event()
        self.wait = self._changed.wait

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def workers_tools(served: Served) -> list[str]:
    catalogue = served.workbench.catalogue.values()
    worker = Caller(Level.WORKER, "ada")
    return [op.name for op in catalogue if op.tool and op.allow >= Level.READ and op.permits(worker)]


async def test_an_agent_that_registers_here_continues_with_its_own_token(
    served: Served, start: Start, era: str
) -> None:
    changed = Announced()
    async with start(era=era, message_handler=changed) as client:
        assert await names(client) == ["register", "registration_status"]
        registration = data(await client.call_tool("register", {"name": "ada", "persona_id": "implementer"}))
        assert registration["status"] == "pending"
        assert await names(client) == ["register", "registration_status"]
        refused = await client.call_tool("claim_task", {})
        assert refused.is_error
        assert data(refused)["error"]["code"] == "NOT_ASSIGNED"
        await served.workbench.call("approve", approval_id=registration["approval_id"])
        state = data(await client.call_tool("registration_status", {"wait_seconds": 30}))
        assert state["agent_id"] == "ada"
        assert state["status"] in ("assigned", "active")  # active once it has been heard of under its own token
        if era == "legacy":
            with anyio.fail_after(30):
                await changed.wait()
        assert await names(client) == workers_tools(served)
        assert data(await client.call_tool("whoami", {}))["agent_id"] == "ada"


async def test_an_agent_that_is_rejected_is_told_why(served: Served, start: Start) -> None:
    async with start() as client:
        registration = data(await client.call_tool("register", {"name": "ada"}))
        await served.workbench.call("reject", approval_id=registration["approval_id"], reason="Not today")
        state = data(await client.call_tool("registration_status", {"wait_seconds": 30}))
        assert (state["status"], state["reason"]) == ("rejected", "Not today")
        refused = await client.call_tool("claim_task", {})
        assert refused.is_error
        error = data(refused)["error"]
        assert (error["code"], error["message"]) == ("REJECTED", state["message"])
        assert error["details"] == {"reason": "Not today"}
        assert await names(client) == ["register", "registration_status"]


async def test_the_new_tools_are_announced_if_a_rule_admits_at_once(served: Served, start: Start) -> None:
    await served.workbench.call("add_admission_rule", name="all", pattern="*")
    changed = Announced()
    async with start(era="legacy", message_handler=changed) as client:
        await client.call_tool("register", {"name": "ada", "persona_id": "implementer"})
        await changed.wait()
        assert await names(client) == workers_tools(served)


@pytest.mark.parametrize("moves", [False, True])
async def test_the_new_tools_are_announced_even_if_the_server_was_away_meanwhile(
    served: Served, start: Start, moves: bool
) -> None:
    changed = Announced()
    async with start(era="legacy", message_handler=changed) as client:
        registration = data(await client.call_tool("register", {"name": "ada"}))
        while not served.workbench.feed.readers:
            await anyio.sleep(0.01)
        port = free_port() if moves else int(served.info.url.rpartition(":")[2])
        await served.servers.stop()
        await served.servers.start(port)
        await served.workbench.call("approve", approval_id=registration["approval_id"])
        await changed.wait()
        assert await names(client) == workers_tools(served)


async def test_an_agent_that_still_waits_is_notified_after_a_restart_of_its_program(
    served: Served, start: Start
) -> None:
    registration = await served.workbench.call("register", name="ada")
    async with start(registration["token"]) as client, client.listen(tools_list_changed=True) as news:
        assert await names(client) == ["register", "registration_status"]
        await served.workbench.call("approve", approval_id=registration["approval_id"])
        await anext(aiter(news))
        assert await names(client) == workers_tools(served)
        await served.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
        assert "claim_task" not in await names(client)


async def test_a_token_from_the_environment_is_used_from_the_start(served: Served, start: Start, admit: Admit) -> None:
    ada = await admit("ada")
    await given.task(served.workbench, "Count penguins")
    async with start(ada.token) as client:
        assert client.instructions == guidance(Level.WORKER)
        assert "claim_task" in await names(client)
        assert data(await client.call_tool("claim_task", {}))["task"]["title"] == "Count penguins"
        result = await client.call_tool("get_task", {"task_id": 99})
        assert result.is_error
        assert data(result)["success"] is False
        assert data(result)["error"]["code"] == "TASK_NOT_FOUND"
        await served.servers.stop()
        result = await client.call_tool("whoami", {})
        assert result.is_error
        assert data(result)["error"]["code"] == "NO_SERVER"


async def test_resources_and_prompts_are_those_of_the_agent(
    served: Served, start: Start, admit: Admit, era: str
) -> None:
    ada = await admit("ada")
    task = await given.whole_task(served.workbench, "Count penguins")
    async with start(ada.token, era) as client:
        assert "workbench://tasks/1" in [resource.uri for resource in (await client.list_resources()).resources]
        [read] = (await client.read_resource("workbench://tasks/1")).contents
        assert json.loads(read.text)["title"] == task["title"]  # type: ignore[union-attr]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["day", "review"]
        with pytest.raises(MCPError, match="There is no task 99"):
            await client.read_resource("workbench://tasks/99")
        with pytest.raises(MCPError, match="no operation 'paint_task'"):
            await client.call_tool("paint_task", {})


async def test_subscribers_to_the_tools_and_to_a_resource_are_notified_after_a_registration(
    served: Served, start: Start
) -> None:
    async with start() as client, client.listen(tools_list_changed=True) as tools:
        registration = data(await client.call_tool("register", {"name": "ada", "persona_id": "implementer"}))
        await served.workbench.call("approve", approval_id=registration["approval_id"])
        assert isinstance(await anext(aiter(tools)), ToolsListChanged)
        assert await names(client) == workers_tools(served)
        task = await given.whole_task(served.workbench, "Count penguins")
        async with client.listen(resource_subscriptions=["workbench://tasks/1"]) as news:
            await served.workbench.call("set_priority", task_id=task["id"], priority=7)
            assert isinstance(await anext(aiter(news)), ResourceUpdated)


@pytest.mark.parametrize("moves", [False, True])
async def test_a_session_goes_on_after_a_restart_of_the_server_until_its_agent_is_revoked(
    served: Served, start: Start, admit: Admit, moves: bool
) -> None:
    ada = await admit("ada")
    async with start(ada.token, "legacy") as client:
        assert data(await client.call_tool("whoami", {}))["agent_id"] == "ada"
        port = free_port() if moves else int(served.info.url.rpartition(":")[2])
        await served.servers.stop()
        listed = await names(client)
        assert "claim_task" in listed, "the list of tools stays what it was"
        await served.servers.start(port)
        assert data(await client.call_tool("whoami", {}))["agent_id"] == "ada"
        assert await names(client) == listed
        await served.workbench.call("revoke_agent", agent_id="ada")
        assert data(await client.call_tool("whoami", {}))["error"]["code"] == "INVALID_TOKEN"


def test_the_bridge_loads_no_module_of_the_servers() -> None:
    heavy = "{'mcp', 'mcp_types', 'starlette', 'workbench.services'}"
    loaded = f"import sys, workbench.cli, workbench.shells.mcp.bridge; print({heavy} & {{*sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def bridge(settings: Settings) -> list[str]:
    return [sys.executable, "-m", "workbench.cli", "--project", str(settings.project), "mcp"]


async def test_a_line_that_is_no_message_is_answered_with_an_error(served: Served, settings: Settings) -> None:
    lines = b'{\n[]\n\n{"jsonrpc": "2.0", "id": [], "method": "ping"}\n'
    ran = await anyio.run_process(bridge(settings), input=lines, env=os.environ)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32700]


async def test_the_bridge_answers_requests_sent_before_the_end_of_input(served: Served, settings: Settings) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    ran = await anyio.run_process(bridge(settings), input=lines.encode(), env=os.environ)
    assert ran.stderr == b""
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [1, 2]


async def test_the_bridge_ends_without_a_standard_input(served: Served, settings: Settings) -> None:
    ran = await anyio.run_process(["/bin/sh", "-c", 'exec "$@" <&-', "sh", *bridge(settings)], env=os.environ)
    assert (ran.stdout, ran.stderr) == (b"", b"")


async def test_the_bridge_ends_with_its_input_or_with_a_code_without_a_server(served: Served, command: Command) -> None:
    assert await command("mcp") == (0, "", "")
    ServerFile(served.workbench.settings.server_file).save(served.info.model_copy(update={"nonce": "another"}), "wbo_x")
    for _ in range(2):
        ran = await command("mcp")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith("NO_SERVER: ")
        await served.servers.stop()
