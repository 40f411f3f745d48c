"""Personas, the kinds of work that agents take: `personas`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, Shown, pass_client
from workbench.errors import BadInput


@root.group(cls=NounGroup)
def personas() -> None:
    """Personas: list, show, versions, save.

    A persona says what kind of work an agent takes, a definition who does it: see `define`. An agent that is spawned
    with a definition takes the persona that the definition names. `define from-persona` turns a persona into a
    definition.
    """


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
    return persona_note(client.call("save_persona", persona_id=persona_id or file.stem, text=text))


def persona_note(persona: dict[str, Any]) -> Note:
    """The note about a saved persona."""
    sentence = f"Saved persona {persona['id']}; its agents are {persona['role']}s."
    return Note("\n".join([sentence, *persona["warnings"]]), persona)
