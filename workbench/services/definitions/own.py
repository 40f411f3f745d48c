"""The tools with which an agent reads and changes its own definition: its rules and references.

They take no target: it is always the definition that the agent has. Its grant (`self_tools`) switches them.
"""

from __future__ import annotations

from asyncio import to_thread
from functools import partial
from typing import Annotated

from pydantic import Field

from workbench.model import Capability, Level
from workbench.ops import Ctx, op
from workbench.rules.definitions.model import Definition, Include, PromptEntry
from workbench.services.definitions import changes
from workbench.services.definitions.operation import DefinitionAnswer, DefinitionChanged
from workbench.services.definitions.sections import entries
from workbench.services.definitions.sections.entries import Edit, EntryUpdate, NewEntry

_INVALID = "VALIDATION_ERROR"
_reading = partial(op, allow=Level.READ, reads=True, requires=Capability.OWN_DEFINITION, invalid=_INVALID)
_changing = partial(op, allow=Level.WORKER, requires=Capability.CHANGE_OWN_DEFINITION, invalid=_INVALID)

RuleName = Annotated[str, Field(max_length=1_000, description="The rule's name; see list_rules.")]
ReferenceName = Annotated[str, Field(max_length=1_000, description="The reference's name; see list_references.")]


class EntrySummary(DefinitionAnswer):
    """A rule or reference, without its text."""

    name: str
    description: str
    priority_level: int
    include: Include


class OwnRules(DefinitionAnswer):
    """Your rules, by priority level and name."""

    rules: list[EntrySummary]


class OwnReferences(DefinitionAnswer):
    """Your references, by priority level and name."""

    references: list[EntrySummary]


class OwnRule(DefinitionAnswer):
    """A rule."""

    rule: PromptEntry


class OwnReference(DefinitionAnswer):
    """A reference."""

    reference: PromptEntry


@_reading()
async def list_rules(ctx: Ctx) -> OwnRules:
    """List your own rules; get_rule reads one."""
    return OwnRules(rules=[_summary(rule) for rule in (await _read(ctx)).rules])


@_reading()
async def get_rule(ctx: Ctx, rule_name: RuleName) -> OwnRule:
    """Read one of your own rules."""
    return OwnRule(rule=entries.require("rules", (await _read(ctx)).rules, rule_name))


@_changing()
async def add_rule(ctx: Ctx, rule: NewEntry) -> DefinitionChanged:
    """Add a rule to your own definition. Agents that are started later with it follow it."""
    return await _change(ctx, entries.adding("rules", rule), f"rule {rule.name} added")


@_changing()
async def update_rule(ctx: Ctx, rule_name: RuleName, rule: EntryUpdate) -> DefinitionChanged:
    """Change one of your own rules."""
    return await _change(ctx, entries.updating("rules", rule_name, rule), f"rule {rule_name} changed")


@_changing(destructive=True)
async def delete_rule(ctx: Ctx, rule_name: RuleName) -> DefinitionChanged:
    """Delete one of your own rules."""
    return await _change(ctx, entries.deleting("rules", rule_name), f"rule {rule_name} deleted")


@_reading()
async def list_references(ctx: Ctx) -> OwnReferences:
    """List your own references; get_reference reads one."""
    return OwnReferences(references=[_summary(reference) for reference in (await _read(ctx)).references])


@_reading()
async def get_reference(ctx: Ctx, reference_name: ReferenceName) -> OwnReference:
    """Read one of your own references."""
    return OwnReference(reference=entries.require("references", (await _read(ctx)).references, reference_name))


@_changing()
async def add_reference(ctx: Ctx, reference: NewEntry) -> DefinitionChanged:
    """Add a reference, such as notes worth keeping, to your own definition. Agents started later with it have it."""
    return await _change(ctx, entries.adding("references", reference), f"reference {reference.name} added")


@_changing()
async def update_reference(ctx: Ctx, reference_name: ReferenceName, reference: EntryUpdate) -> DefinitionChanged:
    """Change one of your own references."""
    edit = entries.updating("references", reference_name, reference)
    return await _change(ctx, edit, f"reference {reference_name} changed")


@_changing(destructive=True)
async def delete_reference(ctx: Ctx, reference_name: ReferenceName) -> DefinitionChanged:
    """Delete one of your own references."""
    return await _change(ctx, entries.deleting("references", reference_name), f"reference {reference_name} deleted")


async def _own(ctx: Ctx) -> str:
    """The path of the caller's definition."""
    assert ctx.caller.definition is not None, "the capability implies it"
    return (await to_thread(ctx.definitions.find_id, ctx.caller.definition)).key


async def _read(ctx: Ctx) -> Definition:
    return (await changes.read(ctx, await _own(ctx))).definition


async def _change(ctx: Ctx, edit: Edit, summary: str) -> DefinitionChanged:
    return await changes.change(ctx, await _own(ctx), edit, summary)


def _summary(entry: PromptEntry) -> EntrySummary:
    return EntrySummary.model_validate(entry.model_dump(exclude={"text"}))
