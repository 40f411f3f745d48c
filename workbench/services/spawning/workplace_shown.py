"""The operation that shows what a workplace gives to commands, and which level says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import WorkbenchError
from workbench.model import Int64, Json, Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.present.inert import inert_line
from workbench.rules import access
from workbench.rules.secrets.executed import with_masks
from workbench.rules.workplace import KEYS, Workplace, as_json, as_line
from workbench.services.agents.rows import require_agent
from workbench.services.definitions import changes
from workbench.services.processes.processes import require_spawn
from workbench.services.processes.sandbox import has_own_files
from workbench.services.processes.workplaces import told_installs
from workbench.services.spawning.definition import snapshot_of
from workbench.services.spawning.request import SQL, SpawnRequest
from workbench.services.spawning.workplace import WorkplaceLevels, check_usable, levels_of, resolve
from workbench.services.worktrees.places import told_pointers
from workbench.store.base import Reader, Row
from workbench.trust.withheld import INCLUDED, set_but_not_trusted, withheld

DEFAULT = "default"


class WorkplaceKey(Wire):
    """A key of a workplace: its value, and the level that set it."""

    key: str
    value: Json
    text: str
    source: str


class WorkplaceInfo(Wire):
    """What commands find and reach.

    `problems` are the reasons why an agent could not be started with it now, the keys that are not used because they
    are not trusted, and what is not there: files of Git LFS, and editable installs of other projects. `mounts`: the
    worktree stands at the project's path.
    """

    keys: list[WorkplaceKey]
    mounts: bool
    problems: list[str]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command(
        "box show [WORKTREE]",
        names={"task": "task_id"},
        options=("agent", "persona", "definition", "task_id"),
        offers={"worktree": "worktrees"},
    ),
)
async def get_workplace(
    ctx: Ctx,
    worktree: Annotated[str | None, Field(description="For an agent in this worktree.")] = None,
    agent: Annotated[str | None, Field(description="For this agent, which was spawned: its id.")] = None,
    persona: Annotated[str | None, Field(description="For an agent of this persona.")] = None,
    definition: Annotated[str | None, Field(description="For an agent with this definition: path, id or name.")] = None,
    task_id: Annotated[Int64 | None, Field(description="For an agent that is spawned for this task.")] = None,
) -> WorkplaceInfo:
    """Get what the commands of an agent find and reach, and which level says so."""
    if worktree is not None:
        access.check_worktree_name(worktree)
    if agent is not None:
        levels = await _of_agent(ctx, agent)
    else:
        snapshot = await changes.read(ctx, definition) if definition else None
        persona = persona or (snapshot.definition.metadata.persona if snapshot else None)
        levels = WorkplaceLevels(persona, worktree, task_id, snapshot, {}, by_agent=False)
    workplace = await resolve(ctx, levels)
    return WorkplaceInfo(
        keys=[_of_key(workplace, key) for key in KEYS],
        mounts=has_own_files(ctx.settings),
        problems=[
            *await asyncio.to_thread(_withheld, ctx.settings.project),
            *workplace.warnings,
            *await asyncio.to_thread(_problems, ctx, workplace),
            *await told_pointers(ctx, levels.worktree),
        ],
    )


async def _of_agent(ctx: Ctx, agent_id: str) -> WorkplaceLevels:
    def question(tx: Reader) -> Row:
        agent = require_agent(tx, agent_id)
        require_spawn(tx, agent_id, agent["id"])
        spawn = tx.one(SQL.get, agent=agent["id"])
        assert spawn is not None, "it was there a moment ago"
        return spawn

    spawn = await ctx.read(question)
    request = SpawnRequest.of(spawn)
    return levels_of(spawn, request, await snapshot_of(ctx, request, spawn))


def _withheld(project: Path) -> list[str]:
    """What the project's files would open for all agents, but which is not trusted."""
    sentences = [set_but_not_trusted(project, *KEYS).strip()]
    if any(part.file == INCLUDED for part in withheld(project)):
        sentences.append(f"{INCLUDED} is not used, because you have not trusted it: `workbench trust` shows it.")
    return [sentence for sentence in sentences if sentence]


def _problems(ctx: Ctx, workplace: Workplace) -> list[str]:
    try:
        check_usable(ctx.settings, workplace)
        return told_installs(ctx.settings, workplace)
    except WorkbenchError as error:
        return [str(error)]


def _of_key(workplace: Workplace, key: str) -> WorkplaceKey:
    value = with_masks(as_json({key: getattr(workplace, key)}))[key]
    return WorkplaceKey(
        key=key, value=value, text=inert_line(as_line(value)), source=workplace.sources.get(key, DEFAULT)
    )
