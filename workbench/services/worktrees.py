"""Git worktrees: one directory and branch for each branch of work, merged when a person approves (spec 3).

Integration never touches uncommitted work in the person's checkout. The approval names the commit
that will be merged; a branch that moved since voids it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from workbench.errors import Conflict, NotFound, Refused, WorkbenchError
from workbench.git import Checkout, Identity, Repository
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules import access
from workbench.services import approvals, workers
from workbench.services.approvals import Approval
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
T = TypeVar("T")

COMMITTER = Identity("Workbench", "workbench@localhost")
KIND = "integration"
IMPORT_BYTES = 1 << 30

WorktreeName = Annotated[str, Field(min_length=1, max_length=50)]
Branch = Annotated[str, Field(min_length=1, max_length=200)]


class Worktree(Wire):
    """A branch of work and where it stands."""

    name: str
    branch_name: str
    integration_target: str
    status: Literal["active", "integrating", "integrated", "discarded"]
    path: str
    created_by: str
    created_at: Micros
    integrated_commit: str | None


class FileStat(Wire):
    """A changed file; null counts mean a binary one."""

    path: str
    added: int | None
    removed: int | None


class WorktreeStatus(Worktree):
    """A worktree with what git and the store know about it."""

    commit: str | None
    ahead: int
    behind: int
    files: list[FileStat]
    conflicts: list[str]
    agents: list[str]
    open_tasks: int


class WorktreeStatuses(Wire):
    """Worktrees, oldest first."""

    worktrees: list[WorktreeStatus]


class IntegrationAsked(Wire):
    """Where an integration stands."""

    state: Literal["awaiting_approval", "integrated"]
    approval_id: int
    worktree: str
    target_branch: str
    commit: str | None


@op(allow=Level.PLANNER)
async def create_worktree(
    ctx: Ctx,
    name: WorktreeName,
    branch_name: Annotated[Branch | None, Field(description="Default: wb/<name>/main.")] = None,
    source_branch: Annotated[
        Branch | None,
        Field(
            description="Where to fork from, and the default target of the integration. Default: the current branch."
        ),
    ] = None,
) -> Worktree:
    """Create a git worktree with a new branch for one branch of work."""
    access.check_worktree_name(name)
    async with ctx.git_lock:
        repository = await _repository(ctx)
        source = source_branch or await _git(repository.current_branch) or "main"
        branch = branch_name or f"wb/{name}/main"
        path = ctx.settings.worktrees / name
        await ctx.read(lambda tx: _require_free(tx, name))
        commit = await _git(repository.add_worktree, path, _own(path), branch, source)
        try:
            return await ctx.write(lambda tx: _add(tx, name, branch, commit, source, path))
        except WorkbenchError:
            await _git(repository.remove_worktree, path, _own(path))
            raise


@op(allow=Level.READ, reads=True)
async def get_worktree_status(
    ctx: Ctx,
    worktree_name: Annotated[WorktreeName | None, Field(description="Null: all that are active.")] = None,
) -> WorktreeStatuses:
    """Worktrees with commits ahead and behind, changed files, predicted conflicts, agents, open tasks."""
    rows = await ctx.read(lambda tx: _rows(tx, worktree_name))
    repository = await _repository(ctx)
    return WorktreeStatuses(worktrees=[await _status(ctx, repository, row) for row in rows])


@op(allow=Level.PLANNER)
async def integrate_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    target_branch: Annotated[Branch | None, Field(description="Default: the branch it was forked from.")] = None,
    require_human_approval: bool = True,
) -> IntegrationAsked:
    """Ask a person to merge a worktree's commits into the target branch; asking again returns the same question."""
    return await _ask(ctx, worktree_name, target_branch, require_human_approval)


@op(allow=Level.PLANNER)
async def request_integration(
    ctx: Ctx, worktree_name: WorktreeName, target_branch: Branch | None = None
) -> IntegrationAsked:
    """Another name of integrate_worktree."""
    return await _ask(ctx, worktree_name, target_branch, True)


@op(allow=Level.PLANNER, destructive=True)
async def discard_worktree(
    ctx: Ctx, worktree_name: WorktreeName, reason: Annotated[str, Field(max_length=1_000)] = ""
) -> Worktree:
    """Give a worktree up: its agents are ended, its directory is removed, its branch is kept."""
    async with ctx.git_lock:
        row = await ctx.read(lambda tx: _require_active(tx, ctx, worktree_name))
        repository = await _repository(ctx)

        def change(tx: Tx) -> Worktree:
            _close(tx, row, "discarded", None)
            if question := approvals.open_question(tx, KIND, f"worktree:{worktree_name}"):
                approvals.decide(tx, question, "rejected", "the worktree was discarded")
            tx.emit("worktree.discarded", f"worktree:{worktree_name}", reason=reason)
            return _worktree(_require(tx, worktree_name))

        await workers.end_all(ctx, "the worktree was discarded", worktree_name)
        await _git(_import, repository, row)
        discarded = await ctx.write(change)
        await _git(repository.remove_worktree, Path(row["path"]), _own(Path(row["path"])))
        return discarded


@approvals.effect(KIND)
async def decide_integration(ctx: Ctx, approval: Approval, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Merge what was approved, or leave the worktree as it is."""
    name = approval.payload["worktree"]
    if not yes:
        reason, outcome = str(choices.get("reason", "")), {"worktree": name, "state": "rejected"}
        return await ctx.write(lambda tx: approvals.decide(tx, approval, "rejected", reason, outcome))
    approvals.check_choices(choices, set())
    async with ctx.git_lock:
        return await _merge(ctx, approval)


async def recover(ctx: Ctx) -> None:
    """Settle integrations that a crash cut off: a merge that is in the target counts, else it is undone."""
    rows = await ctx.read(lambda tx: tx.all(SQL.integrating))
    if not rows:
        return
    repository = await _repository(ctx)
    for row in rows:
        await _settle(ctx, repository, row)


async def _settle(ctx: Ctx, repository: Repository, row: Row) -> None:
    name = row["name"]
    question = await ctx.read(lambda tx: approvals.open_question(tx, KIND, f"worktree:{name}"))
    if question is not None:
        target = question.payload["target"]
        if await _git(repository.is_ancestor, question.payload["source_commit"], target):
            commit = await _git(repository.resolve, target)
            await _finish(ctx, repository, row, question, str(commit))
            return

    def change(tx: Tx) -> None:
        tx.run(SQL.set_status, name=name, status="active")
        tx.emit("worktree.refused", f"worktree:{name}", code="INTERRUPTED")

    await ctx.write(change)


async def _ask(ctx: Ctx, name: str, target: str | None, require_human_approval: bool) -> IntegrationAsked:
    if not require_human_approval and ctx.settings.integration_requires_approval:
        raise Refused(
            "APPROVAL_REQUIRED",
            "A person approves what is merged here. Leave require_human_approval out, or have the "
            "setting integration_requires_approval changed.",
        )
    row = await ctx.read(lambda tx: _require_active(tx, ctx, name))
    repository = await _repository(ctx)
    payload = await _git(_proposal, repository, row, target or row["integration_target"])

    def change(tx: Tx) -> int:
        question = approvals.open_question(tx, KIND, f"worktree:{name}")
        if question and all(question.payload[key] == payload[key] for key in ("source_commit", "target")):
            return question.id
        if question:
            approvals.decide(tx, question, "failed", "the branch has new commits or another target; asked anew")
        return approvals.ask(tx, KIND, f"worktree:{name}", payload)

    approval_id = await ctx.write(change)
    asked = IntegrationAsked(
        state="awaiting_approval",
        approval_id=approval_id,
        worktree=name,
        target_branch=payload["target"],
        commit=None,
    )
    if require_human_approval:
        return asked
    decision = await approvals.approve(ctx, approval_id)
    return asked.model_copy(update={"state": "integrated", "commit": decision.outcome["commit"]})


def _proposal(repository: Repository, row: Row, target: str) -> dict[str, Any]:
    """What a person is shown, and what is recorded as approved. Blocks on git.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``NOTHING_TO_INTEGRATE``, ``WORKTREE_DIRTY``.
    """
    repository.check_branch_name(target)
    branch = row["branch_name"]
    _import(repository, row)
    source_commit, target_commit = repository.resolve(branch), repository.resolve(target)
    for name, commit in ((branch, source_commit), (target, target_commit)):
        if commit is None:
            raise NotFound("BRANCH_NOT_FOUND", f"There is no branch {name!r}.")
    left = _inside(row).uncommitted()
    if left:
        raise Conflict(
            "WORKTREE_DIRTY",
            f"The worktree {row['name']} has uncommitted changes. Commit or remove them first.",
            files=left,
        )
    ahead, behind = repository.ahead_behind(branch, target)
    if not ahead:
        raise Conflict("NOTHING_TO_INTEGRATE", f"{branch} has no commit that {target} does not have.")
    return {
        "worktree": row["name"],
        "branch": branch,
        "target": target,
        "source_commit": source_commit,
        "target_commit": target_commit,
        "ahead": ahead,
        "behind": behind,
        "commits": [
            {"id": c.id, "author": c.author, "subject": c.subject} for c in repository.commits(target, branch, 50)
        ],
        "files": [
            {"path": f.path, "added": f.added, "removed": f.removed} for f in repository.diff_stat(target, branch)[:500]
        ],
        "conflicts": list(repository.preview_merge(target, branch).conflicts),
    }


async def _merge(ctx: Ctx, approval: Approval) -> dict[str, Any]:
    """Merge the approved commit; the outcome. The lock is held.

    Raises:
        Conflict: ``APPROVAL_VOID`` (the branch moved), ``TARGET_DIRTY``, ``MERGE_CONFLICT``,
            ``TARGET_MOVED``, ``WORKTREE_CLOSED``; the target is as it was.
    """
    what = approval.payload
    repository = await _repository(ctx)
    row = await ctx.write(lambda tx: _set_integrating(tx, what["worktree"]))
    try:
        await _git(_import, repository, row)
        if await _git(repository.resolve, what["branch"]) != what["source_commit"]:
            raise Conflict(
                "APPROVAL_VOID",
                f"{what['branch']} has other commits than were approved. Ask for its integration again.",
            )
        message = f"Integrate {what['worktree']}\n\nApproved by {ctx.caller.name} (approval {approval.id})."
        done = await _git(repository.integrate, what["source_commit"], what["target"], message, COMMITTER)
    except WorkbenchError as error:
        refusal = error
        await ctx.write(lambda tx: _not_merged(tx, approval, refusal))
        raise
    return await _finish(ctx, repository, row, approval, done.commit)


def _not_merged(tx: Tx, approval: Approval, error: WorkbenchError) -> None:
    """The worktree stays active. What the person can mend (a dirty checkout) stays on the desk."""
    tx.run(SQL.set_status, name=approval.payload["worktree"], status="active")
    if error.code in ("APPROVAL_VOID", "MERGE_CONFLICT"):
        approvals.decide(tx, approval, "failed", error.message)
    tx.emit("worktree.refused", f"worktree:{approval.payload['worktree']}", code=error.code, **error.details)


async def _finish(ctx: Ctx, repository: Repository, row: Row, approval: Approval, commit: str) -> dict[str, Any]:
    name, target = row["name"], approval.payload["target"]

    def change(tx: Tx) -> dict[str, Any]:
        _close(tx, row, "integrated", commit)
        tx.emit("worktree.integrated", f"worktree:{name}", commit=commit, target=target)
        outcome = {"worktree": name, "state": "integrated", "commit": commit}
        return approvals.decide(tx, approval, "approved", outcome=outcome)

    outcome = await ctx.write(change)
    await workers.end_all(ctx, "the worktree was integrated", name)
    await _git(repository.remove_worktree, Path(row["path"]), _own(Path(row["path"])))
    return outcome


async def _status(ctx: Ctx, repository: Repository, row: Row) -> WorktreeStatus:
    facts = await ctx.read(lambda tx: (tx.all(SQL.agents, name=row["name"]), tx.one(SQL.open_tasks, name=row["name"])))
    agents, tasks = facts
    git = await _git(_git_facts, repository, row)
    return WorktreeStatus(
        **_worktree(row).model_dump(),
        **git,
        agents=[a["assigned_agent_id"] for a in agents],
        open_tasks=tasks["n"] if tasks else 0,
    )


def _git_facts(repository: Repository, row: Row) -> dict[str, Any]:
    branch, target = row["branch_name"], row["integration_target"]
    _import(repository, row)
    commit = repository.resolve(branch)
    if commit is None or repository.resolve(target) is None:
        return {"commit": commit, "ahead": 0, "behind": 0, "files": [], "conflicts": []}
    ahead, behind = repository.ahead_behind(branch, target)
    files = [FileStat(path=f.path, added=f.added, removed=f.removed) for f in repository.diff_stat(target, branch)]
    conflicts = list(repository.preview_merge(target, branch).conflicts)
    return {"commit": commit, "ahead": ahead, "behind": behind, "files": files, "conflicts": conflicts}


def _own(path: Path) -> Path:
    """The repository that a worktree has for itself."""
    return path.parent.parent / "repositories" / path.name


def _inside(row: Row) -> Checkout:
    return Checkout(Path(row["path"]), _own(Path(row["path"])))


def _import(repository: Repository, row: Row) -> None:
    """Take in what was committed in a worktree that is still there and whose branch nobody deleted."""
    inside = _inside(row)
    if inside.path.is_dir() and inside.git_dir.is_dir() and repository.resolve(row["branch_name"]):
        repository.import_branch(inside, row["branch_name"], max_bytes=IMPORT_BYTES)


async def _repository(ctx: Ctx) -> Repository:
    return await _git(Repository.open, ctx.settings.project)


async def _git(fn: Callable[..., T], *args: Any) -> T:
    """Run blocking git work beside the loop."""
    return await asyncio.to_thread(fn, *args)


def _require_free(tx: Reader, name: str) -> None:
    row = tx.one(SQL.get, name=name)
    if row and row["status"] in ("active", "integrating"):
        raise Conflict("WORKTREE_EXISTS", f"There is a worktree {name!r} already. Choose another name.")


def _add(tx: Tx, name: str, branch: str, commit: str, target: str, path: Path) -> Worktree:
    _require_free(tx, name)
    values = {"name": name, "branch": branch, "commit": commit, "target": target, "path": str(path)}
    tx.run(SQL.add, values | {"by": tx.actor, "now": tx.now})
    tx.emit("worktree.created", f"worktree:{name}", branch=branch, commit=commit, target=target)
    return _worktree(_require(tx, name))


def _close(tx: Tx, row: Row, status: str, commit: str | None) -> None:
    tx.run(SQL.close, name=row["name"], status=status, commit=commit, now=tx.now)


def _rows(tx: Reader, name: str | None) -> list[Row]:
    return tx.all(SQL.active) if name is None else [_require(tx, name)]


def _require(tx: Reader, name: str) -> Row:
    row = tx.one(SQL.get, name=name)
    if row is None:
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no worktree {name!r}.")
    return row


def _require_active(tx: Reader, ctx: Ctx, name: str) -> Row:
    """A worktree the caller may end: planners manage only their own.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Conflict: ``WORKTREE_CLOSED``. Refused: ``FORBIDDEN``.
    """
    row = _require(tx, name)
    if row["status"] != "active":
        raise Conflict("WORKTREE_CLOSED", f"The worktree {name} is {row['status']}.", status=row["status"])
    if ctx.caller.level is not Level.OPERATOR and row["created_by"] != ctx.caller.name:
        raise Refused("FORBIDDEN", f"The worktree {name} belongs to {row['created_by']}.")
    return row


def _set_integrating(tx: Tx, name: str) -> Row:
    if not tx.run(SQL.set_integrating, name=name):
        raise Conflict("WORKTREE_CLOSED", f"The worktree {name} is {_require(tx, name)['status']}.")
    return _require(tx, name)


def _worktree(row: Row) -> Worktree:
    return Worktree(
        name=row["name"],
        branch_name=row["branch_name"],
        integration_target=row["integration_target"],
        status=row["status"],
        path=row["path"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        integrated_commit=row["integrated_commit"],
    )
