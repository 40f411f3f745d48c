"""`define`: list, show, create, clone, delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.entries import ENTRIES
from workbench.cli.definitions.group import (
    FOLDER,
    define,
    done,
    new_path,
    pairs,
    read_text,
    setting_rows,
    target,
    text_file,
)
from workbench.cli.definitions.servers import server_table
from workbench.cli.definitions.tools import TOOLS
from workbench.cli.output import Shown, confirmed, drop_none, pass_client
from workbench.present.tables import Table, TablePage

MODES = ("interactive", "autonomous", "tools")
EMPTY = "There are no definitions. `workbench define create NAME` creates one."
COLUMNS = {"name": "agent", "mode": "mode", "description": "description", "path": "path"}


@define.command("list")
@click.option("--below", metavar="PATH", default=None, help="Only those below this directory.")
@pass_client
def list_definitions(client: OperatorClient, below: str | None) -> Shown:
    """List the definitions."""
    found = client.call("agent_list", **drop_none(basePath=below))
    note = "\n".join(found["problems"])
    return Table.of(found["agents"], COLUMNS, EMPTY if below is None else found["message"], found, note)


@define.command("show")
@target
@pass_client
def show_definition(client: OperatorClient, target: str) -> Shown:
    """Show one definition: its settings, rules, references, tools, providers and MCP servers."""
    info = client.call("agent_get_info", agentTarget=target)
    return TablePage([(info["name"], _facts(info)), *_sections(client, info)], info)


def _facts(info: Mapping[str, Any]) -> Table:
    facts = {key: info.get(key) for key in ("path", "id", "mode", "description", "contentHash")}
    facts["providers"] = ", ".join(info["installedProviders"])
    return Table(["", ""], [[key, value] for key, value in facts.items() if value not in (None, "")])


def _sections(client: OperatorClient, info: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """The settings, and the sections that have something in them."""
    yield "Settings", Table(["", ""], setting_rows(info["settings"]))
    for noun, count in (("rules", "ruleCount"), ("references", "referenceCount"), ("tools", "toolCount")):
        if info.get(count):
            found = client.call(f"agent_list_{noun}", agentTarget=info["path"])[noun]
            yield noun.capitalize(), Table.of(found, TOOLS if noun == "tools" else ENTRIES, "")
    if info["mcpServerCount"]:
        yield "MCP servers", server_table(client.call("agent_list_mcp_servers", agentTarget=info["path"]))


@define.command("create")
@click.argument("name")
@click.option("--path", default=None, help=f"Its directory; by default {FOLDER}/NAME.")
@click.option("--description", default=None, help="What it is for, in one sentence.")
@click.option("--mode", type=click.Choice(MODES), default=None, help="How it is used; by default interactive.")
@click.option("--prompt", "prompt_file", type=text_file, default=None, help="Read its system prompt from FILE.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A setting, such as temperature=0.2.")
@pass_client
def create_definition(
    client: OperatorClient,
    name: str,
    path: str | None,
    prompt_file: Path | None,
    settings: tuple[str, ...],
    **given: Any,
) -> Shown:
    """Create a definition in a new directory."""
    prompt = None if prompt_file is None else read_text(prompt_file)
    initial = drop_none(initialPrompt=prompt, initialSettings=pairs(settings) or None)
    return done(
        client.call("agent_create", agentPath=path or new_path(name), name=name, **initial, **drop_none(**given))
    )


@define.command("clone")
@target
@click.argument("name")
@click.option("--path", default=None, help=f"The directory of the copy; by default {FOLDER}/NAME.")
@pass_client
def clone_definition(client: OperatorClient, target: str, name: str, path: str | None) -> Shown:
    """Copy a definition to a new directory, under a new name."""
    return done(client.call("agent_clone", sourceAgent=target, targetPath=path or new_path(name), newName=name))


@define.command("delete")
@target
@click.option("--yes", is_flag=True, help="Delete without a question.")
@pass_client
def delete_definition(client: OperatorClient, target: str, yes: bool) -> Shown:
    """Delete the files of a definition; other files in its directory stay."""
    info = client.call("agent_get_info", agentTarget=target)
    confirmed(f"This deletes the definition {info['name']} in {info['path']}.", yes)
    return done(client.call("agent_delete", agentTarget=info["path"], confirm=True))
