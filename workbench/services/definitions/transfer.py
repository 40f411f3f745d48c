"""Definitions as one file: exported without secrets, and imported again."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated

from pydantic import Field

from workbench.model import Level, uuid7
from workbench.ops import Ctx
from workbench.rules.definitions import portable
from workbench.rules.definitions.names import DefinitionName, is_id
from workbench.services.definitions import changes
from workbench.services.definitions.lifecycle import Created, created
from workbench.services.definitions.operation import AgentPath, AgentTarget, DefinitionAnswer, definition_op
from workbench.services.definitions.trust import FOREIGN


class LeftOut(DefinitionAnswer):
    """A secret that is not in the file: `reference` stands in its place."""

    place: str
    reference: str


class ExportedAgent(DefinitionAnswer):
    """A definition as a file. `secrets`: those that it had written out, which the file refers to instead."""

    filename: str
    content: str
    content_hash: str
    secrets: list[LeftOut]


class ImportedDefinition(Created):
    """A definition that was imported. `kept_id`: it has the id in the file, and with it the versions of that id."""

    kept_id: bool
    content_hash: str


@definition_op(reads=True)
async def agent_export(ctx: Ctx, agentTarget: AgentTarget) -> ExportedAgent:
    """Export an agent definition as one file of YAML, to keep or to give away.

    Secrets that are written out are never in it: references to environment variables stand in their place.
    """
    snapshot = await changes.read(ctx, agentTarget)
    text, replaced = await to_thread(portable.export_text, snapshot.definition)
    return ExportedAgent(
        filename=f"{snapshot.path.name}.agent.yaml",
        content=text,
        content_hash=snapshot.hash,
        secrets=[LeftOut(place=place, reference=reference) for place, reference in replaced.items()],
    )


@definition_op()
async def agent_import(
    ctx: Ctx,
    agentPath: AgentPath,
    content: Annotated[str, Field(max_length=portable.LARGEST, description="What agent_export returned as content.")],
    newName: Annotated[DefinitionName | None, Field(description="Its name; null: that in the file.")] = None,
) -> ImportedDefinition:
    """Create an agent definition from an exported file. It keeps its id, unless that stands for another agent.

    The operator is asked to trust what it needs.
    """
    definition = await to_thread(portable.import_text, content)
    keeps_id = await _may_keep(ctx, definition.metadata.id)
    named = {"name": newName} if newName else {}
    identified = {} if keeps_id else {"id": str(uuid7(ctx.store.now()))}
    metadata = definition.metadata.model_copy(update=named | identified)
    made = definition.model_copy(update={"metadata": metadata})
    snapshot = await changes.create(ctx, agentPath, made, "imported", FOREIGN)
    return ImportedDefinition(**dict(created(ctx, snapshot)), kept_id=keeps_id, content_hash=snapshot.hash)


async def _may_keep(ctx: Ctx, definition_id: str) -> bool:
    """Whether an import may have an id: only a UUID that stands for no other, also none that cannot be read now.

    That of a deleted one is given back by the operator alone: agents may have it, and with it what was trusted.
    """
    if not is_id(definition_id) or await to_thread(_is_used, ctx, definition_id):
        return False
    known = await changes.last(ctx, definition_id)
    return known is None or (known["deleted_at"] is not None and ctx.caller.level is Level.OPERATOR)


def _is_used(ctx: Ctx, definition_id: str) -> bool:
    """Whether a definition has an id. Blocks."""
    return any(head.id == definition_id for _, head in ctx.definitions.heads())
