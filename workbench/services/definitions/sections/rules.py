"""The rules of a definition."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.ops import Command, Ctx
from workbench.rules.definitions.model import PromptEntry
from workbench.services.definitions import changes
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op
from workbench.services.definitions.sections import entries
from workbench.services.definitions.sections.entries import EntryUpdate, NewEntry

RuleName = Annotated[str, Field(max_length=1_000, description="The rule's name; see agent_list_rules.")]


class RuleList(DefinitionAnswer):
    """Rules, by priority level and name."""

    rules: list[PromptEntry]
    count: int


class FoundRule(DefinitionAnswer):
    """A rule, or null."""

    rule: PromptEntry | None


@definition_op(reads=True, command=Command("define rules list AGENT", help="List the rules of a definition."))
async def agent_list_rules(ctx: Ctx, agentTarget: AgentTarget) -> RuleList:
    """List the rules of an agent definition."""
    rules = (await changes.without_secrets(ctx, agentTarget)).rules
    return RuleList(rules=rules, count=len(rules))


@definition_op(reads=True, command=Command("define rules show AGENT NAME", help="Print a rule."))
async def agent_get_rule(ctx: Ctx, agentTarget: AgentTarget, ruleName: RuleName) -> FoundRule:
    """Get a rule of an agent definition by name; null if it has no such rule."""
    return FoundRule(rule=entries.find((await changes.without_secrets(ctx, agentTarget)).rules, ruleName))


@definition_op(command="define rules add")
async def agent_add_rule(ctx: Ctx, agentTarget: AgentTarget, rule: NewEntry) -> DefinitionChanged:
    """Add a rule to an agent definition."""
    return await changes.change(ctx, agentTarget, entries.adding("rules", rule), f"rule {rule.name} added")


@definition_op(command="define rules update")
async def agent_update_rule(
    ctx: Ctx, agentTarget: AgentTarget, ruleName: RuleName, rule: EntryUpdate
) -> DefinitionChanged:
    """Change a rule of an agent definition."""
    edit = entries.updating("rules", ruleName, rule)
    return await changes.change(ctx, agentTarget, edit, f"rule {ruleName} changed")


@definition_op(destructive=True, command=Command("define rules delete AGENT NAME", help="Delete a rule."))
async def agent_delete_rule(ctx: Ctx, agentTarget: AgentTarget, ruleName: RuleName) -> DefinitionChanged:
    """Delete a rule from an agent definition."""
    return await changes.change(ctx, agentTarget, entries.deleting("rules", ruleName), f"rule {ruleName} deleted")
