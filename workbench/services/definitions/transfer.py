"""Definitions as one file: exported without secrets, and imported again."""

from __future__ import annotations

from asyncio import to_thread
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from workbench.errors import BadInput
from workbench.model import Level, iso, uuid7
from workbench.ops import Ctx
from workbench.rules.definitions import portable
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.names import NewDefinitionName, fitting, is_id
from workbench.rules.definitions.other_forms import forms, written
from workbench.rules.definitions.other_forms.report import Imported
from workbench.rules.definitions.other_forms.written import ExportForm
from workbench.rules.definitions.secrets.masked_updates import require_no_masks
from workbench.services.definitions import changes
from workbench.services.definitions.lifecycle import Created, created
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, NewPath, definition_op
from workbench.services.definitions.trust import FOREIGN


class LeftOut(DefinitionAnswer):
    """A secret that is not in the file: `reference` stands in its place."""

    place: str
    reference: str


class ExportedAgent(DefinitionAnswer):
    """A definition as a file. `secrets`: those that it had written out, which the file refers to instead. `left_out`:
    what a file of its form cannot say."""

    filename: str
    content: str
    content_hash: str
    secrets: list[LeftOut]
    left_out: list[str]


class ImportedDefinition(Created):
    """A definition that was imported from a file of the `form`.

    `kept_id`: it has the id in the file, and with it the versions of that id. `changed`: what is written in another way
    now. `left_out`: the places in the file of what a definition cannot say, some with the reason.
    """

    form: str
    kept_id: bool
    content_hash: str
    changed: list[str]
    left_out: list[str]


@definition_op(reads=True, command="define export")
async def agent_export(
    ctx: Ctx,
    agentTarget: AgentTarget,
    form: Annotated[
        ExportForm, Field(description="workbench: all of it; claude-subagent, skill: what such a file can say.")
    ] = ExportForm.WORKBENCH,
) -> ExportedAgent:
    """Export an agent definition as one file, to keep or to give away: of YAML, or of the form of another program.

    Secrets that are written out are never in it: references to environment variables stand in their place.
    """
    snapshot = await changes.read(ctx, agentTarget)
    if form is ExportForm.WORKBENCH:
        text, replaced = await to_thread(portable.export_text, snapshot.definition)
        filename, left_out = f"{snapshot.path.name}.agent.yaml", tuple[str, ...]()
    else:
        export = await to_thread(written.write, snapshot.definition, form)
        text, replaced, filename, left_out = export.text, export.replaced, export.file, export.left_out
    return ExportedAgent(
        filename=filename,
        content=text,
        content_hash=snapshot.hash,
        secrets=[LeftOut(place=place, reference=reference) for place, reference in replaced.items()],
        left_out=list(left_out),
    )


@definition_op(command="define import")
async def agent_import(
    ctx: Ctx,
    content: Annotated[str, Field(max_length=portable.LARGEST, description="The text of the file.")],
    agentPath: NewPath = None,
    newName: Annotated[
        NewDefinitionName | None, Field(description="Its name; null: that in the file, or its stem.")
    ] = None,
    fileName: Annotated[
        str, Field(max_length=1_000, description="The file's name, with its directory: both may tell its form.")
    ] = "",
) -> ImportedDefinition:
    """Create an agent definition from a file: what agent_export returned, or a file of another program.

    These are subagents of Claude Code, SKILL.md, AGENTS.md, CLAUDE.md, rules of Cursor, MCP servers (mcpServers or
    servers), settings of Gemini CLI, config.toml of Codex, and tsagent files. An export keeps its id, unless that
    stands for another agent. The operator is asked to trust what it needs.
    """
    imported = await to_thread(forms.read, content, fileName, str(uuid7(ctx.store.now())))
    definition = imported.converted.definition
    require_no_masks(definition if imported.form == forms.OWN else _configuration(definition))
    name = newName or _name_of(imported, fileName)
    keeps_id = await _may_keep(ctx, definition.metadata.id)
    fields = {"name": name, "created": definition.metadata.created or iso(ctx.store.now())}
    new_id = {} if keeps_id else {"id": str(uuid7(ctx.store.now()))}
    metadata = definition.metadata.model_copy(update=fields | new_id)
    path = agentPath or f"./agents/{fitting(name)}"
    definition = definition.model_copy(update={"metadata": metadata})
    snapshot = await changes.create(ctx, path, definition, "imported", FOREIGN)
    return ImportedDefinition(
        **dict(created(ctx, snapshot)),
        form=imported.form,
        kept_id=keeps_id and imported.form == forms.OWN,
        content_hash=snapshot.hash,
        changed=list(imported.converted.changed),
        left_out=list(imported.converted.left_out),
    )


def _configuration(definition: Definition) -> Definition:
    """The definition without its texts, in which bullets may be bullets."""
    return definition.model_copy(update={"prompt": "", "rules": [], "references": []})


def _name_of(imported: Imported, file: str) -> str:
    """The name of an imported definition: its own, else the stem of its file.

    Raises:
        BadInput: ``NAME_REQUIRED``.
    """
    path = PurePosixPath(file)
    stem = path.name.lstrip(".").partition(".")[0]
    name = imported.name or stem
    if not name:
        raise BadInput("NAME_REQUIRED", "This file names no agent. Give a name.")
    try:
        return str(TypeAdapter(NewDefinitionName).validate_python(name))
    except ValidationError:
        return fitting(name)


async def _may_keep(ctx: Ctx, definition_id: str) -> bool:
    """Whether an import may have an id: only a UUID that stands for no other, also none that cannot be read now.

    That of a deleted one is given back by the operator alone: agents may have it, and with it what was trusted.
    """
    if not is_id(definition_id) or await to_thread(_is_used, ctx, definition_id):
        return False
    row = await changes.last(ctx, definition_id)
    return row is None or (row["deleted_at"] is not None and ctx.caller.level is Level.OPERATOR)


def _is_used(ctx: Ctx, definition_id: str) -> bool:
    """Whether a definition has an id. Blocks."""
    return any(head.id == definition_id for _, head in ctx.definitions.heads())
