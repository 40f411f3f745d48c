"""An agent that is about to be spawned: what it was asked to be, checked before it is registered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.definition_files import Snapshot
from workbench.errors import Refused
from workbench.model import Level, SelfTools
from workbench.ops import Caller, Ctx
from workbench.rules.definitions.trust import PROMPT, ROLE
from workbench.rules.workplace import Workplace
from workbench.services.agents.grants import ALL_TOOLS
from workbench.services.agents.register import OwnDefinition
from workbench.services.definitions import trust
from workbench.services.processes.sandbox import confinement_of
from workbench.services.spawning import definition as definitions
from workbench.services.spawning import workplace
from workbench.services.spawning.request import (
    Environment,
    SpawnRequest,
    check_environment,
    check_profile,
    learn_secrets,
)
from workbench.services.spending import ledger


@dataclass(frozen=True, slots=True)
class NewcomerRequest:
    """What an agent is to be. The persona and the name are by default those of its definition."""

    persona_id: str | None
    name: str | None
    worktree: str | None
    new_worktree: bool
    self_tools: SelfTools | None
    tools: Sequence[str]


@dataclass(frozen=True, slots=True)
class Newcomer:
    """An agent that may be registered, what its profile does not use of its definition, and its workplace."""

    name: str
    persona_id: str
    capabilities: Mapping[str, Any]
    worktree: str | None
    definition: OwnDefinition | None
    environment: tuple[str, ...]
    tools: tuple[str, ...]
    unused: tuple[str, ...]
    workplace: Workplace

    @property
    def registration(self) -> dict[str, Any]:
        """Arguments of `add_pending`."""
        names = ("name", "persona_id", "capabilities", "worktree", "definition", "environment", "tools")
        return {name: getattr(self, name) for name in names} | {"opens": self.workplace.opened}


async def check(
    ctx: Ctx, choices: NewcomerRequest, request: SpawnRequest, environment: Environment, snapshot: Snapshot | None
) -> Newcomer:
    """Refuse what cannot be spawned; create the worktree, if that is wanted, when all else is in order.

    Raises:
        Refused: ``FORBIDDEN``. WorkbenchError: see `check_environment`, `definitions.persona_of`, `definitions.own`,
            `check_profile`, `trust.require`, `confinement_of` and `workplace.check`.
    """
    check_environment(environment, request.secret)
    _check_tools(ctx.caller, choices.tools)
    await ctx.require_tools(ctx, set(choices.tools).difference(ctx.caller.tools))
    persona_id = definitions.persona_of(choices.persona_id, snapshot)
    definition = definitions.own(ctx, snapshot, choices.self_tools) if snapshot else None
    checked = await check_profile(ctx, request, snapshot)
    await learn_secrets(ctx, request, environment)
    if snapshot is not None and checked.fit is not None and checked.fit.needs_trust:
        await trust.require(ctx, snapshot)
    elif snapshot is not None:
        await trust.require(ctx, snapshot, PROMPT)
        if choices.persona_id is None:
            await trust.require(ctx, snapshot, ROLE)
    confinement_of(ctx.settings)
    place = (persona_id, choices.worktree, request.task_id, choices.new_worktree)
    worktree = await ctx.read(lambda tx: workplace.check(tx, ctx, *place))
    levels = workplace.WorkplaceLevels(
        persona_id, worktree, request.task_id, snapshot, request.workplace, ctx.caller.agent is not None
    )
    place_there = await workplace.resolve(ctx, levels)
    workplace.require_no_more(place_there)
    await asyncio.to_thread(workplace.check_usable, ctx.settings, place_there)
    name = choices.name or (snapshot.definition.metadata.name if snapshot else persona_id)
    if choices.new_worktree:
        worktree = await workplace.make_worktree(ctx, worktree, name, place_there)
    variables, tools = tuple(sorted(environment)), tuple(choices.tools)
    models = [checked.fit.model] if checked.fit and checked.fit.model else []
    priceless = await ledger.price_warning(ctx, models, lambda scope: _may_spend(scope, persona_id))
    unused = (*checked.unused, *priceless)
    return Newcomer(name, persona_id, checked.capabilities, worktree, definition, variables, tools, unused, place_there)


def _may_spend(scope: str, persona_id: str) -> bool:
    """Whether the budget of a scope may be one that an agent of a persona spends; its tasks are not known yet."""
    kind, _, ref = scope.partition(":")
    return kind not in ("session", "run", "persona") or (kind == "persona" and ref == persona_id)


def _check_tools(caller: Caller, tools: Sequence[str]) -> None:
    """Refuse an agent's agent more than the agent itself was granted: a rule may admit it without a person."""
    if caller.level is Level.OPERATOR or ALL_TOOLS in caller.tools:
        return
    if missing := sorted(set(tools) - caller.tools):
        raise Refused(
            "FORBIDDEN",
            f"Your agents may call only tools that you may: {', '.join(missing)} is not granted to you. "
            "Ask the operator to add it to your grant, or to the agent's.",
        )
