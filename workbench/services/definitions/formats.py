"""The format of definitions: its JSON Schemas, and the conversion from older layouts."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated, Any

from pydantic import Field

from workbench.definitions.migration import Migration, prepare
from workbench.ops import Ctx
from workbench.rules.definitions import schema
from workbench.services.definitions import changes
from workbench.services.definitions.lifecycle import Created
from workbench.services.definitions.operation import AgentTarget, Answer, definition_op


class FileSchema(Answer):
    """A JSON Schema (2020-12)."""

    file: schema.File
    json_schema: dict[str, Any]


class Migrated(Created):
    """A definition that was converted.

    `changed`: what is written in another way now. `left_out`: the places of what only the old files contain.
    """

    changed: list[str]
    left_out: list[str]


@definition_op(reads=True, tool=False)
async def agent_get_schema(
    ctx: Ctx,
    file: Annotated[
        schema.File, Field(description="agent.yaml, or front-matter: that of a rule or reference.")
    ] = schema.File.AGENT,
) -> FileSchema:
    """Get the JSON Schema of a file of agent definitions, for editors and programs that write such files."""
    return FileSchema(file=file, json_schema=schema.of_file(file))


@definition_op(destructive=True)
async def agent_migrate(
    ctx: Ctx,
    agentTarget: AgentTarget,
    targetPath: Annotated[
        str | None,
        Field(min_length=1, max_length=1_000, description="A new directory; null: where it is, or beside its file."),
    ] = None,
    keepOld: Annotated[bool, Field(description="false: remove the old files, if nothing is lost with them.")] = True,
) -> Migrated:
    """Convert an agent definition from an older layout: tsagent.json with .mdt files, or one YAML file."""
    return await ctx.repositories.shielded(_migrate(ctx, agentTarget, targetPath, keepOld))


async def _migrate(ctx: Ctx, target: str, to: str | None, keep: bool) -> Migrated:
    conversion = await to_thread(prepare, ctx.definitions, target, to, keep=keep)
    source = ctx.definitions.display_path(conversion.old.path)
    async with changes.exclusive(ctx, conversion.new):
        made = await to_thread(conversion.make, ctx.definitions)
        await changes.record(ctx, made.after, "created", f"converted from {source}")
    return _migrated(ctx, made, source)


def _migrated(ctx: Ctx, made: Migration, source: str) -> Migrated:
    path, metadata = ctx.definitions.display_path(made.after.path), made.after.definition.metadata
    return Migrated(
        message=f"{metadata.name} was converted from {source} to {path}.",
        agent_id=metadata.id,
        agent_path=path,
        changed=list(made.changed),
        left_out=list(made.left_out),
    )
