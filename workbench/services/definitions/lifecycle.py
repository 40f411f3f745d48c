"""Listing, creating, copying and deleting definitions."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated, Any

from pydantic import Field

from workbench.definition_files import Snapshot
from workbench.model import iso, uuid7
from workbench.ops import Ctx
from workbench.rules.definitions.model import DEFAULT_PROMPT, Definition, DefinitionMetadata, Mode, ModelSettings
from workbench.rules.definitions.names import NewDefinitionName
from workbench.rules.definitions.secrets.written_out import masked, warnings_of
from workbench.services.definitions import changes
from workbench.services.definitions.operation import (
    AgentPath,
    AgentTarget,
    Confirm,
    DefinitionAnswer,
    DefinitionChanged,
    definition_op,
    require_confirmation,
    validated,
)
from workbench.services.definitions.trust import DefinitionOrigin


class Summary(DefinitionAnswer):
    """A definition in a list."""

    id: str
    name: str
    path: str
    description: str
    mode: Mode
    metadata: DefinitionMetadata


class Summaries(DefinitionAnswer):
    """Definitions, by path.

    `problems`: those that cannot be read, with the reason. `message`: why the list is empty.
    """

    agents: list[Summary]
    count: int
    problems: list[str]
    message: str | None


class Info(Summary):
    """A definition, with what it consists of. `contentHash` identifies what it says; runs record it."""

    settings: ModelSettings
    installed_providers: list[str]
    mcp_server_count: int
    rule_count: int
    reference_count: int
    tool_count: int
    content_hash: str


class Created(DefinitionChanged):
    """A definition that was created."""

    agent_id: str
    agent_path: str


class Deleted(DefinitionChanged):
    """A definition that was deleted. `left` are the files that stayed, because they are not of the definition."""

    left: list[str]


@definition_op(reads=True, command="define", refreshed_by="definition clock")
async def agent_list(
    ctx: Ctx,
    basePath: Annotated[
        str | None, Field(min_length=1, max_length=1_000, description="Search below this directory; null: everywhere.")
    ] = None,
) -> Summaries:
    """List the agent definitions."""
    listing = await to_thread(ctx.definitions.listing, basePath)
    agents = [_summary(path, metadata) for path, metadata in listing.found]
    message = None if agents else "There are no agents."
    if not listing.exists:
        message = f"There is no directory {basePath}."
    return Summaries(agents=agents, count=len(agents), problems=listing.problems, message=message)


@definition_op(reads=True, command="define show")
async def agent_get_info(ctx: Ctx, agentTarget: AgentTarget) -> Info:
    """Get an agent definition: what it is, its settings, and how many rules, references, tools and servers it has."""
    snapshot = await changes.read(ctx, agentTarget)
    definition = masked(snapshot.definition)
    return Info(
        **dict(_summary(ctx.definitions.display_path(snapshot.path), definition.metadata)),
        settings=definition.settings,
        installed_providers=sorted(definition.providers),
        mcp_server_count=len(definition.mcp_servers),
        rule_count=len(definition.rules),
        reference_count=len(definition.references),
        tool_count=len(definition.tools),
        content_hash=snapshot.hash,
    )


@definition_op(command="define create")
async def agent_create(
    ctx: Ctx,
    agentPath: AgentPath,
    name: Annotated[NewDefinitionName, Field(description="Its name, for people.")],
    description: Annotated[str, Field(max_length=2_000, description="What it is for.")] = "",
    mode: Annotated[Mode, Field(description="interactive: chat; autonomous: tasks; tools: it exports tools.")] = (
        Mode.INTERACTIVE
    ),
    initialSettings: Annotated[dict[str, Any], Field(description="Settings; see agent_get_settings.")] = {},
    initialPrompt: Annotated[str, Field(description="The system prompt.")] = DEFAULT_PROMPT,
) -> Created:
    """Create an agent definition in a new directory."""
    metadata = new_metadata(ctx, {"name": name, "description": description, "mode": mode})
    values = {"metadata": metadata, "settings": initialSettings, "prompt": initialPrompt}
    return created(ctx, await changes.create(ctx, agentPath, validated(Definition, values), "created"))


@definition_op(command="define clone")
async def agent_clone(
    ctx: Ctx,
    sourceAgent: AgentTarget,
    targetPath: AgentPath,
    newName: Annotated[
        NewDefinitionName | None, Field(description="The copy's name; null: that of its directory.")
    ] = None,
) -> Created:
    """Copy an agent definition to a new directory. The copy has its own id."""
    source = (await changes.read(ctx, sourceAgent)).definition
    name = newName or ctx.definitions.place(targetPath).name
    metadata = new_metadata(ctx, dict(source.metadata) | {"name": name})
    copy = source.model_copy(update={"metadata": metadata})
    summary = f"copied from {source.metadata.name}"
    origin = DefinitionOrigin(copied=source.metadata.id)
    return created(ctx, await changes.create(ctx, targetPath, copy, summary, origin))


@definition_op(destructive=True, command="define delete")
async def agent_delete(ctx: Ctx, agentTarget: AgentTarget, confirm: Confirm = False) -> Deleted:
    """Delete an agent definition: its own files. Other files in its directory stay, and are named."""
    require_confirmation(confirm, "This deletes the definition's files.")
    snapshot, left = await changes.remove(ctx, agentTarget)
    return Deleted(message=f"{snapshot.definition.metadata.name} was deleted.", left=left)


def new_metadata(ctx: Ctx, fields: dict[str, Any]) -> DefinitionMetadata:
    """Metadata of a new definition: with fields, a new id, and the time."""
    now = ctx.store.now()
    return validated(DefinitionMetadata, fields | {"id": str(uuid7(now)), "created": iso(now)})


def created(ctx: Ctx, snapshot: Snapshot) -> Created:
    """The answer for a definition that was created."""
    path, metadata = ctx.definitions.display_path(snapshot.path), snapshot.definition.metadata
    return Created(
        message=f"{metadata.name} was created in {path}.",
        warnings=warnings_of(snapshot.definition),
        agent_id=metadata.id,
        agent_path=path,
    )


def _summary(path: str, metadata: DefinitionMetadata) -> Summary:
    return Summary(
        id=metadata.id,
        name=metadata.name,
        path=path,
        description=metadata.description,
        mode=metadata.mode,
        metadata=metadata,
    )
