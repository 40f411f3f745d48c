"""Personas, the kinds of work that agents take: `personas`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, Shown, Text, pass_client
from workbench.errors import BadInput
from workbench.present.tables import Table

NO_PERSONAS = "There are no personas."
VERSIONS = {
    "saved_at": "saved",
    "saved_by": "by",
    "source": "source",
    "name": "name",
    "role": "role",
    "sha256": "sha256",
}


@root.group(cls=NounGroup)
def personas() -> None:
    """Personas: list, show, versions, save.

    A persona says what kind of work an agent takes, a definition who does it: see `define`. An agent that is spawned
    with a definition takes the persona that the definition names. `define from-persona` turns a persona into a
    definition.
    """


@personas.command("list")
@pass_client
def list_personas(client: OperatorClient) -> Shown:
    """List the personas."""
    return persona_table(client.call("get_personas")["personas"], NO_PERSONAS)


def persona_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Personas and their roles."""
    return Table.of(found, {"id": "id", "name": "name", "role": "role"}, empty)


@personas.command("show")
@click.argument("persona_id", shell_complete=offers.personas)
@pass_client
def show_persona(client: OperatorClient, persona_id: str) -> Shown:
    """Print the instructions of a persona."""
    found = client.call("get_persona", persona_id=persona_id)
    return Text(found["definition"], found)


@personas.command("versions")
@click.argument("persona_id", shell_complete=offers.personas)
@pass_client
def list_versions(client: OperatorClient, persona_id: str) -> Shown:
    """List the versions of a persona, newest first."""
    found = client.call("list_persona_versions", persona_id=persona_id)["versions"]
    return Table.of(found, VERSIONS, "There are no versions.")


@personas.command("save")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--id", "persona_id", default=None, help="Its id; by default the file's name without extension.")
@pass_client
def save_persona(client: OperatorClient, file: Path, persona_id: str | None) -> Shown:
    """Save a Markdown file as a persona of this project."""
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PERSONA_INVALID", f"{file} is not UTF-8 text: {error.reason}.") from None
    return saved(client.call("save_persona", persona_id=persona_id or file.stem, text=text))


def saved(made: dict[str, Any]) -> Note:
    """The note about a saved persona."""
    return Note("\n".join([f"Saved persona {made['id']}; its agents are {made['role']}s.", *made["warnings"]]), made)
