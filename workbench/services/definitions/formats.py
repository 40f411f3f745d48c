"""The format of definitions: its JSON Schemas, and the conversion from older layouts."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated, Any

from pydantic import Field

from workbench.definition_files import DefinitionDirectory
from workbench.definition_files.migration import Migration, new_id, prepare
from workbench.definition_files.older import OlderDefinition
from workbench.errors import Conflict
from workbench.model import uuid7
from workbench.ops import Ctx
from workbench.rules.definitions import schema
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.names import is_id
from workbench.services.definitions import changes
from workbench.services.definitions.lifecycle import Created
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, definition_op


class FileSchema(DefinitionAnswer):
    """A JSON Schema (2020-12)."""

    file: schema.DefinitionFile
    json_schema: dict[str, Any]


class Migrated(Created):
    """A definition that was converted.

    `changed`: what is written in another way now. `left_out`: the places of what only the old files contain.
    """

    changed: list[str]
    left_out: list[str]


@definition_op(reads=True, tool=False, command="define schema")
async def agent_get_schema(
    ctx: Ctx,
    file: Annotated[
        schema.DefinitionFile, Field(description="agent.yaml, or front-matter: that of a rule or reference.")
    ] = schema.DefinitionFile.AGENT,
) -> FileSchema:
    """Get the JSON Schema of a file of agent definitions, for editors and programs that write such files."""
    return FileSchema(file=file, json_schema=schema.of_file(file))


@definition_op(destructive=True, command="define migrate")
async def agent_migrate(
    ctx: Ctx,
    agentTarget: AgentTarget,
    targetPath: Annotated[
        str | None,
        Field(min_length=1, max_length=1_000, description="A new directory; null: where it is, or beside its file."),
    ] = None,
    keepOld: Annotated[bool, Field(description="false: remove the old files, if nothing is lost with them.")] = True,
) -> Migrated:
    """Convert an agent definition from an older layout: tsagent.json with .mdt files, or one YAML file.

    An id that is no UUID, as older files have it, is replaced; what was recorded of the agent stays with it.
    """
    return await ctx.local.repositories.shielded(_migrate(ctx, agentTarget, targetPath, keepOld))


async def _migrate(ctx: Ctx, target: str, to: str | None, keep: bool) -> Migrated:
    unused = str(uuid7(ctx.store.now()))
    directory = await to_thread(ctx.definitions.find, target)
    if to is None and not isinstance(directory, OlderDefinition):
        return await _identify(ctx, directory, unused)
    conversion = await to_thread(lambda: prepare(ctx.definitions, target, to, keep=keep, unused=unused))
    source = ctx.definitions.display_path(conversion.old.path)
    async with changes.exclusive(ctx, conversion.new):
        migration = await to_thread(conversion.make, ctx.definitions)
        await changes.record(ctx, migration.after, "created", f"converted from {source}", replaces=conversion.replaces)
    return _answer(ctx, migration, source)


async def _identify(ctx: Ctx, directory: DefinitionDirectory, unused: str) -> Migrated:
    """Give a definition of the current layout an id, if it has a word in its place."""
    word = (await to_thread(ctx.definitions.head, directory)).id
    path = ctx.definitions.display_path(directory.path)
    if is_id(word):
        raise Conflict("NOTHING_TO_MIGRATE", f"{path} has the current layout, and an id.")

    def identified(definition: Definition) -> Definition:
        return definition.model_copy(update={"metadata": definition.metadata.model_copy(update={"id": unused})})

    async with changes.exclusive(ctx, directory):
        others = await to_thread(lambda: [other for other, head in ctx.definitions.heads() if head.id == word])
        migration = await to_thread(ctx.definitions.change, directory, identified)
        replaces = word if len(others) == 1 else None
        await changes.record(ctx, migration.after, "changed", "id replaced", replaces=replaces)
    message = f"{migration.after.definition.metadata.name} has an id of its own."
    return Migrated(message=message, agent_id=unused, agent_path=path, changed=[new_id(word, unused)], left_out=[])


def _answer(ctx: Ctx, migration: Migration, source: str) -> Migrated:
    path, metadata = ctx.definitions.display_path(migration.after.path), migration.after.definition.metadata
    return Migrated(
        message=f"{metadata.name} was converted from {source} to {path}.",
        agent_id=metadata.id,
        agent_path=path,
        changed=list(migration.changed),
        left_out=list(migration.left_out),
    )
