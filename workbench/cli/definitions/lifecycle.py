"""`define`: list, show, create, clone, delete, templates, from-template, from-persona, migrate, export, import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.entries import ENTRIES, TOOLS
from workbench.cli.definitions.group import (
    FOLDER,
    STDIN,
    define,
    done,
    new_path,
    read_text,
    setting_rows,
    target,
    text_file,
)
from workbench.cli.definitions.servers import server_table
from workbench.cli.operations.declared import view
from workbench.cli.output import Fn, Note, Shown, Text, confirmed, drop_none, output_unwritable, pairs, pass_client
from workbench.present.tables import Table, TablePage

EXPORT_FORMS = ("workbench", "claude-subagent", "skill")
MODES = ("interactive", "autonomous", "tools")
EMPTY = "There are no definitions. `workbench define create NAME` creates one."
TEMPLATES = {"name": "template", "mode": "mode", "description": "description"}
COLUMNS = {"name": "agent", "mode": "mode", "description": "description", "path": "path"}
path_option: Callable[[Fn], Fn] = click.option("--path", default=None, help=f"Its directory; by default {FOLDER}/NAME.")


@define.command("list")
@click.option("--below", metavar="PATH", default=None, help="Only those below this directory.")
@pass_client
def list_definitions(client: OperatorClient, below: str | None) -> Shown:
    """List the definitions."""
    summaries = client.call("agent_list", **drop_none(basePath=below))
    note = "\n".join(summaries["problems"])
    return Table.of(summaries["agents"], COLUMNS, EMPTY if below is None else summaries["message"], summaries, note)


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
            items = client.call(f"agent_list_{noun}", agentTarget=info["path"])[noun]
            yield noun.capitalize(), Table.of(items, TOOLS if noun == "tools" else ENTRIES, "")
    if info["mcpServerCount"]:
        yield "MCP servers", server_table(client.call("agent_list_mcp_servers", agentTarget=info["path"]))


@define.command("create")
@click.argument("name")
@path_option
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
    **options: Any,
) -> Shown:
    """Create a definition in a new directory."""
    prompt = None if prompt_file is None else read_text(prompt_file)
    initial = drop_none(initialPrompt=prompt, initialSettings=pairs(settings) or None)
    return done(
        client.call("agent_create", agentPath=path or new_path(name), name=name, **initial, **drop_none(**options))
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


@view("Templates")
def template_table(answer: Mapping[str, Any]) -> Table:
    """The templates that definitions can begin with."""
    templates = answer["templates"]
    return Table.of(templates, TEMPLATES, "There are no templates.", note="`define from-template TEMPLATE` uses one")


@define.command("from-template")
@click.argument("template")
@click.argument("name", required=False)
@path_option
@pass_client
def create_from_template(client: OperatorClient, template: str, name: str | None, path: str | None) -> Shown:
    """Create a definition from a template; it is yours to change."""
    return done(client.call("agent_create_from_template", templateName=template, **_chosen(name, path)))


@define.command("from-persona")
@click.argument("persona")
@click.argument("name", required=False)
@path_option
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
    answer = client.call("agent_migrate", agentTarget=target, keepOld=not remove_old, **drop_none(**where))
    left_out = [f"Only in the old files: {place}." for place in answer["leftOut"]]
    return Note("\n".join([answer["message"], *answer["changed"], *left_out]), answer)


@define.command("export")
@target
@click.option("--as", "form", type=click.Choice(EXPORT_FORMS), default=None, help="Its form; by default workbench.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@pass_client
def export_definition(client: OperatorClient, target: str, form: str | None, output: Path | None) -> Shown:
    """Print a definition as one file, without its secrets, or save it; `import` reads it."""
    export = client.call("agent_export", agentTarget=target, **drop_none(form=form))
    if output is None:
        return Text(export["content"].rstrip("\n"), export)
    try:
        output.write_text(export["content"], "utf-8")
    except OSError as error:
        raise output_unwritable(str(output), error) from None
    secrets = [
        f"{secret['place']} is left out; the file refers to {secret['reference']}." for secret in export["secrets"]
    ]
    left_out = [f"Left out: {place}." for place in export["leftOut"]]
    return Note("\n".join([f"Saved {target} to {output}.", *secrets, *left_out]), export)


@define.command("import")
@click.argument("file", type=text_file)
@click.argument("name", required=False)
@click.option(
    "--name", "named", metavar="NAME", default=None, help="Its name; by default that in FILE, or FILE's stem."
)
@path_option
@pass_client
def import_definition(
    client: OperatorClient, file: Path, name: str | None, named: str | None, path: str | None
) -> Shown:
    """Create a definition from a file (- is stdin): an export, a subagent, SKILL.md, AGENTS.md, CLAUDE.md, a rule of
    Cursor, MCP servers, settings of Gemini CLI, config.toml of Codex, or a tsagent file."""
    if name and named:
        raise click.UsageError("Give the name once.")
    where = "" if str(file) == STDIN else "/".join(file.absolute().parts[-2:])
    given = drop_none(agentPath=path, newName=name or named)
    answer = client.call("agent_import", content=read_text(file), fileName=where, **given)
    left_out = [f"Left out: {place}." for place in answer["leftOut"]]
    return Note("\n".join([answer["message"], *answer["warnings"], *answer["changed"], *left_out]), answer)
