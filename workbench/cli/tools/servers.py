"""The MCP servers whose tools the project uses: `tools servers`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.definitions.group import as_yaml
from workbench.cli.definitions.servers import config_options, configuration
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, PartialFailure, Shown, Text, pass_client
from workbench.cli.tools.catalogue import tools
from workbench.errors import NotFound
from workbench.present.tables import Table

_OFF = ("disabled", "stopped")


@tools.group(cls=NounGroup)
def servers() -> None:
    """MCP servers whose tools the project uses: list, show, log, add, update, enable, disable, restart, remove."""


@servers.command("list")
@pass_client
def list_tool_servers(client: OperatorClient) -> Shown:
    """List the servers: their state, their tools, and what is wrong with them."""
    found = client.call("list_tool_servers")
    note = "\n".join(_notes(found))
    empty = "There are no MCP servers. `workbench tools servers add` adds one."
    return Table(["server", "is", "tools", "command or address", "problem"], _rows(found), empty, found, note=note)


def _rows(found: dict[str, Any]) -> list[list[Any]]:
    return [[one["name"], one["state"], len(one["tools"]), one["target"], _problem(one)] for one in found["servers"]]


def _notes(found: dict[str, Any]) -> Iterator[str]:
    """Why the file, and which tools, cannot be used."""
    if found["problem"]:
        yield f"{found['path']} cannot be used: {found['problem']}."
    for one in found["servers"]:
        yield from _of_tools(one)


def _of_tools(one: dict[str, Any]) -> Iterator[str]:
    return (f"{one['name']}: {problem}" for problem in one["tool_problems"])


def _problem(one: dict[str, Any]) -> str:
    if one["approval_id"] is not None:
        return f"not trusted; `workbench approve {one['approval_id']}` trusts it"
    return one["problem"] or (_left_out(one["left_out"]) if one["left_out"] else "")


def _left_out(number: int) -> str:
    return "1 tool cannot be used" if number == 1 else f"{number:,} tools cannot be used"


@servers.command("show")
@click.argument("name", shell_complete=offers.tool_servers)
@pass_client
def show_tool_server(client: OperatorClient, name: str) -> Shown:
    """Print a server's configuration, state and tools as YAML; secrets that are written out are masked."""
    found = _server(client, name)
    return as_yaml({key: value for key, value in found.items() if key != "log"}, found)


@servers.command("log")
@click.argument("name", shell_complete=offers.tool_servers)
@pass_client
def tool_server_log(client: OperatorClient, name: str) -> Shown:
    """Print the end of what the program of a server wrote to its standard error."""
    found = _server(client, name)
    return Text(found["log"].rstrip("\n") or f"{name} wrote nothing to its standard error.", {"log": found["log"]})


@servers.command("add")
@click.argument("name")
@config_options
@pass_client
def add_tool_server(client: OperatorClient, name: str, **given: Any) -> Shown:
    """Add a server: a program, or an address. Exit status 1 if it does not answer."""
    return _changed(client.call("add_tool_server", name=name, config=configuration(**given)))


@servers.command("update")
@click.argument("name", shell_complete=offers.tool_servers)
@config_options
@pass_client
def update_tool_server(client: OperatorClient, name: str, **given: Any) -> Shown:
    """Replace the configuration of a server. Exit status 1 if it does not answer."""
    return _changed(client.call("update_tool_server", name=name, config=configuration(**given)))


def _server(client: OperatorClient, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = client.call("list_tool_servers")["servers"]
    for one in found:
        if one["name"] == name:
            return one
    names = ", ".join(one["name"] for one in found) or "none"
    raise NotFound("TOOL_SERVER_NOT_FOUND", f"There is no MCP server {name}. The servers: {names}.")


@view("ToolServer")
def _changed(one: dict[str, Any]) -> Shown:
    warnings = "".join(f"\n{warning}" for warning in [*one["warnings"], *_of_tools(one)])
    if one["state"] == "ready":
        return Note(f"{one['name']} is ready and offers {len(one['tools'])} tools.{warnings}", one)
    if one["state"] in _OFF:
        when = "" if one["state"] == "disabled" else " It is used when the servers of the project run."
        return Note(f"{one['name']} is {one['state']}.{when}{warnings}", one)
    return PartialFailure(["server", "is", "problem"], [[one["name"], one["state"], _problem(one)]], data=one)
