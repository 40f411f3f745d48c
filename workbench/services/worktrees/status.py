"""Looking at worktrees: how they stand, and what they changed, without running or believing anything in them.

Where nothing has changed since the last look, no process is started; what only git can tell of uncommitted files, git
tells in the worktree's box.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import WorkbenchError
from workbench.git import FileDiff, Repository
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules import integration
from workbench.services.worktrees.conflicts import scan
from workbench.services.worktrees.imports import import_new_commits, no_branch
from workbench.services.worktrees.places import checkout_of, is_there, place_of, worktree_gone
from workbench.services.worktrees.rows import Worktree, WorktreeName, open_worktrees, require_worktree, worktree_of
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)
SHOWN_FILES = 500
"""Changed files that a status lists; the numbers of lines are those of all."""


class FileStat(Wire):
    """A changed file; null counts mean a binary one."""

    path: str
    added: int | None
    removed: int | None


class Overlap(Wire):
    """Files that a worktree and another one would be in conflict about."""

    worktree: str
    files: list[str]


class WorktreeStatus(Worktree):
    """A worktree with what git and the store know about it. `conflicts` are those with its target."""

    commit: str | None
    ahead: int
    behind: int
    files: list[FileStat]
    added: int
    removed: int
    dirty: list[str]
    agents: list[str]
    open_tasks: int
    last_activity: Micros
    conflicts: list[str]
    overlaps: list[Overlap]
    approval_id: int | None
    queue_place: int | None
    problem: str | None
    """Why its newest commits or its uncommitted files cannot be told."""


class WorktreeStatuses(Wire):
    """Worktrees, oldest first."""

    worktrees: list[WorktreeStatus]


class Difference(Wire):
    """How one file differs; `patch` is unified text, null where it is binary or too long (`truncated`)."""

    path: str
    old_path: str | None
    status: Literal["A", "M", "D", "R", "T"]
    added: int | None
    removed: int | None
    binary: bool
    patch: str | None
    truncated: bool


class WorktreeDiff(Wire):
    """What a worktree would bring, or what is not committed in it yet."""

    worktree: str
    target: str
    commit: str | None
    files: list[Difference]


@op(allow=Level.READ, reads=True)
async def get_worktree_status(
    ctx: Ctx,
    worktree_name: Annotated[WorktreeName | None, Field(description="Null: all that are active.")] = None,
) -> WorktreeStatuses:
    """Worktrees with commits ahead and behind, changed files, uncommitted ones, coming conflicts, agents, tasks."""
    rows = await ctx.read(lambda tx: _rows(tx, worktree_name))
    repository = await ctx.repositories.open()
    problems = await import_new_commits(ctx, repository, rows)
    found = await asyncio.gather(*(_look(ctx, repository, row) for row in rows))
    return WorktreeStatuses(worktrees=await _statuses(ctx, repository, rows, found, problems))


@op(allow=Level.READ, reads=True)
async def get_worktree_diff(
    ctx: Ctx,
    worktree_name: WorktreeName,
    uncommitted: Annotated[bool, Field(description="What is not committed yet, instead of what is.")] = False,
    path: Annotated[str | None, Field(max_length=4_096, description="Only this file or directory.")] = None,
) -> WorktreeDiff:
    """What a worktree changed since it left its target, file by file, as text."""
    row = await ctx.read(lambda tx: require_worktree(tx, worktree_name))
    repository = await ctx.repositories.open()
    if uncommitted:
        commit, found = row["imported_commit"], await _dirty_diff(ctx, repository, row)
        found = [file for file in found if path is None or _is_below(file.path, path)]
    else:
        commit = await _current(ctx, repository, row)
        if commit is None:
            raise no_branch(row["branch_name"])
        base = row["integration_target"] if row["status"] in integration.OPEN else row["base_commit"]
        found = await to_thread(repository.diff, base, commit, path=path, max_bytes=ctx.settings.max_diff_bytes)
    files = [Difference(**asdict(file)) for file in found]
    return WorktreeDiff(worktree=row["name"], target=row["integration_target"], commit=commit, files=files)


async def _look(ctx: Ctx, repository: Repository, row: Row) -> tuple[list[str], str | None]:
    """The uncommitted files of a worktree, or why they cannot be told."""
    place = place_of(ctx, row)
    if row["status"] not in integration.OPEN:
        return [], None
    if not is_there(place):
        return [], f"WORKTREE_GONE: {worktree_gone(place).message}"
    try:
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        return await ctx.repositories.status_cache.uncommitted(checkout), None
    except WorkbenchError as error:
        return [], f"{error.code}: {error.message}"


async def _statuses(
    ctx: Ctx,
    repository: Repository,
    rows: Sequence[Row],
    looks: Sequence[tuple[list[str], str | None]],
    problems: Mapping[str, str],
) -> list[WorktreeStatus]:
    names = json.dumps([row["name"] for row in rows])

    def question(tx: Reader) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
        fresh = [require_worktree(tx, row["name"]) for row in rows]
        return fresh, tx.all(SQL.agents, names=names), tx.all(SQL.work, names=names), tx.all(SQL.questions)

    fresh, agents, work, questions = await ctx.read(question)
    wanted = {name for row in fresh for name in (row["branch_name"], row["integration_target"])}
    commits = await to_thread(repository.heads, wanted)
    found = await scan(ctx, repository)
    queue = [q["worktree"] for q in questions if q["state"] != "asked"]
    done = {w["worktree"]: w for w in work}
    made = []
    for row, (dirty, unseen) in zip(fresh, looks, strict=True):
        name, tasks = row["name"], done.get(row["name"])
        own, target = commits.get(row["branch_name"]), commits.get(row["integration_target"])
        facts = await ctx.predictions.facts(repository, own, target)
        overlaps = [Overlap(worktree=other, files=list(files)) for other, files in found.overlaps(name)]
        asked = next((q["approval_id"] for q in questions if q["worktree"] == name), None)
        made.append(
            WorktreeStatus(
                **worktree_of(row).model_dump(),
                commit=own,
                ahead=facts.ahead,
                behind=facts.behind,
                files=[FileStat(path=f.path, added=f.added, removed=f.removed) for f in facts.files[:SHOWN_FILES]],
                added=sum(f.added or 0 for f in facts.files),
                removed=sum(f.removed or 0 for f in facts.files),
                dirty=dirty,
                agents=[a["assigned_agent_id"] for a in agents if a["worktree"] == name],
                open_tasks=int(tasks["open_tasks"]) if tasks else 0,
                last_activity=_last_activity(row, tasks),
                conflicts=list(facts.conflicts),
                overlaps=overlaps,
                approval_id=asked,
                queue_place=queue.index(name) + 1 if name in queue else None,
                problem=problems.get(name) or unseen,
            )
        )
    return made


def _last_activity(row: Row, tasks: Row | None) -> int:
    times = [row["created_at"], row["imported_at"], row["closed_at"]]
    if tasks:
        times += [tasks["claimed_at"], tasks["started_at"], tasks["completed_at"]]
    return int(max(time for time in times if time is not None))


async def _dirty_diff(ctx: Ctx, repository: Repository, row: Row) -> list[FileDiff]:
    place = place_of(ctx, row)
    if row["status"] not in integration.OPEN:
        return []
    if not await to_thread(is_there, place):
        raise worktree_gone(place)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place)
    return await to_thread(checkout.dirty_diff, ctx.settings.max_diff_bytes)


def _is_below(file: str, path: str) -> bool:
    return file == path or file.startswith(path.rstrip("/") + "/")


async def _current(ctx: Ctx, repository: Repository, row: Row) -> str | None:
    """The newest commit of a worktree that can be had."""
    await import_new_commits(ctx, repository, [row])
    return await to_thread(repository.resolve, row["branch_name"])


def _rows(tx: Reader, name: str | None) -> list[Row]:
    return open_worktrees(tx) if name is None else [require_worktree(tx, name)]
