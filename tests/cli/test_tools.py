"""`workbench tools`: the catalogue, calls and permissions, and MCP servers; and calls in the inbox."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from typing import Any

import pytest

from tests.cli.conftest import Type, data
from tests.conftest import Command, Served
from tests.upstream.servers import OFF_PROTOCOL, SERVER
from workbench.ops import OPERATOR
from workbench.services.tools.calls import Finished, call
from workbench.services.tools.tool import ToolScope
from workbench.state.settings import Settings


def test_tools_are_listed_shown_and_called_and_their_calls_listed(run: Type) -> None:
    listed = run("tools", "list", "create_project").out.splitlines()
    assert listed[1].split()[:3] == ["create_project", "operation", "writes"]
    assert "There is no such tool." in run("tools", "list", "--source", "mcp").out
    shown = run("tools", "show", "create_project").out.splitlines()
    assert shown[0] == "create_project (operation, writes)"
    assert ["name", "string", "required"] in [line.split()[:3] for line in shown]
    assert data(run("--json", "tools", "show", "create_project"))["parameters"]["required"] == ["name"]
    assert run("tools", "calls").out == "No tool has been called.\n"
    made = data(run("--json", "tools", "call", "create_project", "name=Atlas"))
    assert made["result"]["name"] == "Atlas"
    assert run("tools", "call", "create_project", "nam=Atlas").err.startswith("INVALID_ARGUMENTS: ")
    [failed, done] = data(run("--json", "tools", "calls", "--tool", "create_project"))
    assert (failed["error_code"], done["call_id"]) == ("INVALID_ARGUMENTS", made["call_id"])
    assert '"Atlas"' in run("tools", "calls", made["call_id"]).out
    assert [one["state"] for one in data(run("--json", "tools", "calls", "--state", "failed"))] == ["failed"]
    assert run("tools", "cancel", made["call_id"]).err.startswith("CALL_ENDED: ")
    assert run("tools", "call", "creat_project").err.startswith("UNKNOWN_TOOL: ")


def test_permissions_are_set_and_listed(run: Type) -> None:
    assert run("tools", "allow").out.startswith("Nothing is decided")
    assert run("tools", "allow", "create_task", "always").out.splitlines()[1].split()[:2] == ["create_task", "always"]
    assert [one["permission"] for one in data(run("--json", "tools", "allow"))] == ["always"]
    assert run("tools", "allow", "create_task", "default").out.startswith("Nothing is decided")
    assert run("tools", "allow", "gone", "always").err.startswith("UNKNOWN_TOOL: ")
    assert run("tools", "allow", "create_task").status == 2


def test_nobody_signs_in_at_an_address_with_a_secret_in_it(run: Type) -> None:
    url = "http://127.0.0.1:9/mcp?key=env://HUB_KEY"
    run("tools", "servers", "add", "hub", "--url", url)
    refused = run("tools", "servers", "sign-in", "hub", "--seconds", "1")
    assert refused.err.startswith("INVALID_ARGUMENTS: The address of hub has a secret in it"), refused


def model_calls(served: Served, tool: str, /, **arguments: Any) -> asyncio.Task[Finished]:
    """A call by the model of a conversation."""
    return asyncio.create_task(call(served.workbench._ctx, ToolScope(OPERATOR, conversation_id="c"), tool, arguments))


async def asked(served: Served) -> int:
    """The approval of the call that waits."""
    async with served.workbench.feed.subscribe("approval.*") as news:
        while not (approvals := (await served.workbench.call("list_approvals", kind="tool_call"))["approvals"]):
            await anext(news)
    return int(approvals[0]["id"])


@pytest.mark.long
@pytest.mark.anyio
async def test_a_tool_that_fails_is_a_failure_of_the_command(served: Served, command: Command) -> None:
    place = shutil.copy(SERVER, served.workbench.settings.project)
    config = {"command": sys.executable, "args": [str(place)]}
    added = await served.workbench.call("add_tool_server", name="small", config=config)
    assert added["state"] == "ready", added
    ran = await command("tools", "call", "small__fail", "why=Rain")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("TOOL_ERROR: small__fail failed: ")
    assert (await command("tools", "call", "small__add", "a=1", "b=2")).status == 0


@pytest.mark.long
@pytest.mark.anyio
async def test_a_server_off_the_protocol_is_used_as_far_as_it_can_be_and_the_rest_is_named(
    served: Served, command: Command
) -> None:
    shutil.copy(OFF_PROTOCOL, served.workbench.settings.project / "odd.py")
    added = await command("tools", "servers", "add", "odd", "--command", f"{sys.executable} odd.py", "--cwd", ".")
    assert added.out.startswith("odd is ready and offers 2 tools."), added.err
    assert "odd: bad: the schema of its arguments is no JSON Schema" in added.out
    listed = (await command("tools", "servers")).out
    assert "2 tools cannot be used" in listed
    assert "\nodd: worse: inputSchema: required" in listed
    called = await command("tools", "call", "odd__good", "x=[1]")
    assert "It has run." in called.out, called.err
    assert "'hologram', is of a kind that is not known" in called.out
    empty = await command("tools", "call", "odd__empty")
    assert empty.err.startswith("TOOL_SERVER_ERROR: "), empty.err
    assert "its answer is not as the protocol says" in empty.err
    wrong = await command("tools", "call", "odd__good", 'x=["a"]')
    assert wrong.err.startswith("INVALID_ARGUMENTS: ")


@pytest.mark.long
@pytest.mark.anyio
async def test_a_call_that_waits_is_in_the_inbox_and_approved_by_the_name_of_its_tool(
    served: Served, command: Command
) -> None:
    waiting = model_calls(served, "create_task", title="\u202eOne", persona_id="tester")
    await asked(served)
    shown = (await command("approvals")).out
    assert "calls create_task (An operation of Workbench) with" in shown
    assert "\u202e" not in shown
    assert "is allowed from now on" in (await command("approve", "create_task", "--always")).out
    assert (await waiting).outcome.value["title"] == "\u202eOne"
    assert "the tool create_task" in (await command("approvals", "--all")).out
    again = model_calls(served, "cancel_task", task_id=1)
    await asked(served)
    assert (await command("reject", "cancel_task", "--reason", "not now")).status == 0
    await asyncio.gather(again, return_exceptions=True)
    assert "not now" in str(again.exception())


def test_a_file_of_servers_that_cannot_be_read_is_named_with_the_line(run: Type, settings: Settings) -> None:
    run("tools", "servers")
    settings.tool_servers_file.parent.mkdir(exist_ok=True)
    settings.tool_servers_file.write_text('{"mcpServers": {\n  "a": {"command": "x"},\n}}')
    shown = run("tools", "servers").out
    assert shown.startswith(f"{settings.tool_servers_file} cannot be used: line 3, ")
    assert "There are no" not in shown


def test_a_server_is_added_changed_switched_and_removed(run: Type) -> None:
    added = run("tools", "servers", "add", "files", "--command", "files-server --all", "--env", "TOKEN=env://T").out
    assert added == "files is stopped. It is used when the servers of the project run.\n"
    assert run("tools", "servers", "update", "files", "--url", "https://example.org/mcp").status == 0
    assert run("tools", "servers", "disable", "files").out == "files is disabled.\n"
    [row] = run("tools", "servers").out.splitlines()[1:]
    assert row.split() == ["files", "disabled", "0", "https://example.org/mcp"]
    assert "is stopped" in run("tools", "servers", "enable", "files").out
    assert "https://example.org/mcp" in run("tools", "servers", "show", "files").out
    assert run("tools", "servers", "log", "files").out == "files wrote nothing to its standard error.\n"
    assert run("tools", "servers", "remove", "files").out == "Removed files.\n"
    assert data(run("--json", "tools", "servers"))["servers"] == []


def test_a_file_that_came_with_the_repository_is_not_trusted(run: Type, settings: Settings) -> None:
    run("init")
    settings.tool_servers_file.write_text(json.dumps({"mcpServers": {"files": {"command": "files-server"}}}))
    [one] = data(run("--json", "tools", "servers"))["servers"]
    assert (one["state"], one["tools"]) == ("untrusted", [])
