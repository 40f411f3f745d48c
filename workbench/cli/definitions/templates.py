"""`define`: templates, from-template, from-persona, migrate, schema."""

from __future__ import annotations

import json

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import FOLDER, define, done, new_path, target
from workbench.cli.output import Note, Shown, Text, drop_none, pass_client
from workbench.present.tables import Table

TEMPLATES = {"name": "template", "mode": "mode", "description": "description"}
FILES = ("agent.yaml", "front-matter")


@define.command("templates")
@pass_client
def list_templates(client: OperatorClient) -> Shown:
    """List the templates that definitions can begin with."""
    found = client.call("agent_list_templates")["templates"]
    return Table.of(found, TEMPLATES, "There are no templates.", note="`define from-template TEMPLATE` uses one")


@define.command("from-template")
@click.argument("template")
@click.argument("name", required=False)
@click.option("--path", default=None, help=f"Its directory; by default {FOLDER}/NAME.")
@pass_client
def create_from_template(client: OperatorClient, template: str, name: str | None, path: str | None) -> Shown:
    """Create a definition from a template; it is yours to change."""
    return done(client.call("agent_create_from_template", templateName=template, **_chosen(name, path)))


@define.command("from-persona")
@click.argument("persona")
@click.argument("name", required=False)
@click.option("--path", default=None, help=f"Its directory; by default {FOLDER}/NAME.")
@pass_client
def create_from_persona(client: OperatorClient, persona: str, name: str | None, path: str | None) -> Shown:
    """Create a definition that takes the work of a persona, with the persona's instructions as its prompt."""
    return done(client.call("agent_create_from_persona", personaId=persona, **_chosen(name, path)))


def _chosen(name: str | None, path: str | None) -> dict[str, str]:
    return drop_none(agentPath=path or (new_path(name) if name else None), name=name)


@define.command("migrate")
@target
@click.option("--path", "targetPath", default=None, help="A new directory; by default where it is, or beside its file.")
@click.option("--remove-old", is_flag=True, help="Remove the old files, if nothing is lost with them.")
@pass_client
def migrate_definition(client: OperatorClient, target: str, remove_old: bool, **where: str | None) -> Shown:
    """Convert a definition from an older layout: tsagent.json with .mdt files, or one YAML file."""
    made = client.call("agent_migrate", agentTarget=target, keepOld=not remove_old, **drop_none(**where))
    left_out = [f"Only in the old files: {place}." for place in made["leftOut"]]
    return Note("\n".join([made["message"], *made["changed"], *left_out]), made)


@define.command("schema")
@click.argument("file", type=click.Choice(FILES), default=FILES[0])
@pass_client
def show_schema(client: OperatorClient, file: str) -> Shown:
    """Print the JSON Schema of agent.yaml, or of the front matter of rules and references, for editors."""
    found = client.call("agent_get_schema", file=file)["jsonSchema"]
    return Text(json.dumps(found, indent=2, ensure_ascii=False), found)
