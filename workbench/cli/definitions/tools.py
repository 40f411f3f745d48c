"""`define tools`: list, show, add, update, delete the tools that a definition exports."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import SectionGroup, as_yaml, define, done, item, read_mapping, target, text_file
from workbench.cli.output import Shown, pass_client
from workbench.present.tables import Table

TOOLS = {"name": "tool", "description": "description"}


@define.group(cls=SectionGroup)
def tools() -> None:
    """Tools that a definition in mode `tools` exports: list, show, add, update, delete."""


@tools.command("list")
@target
@pass_client
def list_tools(client: OperatorClient, target: str) -> Shown:
    """List the tools that a definition exports."""
    found = client.call("agent_list_tools", agentTarget=target)
    return Table.of(found["tools"], TOOLS, "It exports no tools.", found)


@tools.command("show")
@target
@click.argument("name")
@pass_client
def show_tool(client: OperatorClient, target: str, name: str) -> Shown:
    """Print a tool as YAML, which `update` reads."""
    found = client.call("agent_get_tool", agentTarget=target, toolName=name)
    return as_yaml(item(found, "tool", name), found)


@tools.command("add")
@target
@click.argument("file", type=text_file)
@pass_client
def add_tool(client: OperatorClient, target: str, file: Path) -> Shown:
    """Add a tool from a file in YAML or JSON with name, description, parameters and prompt (- is stdin)."""
    return done(client.call("agent_add_tool", agentTarget=target, tool=read_mapping(file)))


@tools.command("update")
@target
@click.argument("name")
@click.argument("file", type=text_file)
@pass_client
def update_tool(client: OperatorClient, target: str, name: str, file: Path) -> Shown:
    """Change what a file in YAML or JSON says of a tool (- is stdin)."""
    return done(client.call("agent_update_tool", agentTarget=target, toolName=name, tool=read_mapping(file)))


@tools.command("delete")
@target
@click.argument("name")
@pass_client
def delete_tool(client: OperatorClient, target: str, name: str) -> Shown:
    """Delete a tool."""
    return done(client.call("agent_delete_tool", agentTarget=target, toolName=name))
