"""The references of a definition."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.ops import Command, Ctx
from workbench.rules.definitions.model import PromptEntry
from workbench.services.definitions import changes
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op
from workbench.services.definitions.sections import entries
from workbench.services.definitions.sections.entries import EntryUpdate, NewEntry

ReferenceName = Annotated[str, Field(max_length=1_000, description="The reference's name; see agent_list_references.")]


class ReferenceList(DefinitionAnswer):
    """References, by priority level and name."""

    references: list[PromptEntry]
    count: int


class FoundReference(DefinitionAnswer):
    """A reference, or null."""

    reference: PromptEntry | None


@definition_op(reads=True, command=Command("define references list AGENT", help="List the references of a definition."))
async def agent_list_references(ctx: Ctx, agentTarget: AgentTarget) -> ReferenceList:
    """List the references of an agent definition."""
    references = (await changes.without_secrets(ctx, agentTarget)).references
    return ReferenceList(references=references, count=len(references))


@definition_op(reads=True, command=Command("define references show AGENT NAME", help="Print a reference."))
async def agent_get_reference(ctx: Ctx, agentTarget: AgentTarget, referenceName: ReferenceName) -> FoundReference:
    """Get a reference of an agent definition by name; null if it has no such reference."""
    references = (await changes.without_secrets(ctx, agentTarget)).references
    return FoundReference(reference=entries.find(references, referenceName))


@definition_op(command="define references add")
async def agent_add_reference(ctx: Ctx, agentTarget: AgentTarget, reference: NewEntry) -> DefinitionChanged:
    """Add a reference to an agent definition."""
    edit = entries.adding("references", reference)
    return await changes.change(ctx, agentTarget, edit, f"reference {reference.name} added")


@definition_op(command="define references update")
async def agent_update_reference(
    ctx: Ctx, agentTarget: AgentTarget, referenceName: ReferenceName, reference: EntryUpdate
) -> DefinitionChanged:
    """Change a reference of an agent definition."""
    edit = entries.updating("references", referenceName, reference)
    return await changes.change(ctx, agentTarget, edit, f"reference {referenceName} changed")


@definition_op(destructive=True, command=Command("define references delete AGENT NAME", help="Delete a reference."))
async def agent_delete_reference(ctx: Ctx, agentTarget: AgentTarget, referenceName: ReferenceName) -> DefinitionChanged:
    """Delete a reference from an agent definition."""
    edit = entries.deleting("references", referenceName)
    return await changes.change(ctx, agentTarget, edit, f"reference {referenceName} deleted")
