"""`define servers`: list, show, add, update, delete, probe the MCP servers that a definition's agent reaches."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import (
    SectionGroup,
    as_yaml,
    define,
    done,
    item,
    pairs,
    read_mapping,
    target,
    text_file,
)
from workbench.cli.output import Fn, PartialFailure, Shown, pass_client
from workbench.present.tables import Table


@define.group(cls=SectionGroup)
def servers() -> None:
    """MCP servers that the agent of a definition reaches: list, show, add, update, delete, probe."""


def config_options(command: Fn) -> Fn:
    """Give a command the options that configure a server."""
    program = click.option("--command", metavar="LINE", default=None, help="A program with its arguments.")
    variable = click.option("--env", metavar="KEY=VALUE", multiple=True, help="A variable for the program.")
    directory = click.option("--cwd", default=None, help="The directory that the program runs in.")
    url = click.option("--url", default=None, help="The address of a server.")
    header = click.option("--header", metavar="NAME=VALUE", multiple=True, help="A header for requests to the address.")
    file = click.option("--file", type=text_file, default=None, help="Read all of it from FILE, in YAML or JSON.")
    return program(variable(directory(url(header(file(command))))))


def configuration(
    command: str | None,
    env: tuple[str, ...],
    cwd: str | None,
    url: str | None,
    header: tuple[str, ...],
    file: Path | None,
) -> dict[str, Any]:
    """The options of a command as the configuration of a server."""
    if sum(one is not None for one in (command, url, file)) != 1:
        raise click.UsageError("Give one of --command, --url and --file.")
    if header and url is None:
        raise click.UsageError("--header goes with --url.")
    if (env or cwd) and command is None:
        raise click.UsageError("--env and --cwd go with --command.")
    if file is not None:
        return read_mapping(file)
    if url is not None:
        return {"url": url} | ({"headers": pairs(header)} if header else {})
    program, *arguments = _words(command or "")
    more = {"env": pairs(env), "cwd": cwd}
    return {"command": program, "args": arguments} | {key: value for key, value in more.items() if value}


def _words(line: str) -> list[str]:
    """The words of a command line, of which there is at least one."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise click.UsageError(f"--command is no command line: {error}.") from None
    if not words:
        raise click.UsageError("--command names no program.")
    return words


@servers.command("list")
@target
@pass_client
def list_servers(client: OperatorClient, target: str) -> Shown:
    """List the MCP servers of a definition."""
    return server_table(client.call("agent_list_mcp_servers", agentTarget=target))


def server_table(found: Mapping[str, Any]) -> Table:
    """The MCP servers of a definition."""
    rows = [[name, config["type"], _place(config)] for name, config in found["servers"].items()]
    return Table(["server", "type", "command or address"], rows, "It reaches no MCP servers.", found)


def _place(config: Mapping[str, Any]) -> str:
    return config["url"] if "url" in config else shlex.join([config["command"], *config["args"]])


@servers.command("show")
@target
@click.argument("name")
@pass_client
def show_server(client: OperatorClient, target: str, name: str) -> Shown:
    """Print the configuration of a server as YAML; secrets that are written out are masked."""
    found = client.call("agent_get_mcp_server", agentTarget=target, serverName=name)
    return as_yaml(item(found, "server", name), found)


@servers.command("add")
@target
@click.argument("name")
@config_options
@pass_client
def add_server(client: OperatorClient, target: str, name: str, **given: Any) -> Shown:
    """Add an MCP server: a program, or an address."""
    return done(client.call("agent_add_mcp_server", agentTarget=target, serverName=name, config=configuration(**given)))


@servers.command("update")
@target
@click.argument("name")
@config_options
@pass_client
def update_server(client: OperatorClient, target: str, name: str, **given: Any) -> Shown:
    """Replace the configuration of a server."""
    return done(
        client.call("agent_update_mcp_server", agentTarget=target, serverName=name, config=configuration(**given))
    )


@servers.command("delete")
@target
@click.argument("name")
@pass_client
def delete_server(client: OperatorClient, target: str, name: str) -> Shown:
    """Delete a server from a definition."""
    return done(client.call("agent_delete_mcp_server", agentTarget=target, serverName=name))


@servers.command("probe")
@target
@click.argument("name")
@pass_client
def probe_server(client: OperatorClient, target: str, name: str) -> Shown:
    """Start or call a server once, and list its tools. Exit status 1 if it does not answer."""
    found = client.call("agent_probe_mcp_server", agentTarget=target, serverName=name)
    if not found["ok"]:
        return PartialFailure(["server", "error"], [[name, found["error"]]], data=found)
    empty = f"{name} answers, and offers no tools."
    note = "\n".join(f"Cannot be used: {problem}." for problem in found["problems"])
    return Table.of(found["tools"], {"name": "tool", "description": "description"}, empty, found, note)
