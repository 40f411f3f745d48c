"""`define rules`, `define references`, `define tools`: the sections whose items have names, and are read from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import (
    STDIN,
    SectionGroup,
    as_yaml,
    define,
    done,
    item,
    read_mapping,
    read_text,
    target,
    text_file,
)
from workbench.cli.operations.declared import view
from workbench.cli.output import Fn, Shown, Text, drop_none, pass_client
from workbench.errors import BadInput
from workbench.present.tables import Table

ENTRIES = {"name": "name", "priorityLevel": "priority", "include": "include", "description": "description"}
INCLUDES = ("always", "agent", "manual")
TOOLS = {"name": "tool", "description": "description"}


def fields(command: Fn) -> Fn:
    """Give a command the options for the fields of a rule or reference."""
    description = click.option("--description", default=None, help="What it is about, in one sentence.")
    include = click.option(
        "--include",
        type=click.Choice(INCLUDES),
        default=None,
        help="always: in every prompt; agent: read when the agent asks for it; manual: when you ask for it (default).",
    )
    priority = click.option(
        "--priority", "priorityLevel", type=int, default=None, help="From 0, the first, to 999 (default: 500)."
    )
    return description(include(priority(command)))


def add_entry_commands(singular: str, plural: str) -> None:
    """Add the group of commands for rules, or for references."""

    @define.group(
        plural, cls=SectionGroup, help=f"{plural.capitalize()} of a definition: list, show, add, update, delete."
    )
    def section() -> None: ...

    @view(f"{singular.capitalize()}List")
    def table(answer: Mapping[str, Any]) -> Table:
        return Table.of(answer[plural], ENTRIES, f"It has no {plural}.", answer)

    @view(f"Found{singular.capitalize()}", with_arguments=True)
    def text(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> Text:
        return Text(item(answer, singular, arguments)["text"], answer)

    @section.command("add", help=f"Add a {singular} from a Markdown file, which may have front matter (- is stdin).")
    @target
    @click.argument("file", type=text_file)
    @click.option("--name", default=None, help="Its name; by default that of the file without extension.")
    @fields
    @pass_client
    def add_entry(client: OperatorClient, target: str, file: Path, **options: Any) -> Shown:
        entry = read_entry(file) | drop_none(**options)
        if "name" not in entry:
            raise click.UsageError("Give --name: standard input has no name.")
        return done(client.call(f"agent_add_{singular}", agentTarget=target, **{singular: entry}))

    @section.command("update", help=f"Change a {singular}: its text, with FILE (- is stdin), or its other fields.")
    @target
    @click.argument("name")
    @click.argument("file", required=False, type=text_file)
    @fields
    @pass_client
    def update_entry(client: OperatorClient, target: str, name: str, file: Path | None, **options: Any) -> Shown:
        changes = ({} if file is None else read_entry(file) | {"name": name}) | drop_none(**options)
        if not changes:
            raise click.UsageError("Give FILE, --description, --include or --priority.")
        arguments = {f"{singular}Name": name, singular: changes}
        return done(client.call(f"agent_update_{singular}", agentTarget=target, **arguments))


def read_entry(file: Path) -> dict[str, Any]:
    """A rule or reference from a Markdown file with optional front matter.

    Raises:
        BadInput: ``FILE_UNREADABLE``.
    """
    from workbench.rules import front_matter
    from workbench.rules.yaml_text import InvalidYaml

    try:
        head, text = front_matter.split(read_text(file))
    except InvalidYaml as error:
        raise BadInput("FILE_UNREADABLE", f"The front matter of {file} is wrong: {error}.") from None
    name = {} if str(file) == STDIN else {"name": file.stem}
    return {**name, **head, "text": text}


add_entry_commands("rule", "rules")
add_entry_commands("reference", "references")


@define.group(cls=SectionGroup)
def tools() -> None:
    """Tools that a definition in mode `tools` exports: list, show, add, update, delete."""


@view("ExportedTools")
def tool_table(answer: Mapping[str, Any]) -> Table:
    """The tools that a definition exports."""
    return Table.of(answer["tools"], TOOLS, "It exports no tools.", answer)


@view("ExportedToolFound", with_arguments=True)
def tool_text(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> Text:
    """A tool as YAML."""
    return as_yaml(item(answer, "tool", arguments), answer)


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
