"""Where a spawned agent works: in a worktree that the caller may use, or outside of any; and its workplace."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.definition_files import Snapshot
from workbench.errors import Conflict, NotFound, Refused
from workbench.model import Level
from workbench.ops import Caller, Ctx
from workbench.rules import access
from workbench.rules import workplace as rules
from workbench.rules.definitions.secrets.references import parse as parse_reference
from workbench.rules.definitions.trust import WORKPLACE
from workbench.rules.tasks import lifecycle
from workbench.rules.workplace import Workplace
from workbench.services.access.personas import PersonaInfo, require_persona
from workbench.services.definitions import trust
from workbench.services.processes.workplaces import choose_gpu, of_settings, open_places
from workbench.services.spawning.request import SpawnRequest
from workbench.services.tasks.rows import visible_row
from workbench.services.worktrees.creation import create_with_workplace
from workbench.services.worktrees.kept_work import writer_lock
from workbench.services.worktrees.places import place_of
from workbench.services.worktrees.rows import check_owner, find_worktree, require_here
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row
from workbench.store.queries import beside
from workbench.trust.withheld import trusts_persona
from workbench.worker.startup import WorktreePlace

SQL = beside(__file__)


def check(
    tx: Reader, ctx: Ctx, persona_id: str, worktree: str | None, task_id: int | None, new_worktree: bool
) -> str | None:
    """Refuse a persona, task or worktree that cannot be used; the worktree to use, which may be the task's."""
    persona = require_persona(tx, persona_id)
    if task_id is not None:
        task = visible_row(tx, ctx.caller, task_id)
        if task["status"] not in lifecycle.OPEN:
            raise Conflict("WRONG_STATE", f"Task {task_id} is {task['status']}.", status=task["status"])
        if task["persona_id"] != persona.id or (task["worktree"] and worktree not in (None, task["worktree"])):
            where = f" in the worktree {task['worktree']}" if task["worktree"] else ""
            raise Conflict("TASK_DOES_NOT_FIT", f"Task {task_id} is for a {task['persona_id']}{where}.")
        worktree = worktree or task["worktree"] or None
    if not new_worktree:
        check_place(tx, ctx, worktree)
    return worktree


def check_place(tx: Reader, ctx: Ctx, worktree: str | None) -> None:
    """Refuse a worktree, or none, that the caller's agents may not use.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Refused: ``FORBIDDEN``, ``WORKTREE_REQUIRED``.
        BadInput: ``BAD_WORKTREE_NAME``.
    """
    if worktree is None:
        if not ctx.settings.spawn_outside_worktrees:
            raise Refused(
                "WORKTREE_REQUIRED", "Agents have to work in a worktree here. Give assigned_worktree or new_worktree."
            )
        return
    check_owner(ctx.caller, require_here(ctx, _active(tx, access.check_worktree_name(worktree))))


def _active(tx: Reader, worktree: str) -> Row:
    row = find_worktree(tx, worktree)
    if row is None or row["status"] != "active":
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no active worktree {worktree!r}. Create it first.")
    return row


def place(tx: Reader, ctx: Ctx, worktree: str | None) -> WorktreePlace | None:
    """The directories and the branch of a worktree, for the worker; None for no worktree.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``.
    """
    if worktree is None:
        return None
    row = _active(tx, worktree)
    location = place_of(ctx, row)
    writer = writer_lock(ctx.settings, worktree).path
    return WorktreePlace(worktree, location.path, location.git_dir, row["branch_name"], writer)


async def make_worktree(ctx: Ctx, name: str | None, default: str, workplace: Workplace) -> str:
    """Create a worktree for the caller, with what a workplace includes; its name, by default derived from `default`."""
    if name is None:
        base = re.sub(r"[^a-z0-9_-]+", "-", default.lower()).strip("-_")[:40] or "agent"
        taken = {row["name"] for row in await ctx.read(lambda tx: tx.all(SQL.taken_names, prefix=base))}
        name = access.free_id(base, taken)
    return await create_with_workplace(ctx, name, workplace)


def checked_keys(caller: Caller, keys: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys of a workplace that a caller gives, and the variables among them that are stored with the environment.

    Variables that the operator refers to a secret stay among the keys: the reference is stored, never the secret. An
    agent refers to none: it would read the operator's.

    Raises:
        BadInput: ``BAD_WORKPLACE``.
    """
    stated = rules.parse(keys, "workplace")
    variables: dict[str, str] = stated.pop("env", {})
    may_refer = caller.level is Level.OPERATOR
    references = {name: value for name, value in variables.items() if may_refer and parse_reference(value)}
    rest = {name: value for name, value in variables.items() if name not in references}
    return stated | ({"env": references} if references else {}), rest


@dataclass(frozen=True, slots=True)
class WorkplaceLevels:
    """The levels of an agent's workplace, besides the settings.

    Args:
        spawn: the keys that the spawn states; `by_agent`: an agent spawned it.
    """

    persona_id: str | None
    worktree: str | None
    task_id: int | None
    snapshot: Snapshot | None
    spawn: Mapping[str, Any]
    by_agent: bool


def levels_of(spawn: Row, request: SpawnRequest, snapshot: Snapshot | None) -> WorkplaceLevels:
    """The levels of a spawned agent, from its row."""
    return WorkplaceLevels(
        persona_id=spawn["persona_id"],
        worktree=spawn["assigned_worktree"],
        task_id=request.task_id,
        snapshot=snapshot,
        spawn=request.workplace,
        by_agent=spawn["spawned_by"] is not None,
    )


async def resolve(ctx: Ctx, levels: WorkplaceLevels) -> Workplace:
    """The workplace of an agent: by the settings, a plan, its persona, its definition and its spawn.

    Raises:
        BadInput: ``BAD_WORKPLACE``. NotFound: ``PERSONA_NOT_FOUND``. Refused: ``DEFINITION_NOT_TRUSTED``.
    """
    worktree, task = levels.worktree or "", levels.task_id

    def question(tx: Reader) -> tuple[PersonaInfo | None, Row | None]:
        persona = require_persona(tx, levels.persona_id) if levels.persona_id else None
        return persona, tx.one(SQL.plan, worktree=worktree, task=task)

    persona, plan = await ctx.read(question)
    workplace = of_settings(ctx.settings)
    if plan is not None:
        stated = rules.parse(json.loads(plan["workplace"]), f"The plan {plan['name']}")
        workplace = workplace.narrowed(stated, "plan", trusted=bool(plan["workplace_trusted"]))
    if persona and persona.workplace:
        trusted = persona.source == "built-in" or await asyncio.to_thread(
            trusts_persona, ctx.settings.project, persona.id, persona.workplace
        )
        stated = rules.parse(persona.workplace, f"The persona {persona.id}")
        workplace = workplace.narrowed(stated, "persona", trusted=trusted)
    if levels.snapshot is not None and levels.snapshot.definition.workplace:
        await trust.require(ctx, levels.snapshot, WORKPLACE)
        stated = rules.parse(levels.snapshot.definition.workplace, "The definition")
        workplace = workplace.narrowed(stated, "definition")
    return workplace.narrowed(levels.spawn, "spawn", trusted=not levels.by_agent)


def require_no_more(workplace: Workplace) -> None:
    """Refuse an agent's spawn that asks for more than the other levels open.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if keys := sorted(key for key, level in workplace.withheld.items() if level == "spawn"):
        raise Refused(
            "FORBIDDEN",
            f"The workplace of your agents may open no more than the operator's settings do: {', '.join(keys)}. Leave "
            "that out, or ask the operator to open it.",
            keys=keys,
        )


def check_usable(settings: Settings, workplace: Workplace) -> None:
    """Refuse a workplace that this machine cannot give, before anything is made for it. Blocks.

    Raises:
        NotFound: ``READ_NOT_FOUND``, ``ENVIRONMENT_NOT_FOUND``.
        Unavailable: ``ENVIRONMENT_BROKEN``, ``GPU_UNAVAILABLE``.
    """
    open_places(settings, workplace, choose_gpu(workplace))
