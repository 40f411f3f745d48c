"""`define`: settings, set, prompt, describe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import define, done, read_text, setting_rows, target, text_file
from workbench.cli.operations.declared import view
from workbench.cli.output import Shown, Text, pairs, pass_client
from workbench.present.tables import Table


@view("FoundSettings")
def setting_table(answer: Mapping[str, Any]) -> Table:
    """The settings of a definition."""
    return Table(["setting", "value"], setting_rows(answer["settings"]), data=answer)


@define.command("set")
@target
@click.argument("key")
@click.argument("value", required=False)
@click.option("--default", is_flag=True, help="Remove it: the provider's own value applies.")
@pass_client
def set_setting(client: OperatorClient, target: str, key: str, value: str | None, default: bool) -> Shown:
    """Change a setting, such as temperature or model. A list or an object is written as JSON."""
    if (value is None) != default:
        raise click.UsageError("Give VALUE or --default.")
    return done(client.call("agent_set_setting", agentTarget=target, key=key, value=_decode(value)))


def _decode(value: str | None) -> Any:
    """The list or the object that a value is in JSON; any other value as it is, because it may be a text."""
    if value is None or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


@define.command("prompt")
@target
@click.argument("file", required=False, type=text_file)
@click.option("--composed", is_flag=True, help="Print it with the rules and references, as the agent gets it.")
@pass_client
def prompt(client: OperatorClient, target: str, file: Path | None, composed: bool) -> Shown:
    """Print the system prompt of a definition; with FILE, replace it by the text of that file (- is stdin)."""
    if file is not None:
        return done(client.call("agent_set_system_prompt", agentTarget=target, prompt=read_text(file)))
    answer = client.call("agent_get_system_prompt", agentTarget=target, composed=composed)
    return Text(answer["prompt"], answer)


@define.command("describe")
@target
@click.argument("changes", metavar="KEY=VALUE", nargs=-1)
@pass_client
def describe(client: OperatorClient, target: str, changes: tuple[str, ...]) -> Shown:
    """Show the metadata of a definition; with KEY=VALUE, such as version=1.1.0, change them."""
    if changes:
        return done(client.call("agent_update_metadata", agentTarget=target, metadata=pairs(changes)))
    answer = client.call("agent_get_metadata", agentTarget=target)
    rows = [[key, value] for key, value in answer["metadata"].items() if value not in (None, "", [])]
    return Table(["", ""], rows, data=answer)
