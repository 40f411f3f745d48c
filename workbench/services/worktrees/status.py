"""The status and the differences of worktrees.

Git runs in a worktree only inside its box, to find uncommitted files, and only when something has changed there.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import WorkbenchError
from workbench.git import FileDiff, Repository
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules import integration
from workbench.services import approvals
from workbench.services.tasks import attempts
from workbench.services.worktrees.conflicts import scan
from workbench.services.worktrees.imports import LOOK_SECONDS, import_new_commits, no_branch
from workbench.services.worktrees.places import checkout_of, empty_submodules, is_there, place_of, worktree_gone
from workbench.services.worktrees.rows import (
    WorktreeInfo,
    WorktreeName,
    open_worktrees,
    require_here,
    require_worktree,
    worktree_of,
)
from workbench.state.machine import on_another
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)
SHOWN_FILES = 500
"""How many changed files a status lists; the line counts cover all of them."""


class FileStat(Wire):
    """A changed file; the counts are null for a binary one."""

    path: str
    added: int | None
    removed: int | None


class Overlap(Wire):
    """Files in which this worktree would conflict with another one."""

    worktree: str
    files: list[str]


class IntegrationDecision(Wire):
    """The newest approval of a worktree's integration: who requested it, and who decided what, when and why."""

    id: int
    status: approvals.Status
    requester: str
    asker: str | None
    """The name of the person who requested it; null: no person did."""
    created_at: Micros
    decided_at: Micros | None
    decided_by: str | None
    person: str | None
    """The name of the person who decided; null: no person did."""
    reason: str | None


class WorktreePage(Wire):
    """Worktrees, oldest first."""

    worktrees: list[WorktreeInfo]


class WorktreeStatus(WorktreeInfo):
    """A worktree with its changes, conflicts, agents and tasks. `conflicts` are those with its target.

    `approval_id` is that of the open or queued integration; `approval` is the newest one, decided or not.
    """

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
    approval: IntegrationDecision | None
    queue_place: int | None
    merging: bool
    """Whether a merge is unfinished there; see resolve_worktree."""
    empty_submodules: list[str]
    """The submodules whose files it does not have, and why."""
    problem: str | None
    """What is in the way of its integration, or why its newest commits or uncommitted files are unknown; else null."""


class WorktreeStatuses(Wire):
    """Worktrees, oldest first."""

    worktrees: list[WorktreeStatus]


class FileDifference(Wire):
    """How one file differs; `patch` is a unified diff, null if the file is binary or it is too long (`truncated`)."""

    path: str
    old_path: str | None
    status: Literal["A", "M", "D", "R", "T"]
    added: int | None
    removed: int | None
    binary: bool
    patch: str | None
    truncated: bool


class WorktreeDiff(Wire):
    """The changes of a worktree, committed or uncommitted."""

    worktree: str
    target: str
    commit: str | None
    files: list[FileDifference]


@op(allow=Level.READ, reads=True, tool=False)
async def list_worktrees(ctx: Ctx) -> WorktreePage:
    """List the active worktrees as they are recorded. It does not ask git, so it is faster than get_worktree_status."""
    return WorktreePage(worktrees=[worktree_of(ctx, row) for row in await ctx.read(open_worktrees)])


@op(allow=Level.READ, reads=True, command="worktrees", refreshed_by="worktree approval clock")
async def get_worktree_status(
    ctx: Ctx,
    worktree_name: Annotated[WorktreeName | None, Field(description="Null: all active worktrees.")] = None,
) -> WorktreeStatuses:
    """Get worktrees with commits ahead and behind, changed and uncommitted files, conflicts, agents, tasks.

    Of those on other machines, what is recorded; their problem says where they are.
    """
    rows = await ctx.read(lambda tx: _rows(tx, worktree_name))
    repository = await ctx.local.repositories.open()
    problems = await import_new_commits(ctx, repository, rows)
    uncommitted = await asyncio.gather(*(_uncommitted(ctx, repository, row) for row in rows))
    return WorktreeStatuses(worktrees=await _statuses(ctx, repository, rows, uncommitted, problems))


@op(allow=Level.READ, reads=True, command="worktrees diff")
async def get_worktree_diff(
    ctx: Ctx,
    worktree_name: WorktreeName,
    uncommitted: Annotated[bool, Field(description="Uncommitted changes instead of committed ones.")] = False,
    path: Annotated[str | None, Field(max_length=4_096, description="Only this file or directory.")] = None,
    since: Annotated[
        str | None, Field(pattern=r"^[0-9a-f]{40,64}$", description="Only what was committed after this commit.")
    ] = None,
) -> WorktreeDiff:
    """Get what a worktree changed since it forked from its target, file by file, as unified diffs."""
    row = require_here(ctx, await ctx.read(lambda tx: require_worktree(tx, worktree_name)))
    repository = await ctx.local.repositories.open()
    if uncommitted:
        commit, differences = row["imported_commit"], await _dirty_diff(ctx, repository, row)
        differences = [file for file in differences if path is None or _is_within(file.path, path)]
    else:
        commit = await _newest_commit(ctx, repository, row)
        if commit is None:
            raise no_branch(row["branch_name"])
        base = row["integration_target"] if row["status"] in integration.OPEN else row["base_commit"]
        differences = await to_thread(
            repository.diff, since or base, commit, path=path, max_bytes=ctx.settings.max_diff_bytes
        )
    files = [FileDifference(**asdict(file)) for file in differences]
    return WorktreeDiff(worktree=row["name"], target=row["integration_target"], commit=commit, files=files)


async def _uncommitted(ctx: Ctx, repository: Repository, row: Row) -> tuple[list[str], str | None]:
    """The uncommitted files of a worktree, and why they are unknown (None: they are known)."""
    if row["status"] not in integration.OPEN:
        return [], None
    if not ctx.local.machine.has(row["machine"]):
        error = on_another(row["machine"], f"The worktree {row['name']}")
        return [], f"{error.code}: {error.message}"
    place = place_of(ctx, row)
    if not is_there(place):
        return [], f"WORKTREE_GONE: {worktree_gone(place).message}"
    try:
        checkout = await to_thread(checkout_of, ctx.settings, repository, place, limit=LOOK_SECONDS)
        return await ctx.local.repositories.status_cache.uncommitted(checkout), None
    except WorkbenchError as error:
        return [], f"{error.code}: {error.message}"


async def _statuses(
    ctx: Ctx,
    repository: Repository,
    rows: Sequence[Row],
    uncommitted: Sequence[tuple[list[str], str | None]],
    problems: Mapping[str, str],
) -> list[WorktreeStatus]:
    names = json.dumps([row["name"] for row in rows])

    def query(tx: Reader) -> tuple[list[Row], list[Row], list[Row], list[Row], list[Row]]:
        fresh = [require_worktree(tx, row["name"]) for row in rows]
        of_names = (tx.all(SQL.agents, names=names), tx.all(SQL.work, names=names), tx.all(SQL.decisions, names=names))
        return fresh, *of_names, tx.all(SQL.questions)

    fresh, agents, work, decisions, requests = await ctx.read(query)
    decision_of = {row["name"]: row for row in decisions}
    branches = {name for row in fresh for name in (row["branch_name"], row["integration_target"])}
    commits = await to_thread(repository.heads, branches)
    predicted = await scan(ctx, repository)
    left = _attempts_left(await ctx.read(attempts.not_put_away))
    queue = [r["worktree"] for r in requests if r["state"] != "asked"]
    tasks_of = {w["worktree"]: w for w in work}
    statuses = []
    for row, (dirty, unknown) in zip(fresh, uncommitted, strict=True):
        name, tasks = row["name"], tasks_of.get(row["name"])
        is_open = row["status"] in integration.OPEN
        is_here = ctx.local.machine.has(row["machine"])
        # A branch of the same name in this clone is not the worktree's.
        own = commits.get(row["branch_name"]) if is_here or not is_open else None
        target = commits.get(row["integration_target"])
        facts = await ctx.local.predictions.facts(repository, own, target)
        overlaps = [Overlap(worktree=other, files=list(files)) for other, files in predicted.overlaps(name)]
        statuses.append(
            WorktreeStatus(
                **worktree_of(ctx, row).model_dump(),
                commit=own or (None if is_here else row["imported_commit"]),
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
                approval_id=next((r["approval_id"] for r in requests if r["worktree"] == name), None),
                approval=_decision(decision_of.get(name), row),
                queue_place=queue.index(name) + 1 if name in queue else None,
                merging=is_open and is_here and (place_of(ctx, row).git_dir / "MERGE_HEAD").is_file(),
                empty_submodules=await _empty_submodules(ctx, repository, row, own) if is_here else [],
                problem=" ".join(filter(None, (*left.get(name, ()), problems.get(name) or unknown))) or None,
            )
        )
    return statuses


async def _empty_submodules(ctx: Ctx, repository: Repository, row: Row, commit: str | None) -> list[str]:
    if row["status"] not in integration.OPEN:
        return []
    return await to_thread(empty_submodules, ctx.settings, repository, place_of(ctx, row), commit)


def _attempts_left(works: Sequence[Row]) -> dict[str, list[str]]:
    """What is said of the attempts whose work could not be put away, by worktree."""
    texts = defaultdict(list)
    for work in works:
        texts[work["worktree"]].append(
            f"Attempt {work['attempt']} at task {work['task_id']} did not complete its task. {work['problem']}"
        )
    return texts


def _decision(decision: Row | None, row: Row) -> IntegrationDecision | None:
    """The newest approval of a worktree, unless it is of an earlier worktree of the same name."""
    if decision is None or decision["created_at"] < row["created_at"]:
        return None
    return IntegrationDecision(**{field: decision[field] for field in IntegrationDecision.model_fields})


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


def _is_within(file: str, path: str) -> bool:
    return file == path or file.startswith(path.rstrip("/") + "/")


async def _newest_commit(ctx: Ctx, repository: Repository, row: Row) -> str | None:
    """The newest commit of a worktree's branch that could be imported."""
    await import_new_commits(ctx, repository, [row])
    return await to_thread(repository.resolve, row["branch_name"])


def _rows(tx: Reader, name: str | None) -> list[Row]:
    return open_worktrees(tx) if name is None else [require_worktree(tx, name)]
