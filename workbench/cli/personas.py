"""Personas: what kinds of work there are, and what their agents are told; `personas`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, Shown, Text, pass_client
from workbench.errors import BadInput
from workbench.tables import Table

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
    """Kinds of work, and what their agents are told: list, show, versions, save."""


@personas.command("list")
@pass_client
def list_personas(client: OperatorClient) -> Shown:
    """List the personas."""
    found = client.call("get_personas")["personas"]
    return Table.of(found, {"id": "id", "name": "name", "role": "role"}, "There are no personas.")


@personas.command("show")
@click.argument("persona_id")
@pass_client
def show_persona(client: OperatorClient, persona_id: str) -> Shown:
    """Print what agents of a persona are told."""
    found = client.call("get_persona", persona_id=persona_id)
    return Text(found["definition"], found)


@personas.command("versions")
@click.argument("persona_id")
@pass_client
def list_versions(client: OperatorClient, persona_id: str) -> Shown:
    """List the texts a persona has had, newest first."""
    found = client.call("list_persona_versions", persona_id=persona_id)["versions"]
    return Table.of(found, VERSIONS, "It has had no text.")


@personas.command("save")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--id", "persona_id", default=None, help="Its id; the file's name without its ending.")
@pass_client
def save_persona(client: OperatorClient, file: Path, persona_id: str | None) -> Shown:
    """Make a Markdown file a persona of this project, or a new text of one."""
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PERSONA_INVALID", f"{file} is not text in UTF-8: {error.reason}.") from None
    return saved(client.call("save_persona", persona_id=persona_id or file.stem, text=text))


def saved(made: dict[str, Any]) -> Note:
    """What is said of a persona that was saved."""
    return Note(f"The persona {made['id']} is saved; its agents are {made['role']}s.", made)
