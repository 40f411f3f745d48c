"""`define servers`: list, show, add, update, delete, probe the MCP servers that a definition's agent reaches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import SectionGroup, as_yaml, define, done, item, read_mapping, target, text_file
from workbench.cli.operations.declared import view
from workbench.cli.output import Fn, PartialFailure, Shown, Text, pairs, pass_client
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
    read = click.option("--read", metavar="PATH", multiple=True, help="A path that the program may read.")
    write = click.option("--write", metavar="PATH", multiple=True, help="A path that the program may change.")
    connect = click.option("--connect", metavar="PORT", type=int, multiple=True, help="A port that it may connect to.")
    return program(variable(directory(read(write(connect(url(header(file(command)))))))))


def configuration(
    command: str | None,
    env: tuple[str, ...],
    cwd: str | None,
    read: tuple[str, ...],
    write: tuple[str, ...],
    connect: tuple[int, ...],
    url: str | None,
    header: tuple[str, ...],
    file: Path | None,
) -> dict[str, Any]:
    """The options of a command as the configuration of a server."""
    if sum(source is not None for source in (command, url, file)) != 1:
        raise click.UsageError("Give one of --command, --url and --file.")
    if header and url is None:
        raise click.UsageError("--header goes with --url.")
    more = {"env": pairs(env), "cwd": cwd, "read": list(read), "write": list(write), "connect": list(connect)}
    if any(more.values()) and command is None:
        raise click.UsageError(f"{', '.join(f'--{name}' for name in more)} go with --command.")
    if file is not None:
        return read_mapping(file)
    if url is not None:
        return {"url": url} | ({"headers": pairs([_as_pair(text) for text in header])} if header else {})
    program, *arguments = _words(command or "")
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


@view("McpServers")
def server_table(answer: Mapping[str, Any]) -> Table:
    """The MCP servers of a definition."""
    rows = [[name, config["type"], _place(config)] for name, config in answer["servers"].items()]
    return Table(["server", "type", "command or address"], rows, "It reaches no MCP servers.", answer)


def _place(config: Mapping[str, Any]) -> str:
    return config["url"] if "url" in config else shlex.join([config["command"], *config["args"]])


@view("FoundMcpServer", with_arguments=True)
def server_text(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> Text:
    """The configuration of a server as YAML."""
    return as_yaml(item(answer, "server", arguments), answer)


@servers.command("add")
@target
@click.argument("name")
@config_options
@pass_client
def add_server(client: OperatorClient, target: str, name: str, **options: Any) -> Shown:
    """Add an MCP server: a program, or an address."""
    return done(
        client.call("agent_add_mcp_server", agentTarget=target, serverName=name, config=configuration(**options))
    )


@servers.command("update")
@target
@click.argument("name")
@config_options
@pass_client
def update_server(client: OperatorClient, target: str, name: str, **options: Any) -> Shown:
    """Replace the configuration of a server."""
    return done(
        client.call("agent_update_mcp_server", agentTarget=target, serverName=name, config=configuration(**options))
    )


@view("Probe", with_arguments=True)
def probe_table(probe: Mapping[str, Any], arguments: Mapping[str, Any]) -> Table:
    """The tools that a server offers, or why it did not answer."""
    name = arguments["serverName"]
    if not probe["ok"]:
        return PartialFailure(["server", "error"], [[name, probe["error"]]], data=probe)
    empty = f"{name} answers, and offers no tools."
    note = "\n".join(f"Cannot be used: {problem}." for problem in probe["problems"])
    return Table.of(probe["tools"], {"name": "tool", "description": "description"}, empty, probe, note)


def _as_pair(header: str) -> str:
    """A header as NAME=VALUE, also of one that is written as in HTTP and for curl: ``NAME: VALUE``."""
    found = re.fullmatch(r"([\w-]+):\s*(.+)", header, re.DOTALL)
    return f"{found[1]}={found[2]}" if found else header
