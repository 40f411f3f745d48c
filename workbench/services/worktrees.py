"""Git worktrees: one directory and branch for each branch of work (spec 3); made, looked at, updated, given up.

A worktree has a repository of its own, which its workers may do anything to. Its commits are taken over into the
person's repository, checked, before they are shown, merged or removed; git runs there in a box only. What happens
among files is written down before it begins, so that a crash in any step leaves nothing half done.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, NotFound, Refused, WorkbenchError
from workbench.git import Checkout, Repository
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules import access, integration
from workbench.rules.integration import Action, WorktreeState
from workbench.services import approvals, workers
from workbench.services.confinement import confinement_of
from workbench.services.repositories import (
    COMMITTER,
    Place,
    Tried,
    checkout_of,
    gone,
    heads,
    is_there,
    place_of,
)
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "integration"
SAVED = "refs/workbench/saved"
"""Where what is nowhere else is kept while a bundle of it is written."""
MOST_REFERENCES = 50
"""A worktree with more branches of its own is kept as it is instead."""

WorktreeName = Annotated[str, Field(min_length=1, max_length=50)]
Branch = Annotated[str, Field(min_length=1, max_length=200)]

log = logging.getLogger(__name__)


class Worktree(Wire):
    """A branch of work and where it stands."""

    name: str
    branch_name: str
    integration_target: str
    status: WorktreeState
    path: str
    created_by: str
    created_at: Micros
    integrated_commit: str | None
    confined: bool


class Updated(Wire):
    """What bringing the target in led to; with conflicts nothing was changed."""

    worktree: str
    commit: str
    merged: bool
    conflicts: list[str]


class Discarded(Worktree):
    """A worktree that was given up. `bundle` names what was saved, for `git fetch <bundle> '*:*'`."""

    branch_kept: bool
    bundle: str | None


# -- operations


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
    return await ctx.repositories.whole(_create(ctx, name, branch_name or f"wb/{name}/main", source_branch))


@op(allow=Level.PLANNER)
async def update_worktree(ctx: Ctx, worktree_name: WorktreeName) -> Updated:
    """Bring what is new on the target branch into a worktree; conflicts are listed and nothing is changed."""
    return await ctx.repositories.whole(_update(ctx, worktree_name))


@op(allow=Level.PLANNER, destructive=True)
async def discard_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    reason: Annotated[str, Field(max_length=1_000)] = "",
    delete_branch: Annotated[bool, Field(description="Delete its branch too.")] = False,
    force: Annotated[
        bool, Field(description="Also if commits or uncommitted files are nowhere else; they are saved as a bundle.")
    ] = False,
) -> Discarded:
    """Give a worktree up: its agents are ended, its files are removed, its branch is kept unless told otherwise."""
    return await ctx.repositories.whole(_discard(ctx, worktree_name, reason, delete_branch, force))


# -- what a crash left


async def settle_steps(ctx: Ctx, repository: Repository) -> None:
    """Finish or undo what was begun among files; see `Repositories.ground`."""
    for step in await ctx.read(lambda tx: tx.all(SQL.steps)):
        await _settle(ctx, repository, step)
    if (repository.git_dir / SAVED).is_dir():
        await to_thread(_forget_saved, repository)


def _forget_saved(repository: Repository) -> None:
    """Delete the references that a bundle was, or was to be, written of."""
    found = repository.read("for-each-ref", "--format=%(objectname) %(refname)", SAVED).text
    for commit, _, ref in (line.partition(" ") for line in found.splitlines()):
        repository.delete_branch(ref, commit)


async def _settle(ctx: Ctx, repository: Repository, step: Row) -> None:
    """Undo a creation that was cut off; do a removal again."""
    name = step["name"]
    place = place_of(ctx, step)
    if step["step"] == "rescue":
        row = {**await ctx.read(lambda tx: require(tx, name)), "status": WorktreeState.ACTIVE}
        bundle = await _save_what_is_nowhere_else(ctx, repository, row, with_branch=False)
        await ctx.write(lambda tx: _rescued(tx, place, step, bundle))
    await remove_files(ctx, repository, place)
    if step["branch_commit"]:
        with suppress(WorkbenchError):  # it has moved: then somebody works on it, and it stays
            await to_thread(repository.delete_branch, step["branch_name"], step["branch_commit"])
    await ctx.write(lambda tx: tx.run(SQL.end, name=step["name"]))


def _rescued(tx: Tx, place: Place, step: Row, bundle: str | None) -> None:
    begin(tx, "remove", place, step["branch_name"], step["branch_commit"])
    if bundle:
        tx.emit("worktree.saved", f"worktree:{place.name}", bundle=bundle)


async def remove_files(ctx: Ctx, repository: Repository, place: Place) -> None:
    """Remove a worktree's directories, whatever is there of them.

    Raises:
        Unavailable: ``WORKTREE_NOT_REMOVED``.
    """
    ctx.repositories.glances.forget(place.path)
    await to_thread(repository.remove_worktree, place.path, place.git_dir)
    await to_thread(shutil.rmtree, place.scratch, ignore_errors=True)


def begin(tx: Tx, step: str, place: Place, branch: str, commit: str | None) -> None:
    """Write down what is about to happen among files. `commit`: the branch goes too, if it is still there."""
    values = {"name": place.name, "step": step, "path": str(place.path), "git_dir": str(place.git_dir)}
    tx.run(SQL.begin, values | {"branch": branch, "commit": commit, "now": tx.now})


# -- creating


async def _create(ctx: Ctx, name: str, branch: str, source: str | None) -> Worktree:
    async with ctx.repositories.ground(ctx) as repository:
        await ctx.read(lambda tx: _require_free(tx, name))
        repository.check_branch_name(branch)
        target = source or await to_thread(repository.current_branch) or "main"
        commit = await to_thread(repository.commit, target)
        await to_thread(_require_no_branch, repository, branch)
        place = Place.of(ctx.settings, name)
        await to_thread(_require_no_directory, place)
        await ctx.write(lambda tx: begin(tx, "create", place, branch, commit))
        try:
            await to_thread(repository.add_worktree, place.path, place.git_dir, branch, commit)
            protected = await to_thread(repository.protected)
            values = {"branch": branch, "commit": commit, "target": target, "protected": json.dumps(protected)}
            return await ctx.write(lambda tx: _add(tx, ctx, place, values))
        except WorkbenchError:
            await settle_steps(ctx, repository)
            raise


def _require_free(tx: Reader, name: str) -> None:
    if row := tx.one(SQL.get, name=name):
        integration.step(name, row["status"], Action.CREATE)


def _require_no_branch(repository: Repository, branch: str) -> None:
    if repository.resolve(branch) is not None:
        text = f"There is a branch {branch!r} already. Choose another name."
        raise Conflict("BRANCH_EXISTS", text, branch=branch)


def _require_no_directory(place: Place) -> None:
    for path in (place.path, place.git_dir):
        if os.path.lexists(path):
            raise Conflict("WORKTREE_PATH_TAKEN", f"{path} is there already. Choose another name.")


def _add(tx: Tx, ctx: Ctx, place: Place, values: Mapping[str, str]) -> Worktree:
    _require_free(tx, place.name)
    where = {"name": place.name, "path": str(place.path), "git_dir": str(place.git_dir)}
    how = {"confined": int(confinement_of(ctx.settings).enforced), "creator": ctx.caller.agent}
    tx.run(SQL.add, {**values, **where, **how, "by": tx.actor, "now": tx.now})
    tx.run(SQL.end, name=place.name)
    told = {key: values[key] for key in ("branch", "commit", "target")}
    tx.emit("worktree.created", f"worktree:{place.name}", **told)
    return worktree_of(require(tx, place.name))


# -- taking over what was committed


async def take_over(ctx: Ctx, repository: Repository, row: Row) -> str:
    """Bring a worktree's branch into the person's repository; the commit. The ground is held.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``IMPORT_REFUSED``. Unavailable: ``WORKTREE_GONE``.
    """
    place, branch = place_of(ctx, row), row["branch_name"]
    if row["status"] not in integration.OPEN:
        commit = await to_thread(repository.resolve, branch)
    elif not await to_thread(is_there, place):
        raise gone(place)
    else:
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        commit = await to_thread(repository.import_branch, checkout, branch, max_bytes=ctx.settings.max_import_bytes)
    if commit is None:
        raise no_branch(branch)
    if commit != row["imported_commit"]:
        found = commit
        await ctx.write(lambda tx: _imported(tx, row["name"], found))
    return commit


def _imported(tx: Tx, name: str, commit: str) -> None:
    if tx.run(SQL.imported, name=name, commit=commit, now=tx.now):
        tx.emit("worktree.imported", f"worktree:{name}", commit=commit)


async def take_over_all(ctx: Ctx, repository: Repository, rows: Sequence[Row]) -> dict[str, str]:
    """Take over what is new in some worktrees; why it could not be, by name. Where nothing is, nothing is run."""
    problems: dict[str, str] = {}
    for row, seen in await to_thread(_with_news, ctx, repository, rows):
        tried = ctx.repositories.tried.get(row["name"])
        if tried is None or not tried.holds(seen):
            tried = ctx.repositories.tried[row["name"]] = await _try(ctx, row["name"], seen)
        if tried.problem:
            problems[row["name"]] = tried.problem
    return problems


async def _try(ctx: Ctx, name: str, seen: str | None) -> Tried:
    try:
        await ctx.repositories.whole(_take_over_now(ctx, name))
    except WorkbenchError as error:
        return Tried(seen, f"{error.code}: {error.message}")
    return Tried(seen)


async def _take_over_now(ctx: Ctx, name: str) -> None:
    async with ctx.repositories.ground(ctx) as repository:
        row = await ctx.read(lambda tx: require(tx, name))
        await take_over(ctx, repository, row)


def _with_news(ctx: Ctx, repository: Repository, rows: Sequence[Row]) -> list[tuple[Row, str | None]]:
    """Worktrees that are not where the person's repository has them, as far as a look at a file tells, and where."""
    known = heads(repository, (row["branch_name"] for row in rows))
    seen = [
        (row, repository.peek_branch(place_of(ctx, row).git_dir, row["branch_name"]))
        for row in rows
        if row["status"] in integration.OPEN
    ]
    return [(row, commit) for row, commit in seen if commit is None or commit != known.get(row["branch_name"])]


# -- updating


async def _update(ctx: Ctx, name: str) -> Updated:
    async with ctx.repositories.ground(ctx) as repository:
        row = await ctx.read(lambda tx: require_own(tx, ctx.caller, name, Action.APPROVE))
        if running := await ctx.read(lambda tx: tx.all(SQL.running, name=name)):
            tasks = [task["task_id"] for task in running]
            listed = ", ".join(map(str, tasks))
            raise Conflict(
                "WORKTREE_BUSY", f"Task {listed} is being done in {name}. Wait until it has ended.", tasks=tasks
            )
        before = await take_over(ctx, repository, row)
        target = await to_thread(commit_of, repository, row["integration_target"])
        checkout = await to_thread(checkout_of, ctx.settings, repository, place_of(ctx, row))
        branch, _ = await to_thread(checkout.head)
        if branch != row["branch_name"]:
            text = f"The worktree {name} is on another branch than {row['branch_name']}. Switch it back first."
            raise Conflict("WORKTREE_ELSEWHERE", text, branch=branch)
        message = f"Merge {row['integration_target']} into {row['branch_name']}"
        conflicts = await to_thread(checkout.merge, target, message, COMMITTER)
        commit = before if conflicts else await take_over(ctx, repository, row)
        updated = Updated(worktree=name, commit=commit, merged=commit != before, conflicts=conflicts)
        if updated.merged:
            told = {"commit": commit, "target": row["integration_target"]}
            await ctx.write(lambda tx: tx.emit("worktree.updated", f"worktree:{name}", **told))
        return updated


def commit_of(repository: Repository, branch: str) -> str:
    """Where a branch of the person's is.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``.
    """
    commit = repository.resolve(branch)
    if commit is None:
        raise no_branch(branch)
    return commit


# -- giving up


async def _discard(ctx: Ctx, name: str, reason: str, delete_branch: bool, force: bool) -> Discarded:
    async with ctx.repositories.ground(ctx) as repository:
        row = await ctx.read(lambda tx: require_own(tx, ctx.caller, name, Action.DISCARD))
        if not force:
            await _require_nothing_lost(ctx, repository, row, delete_branch)
        await workers.end_all(ctx, "the worktree was discarded", name)
        bundle = await _save_what_is_nowhere_else(ctx, repository, row, with_branch=delete_branch)
        commit = await to_thread(repository.resolve, row["branch_name"]) if delete_branch else None
        place = place_of(ctx, row)

        def change(tx: Tx) -> Worktree:
            close(tx, row, Action.DISCARD, None)
            if question := approvals.open_question(tx, KIND, f"worktree:{name}"):
                approvals.decide(tx, question, "rejected", "the worktree was discarded")
            begin(tx, "remove", place, row["branch_name"], commit)
            told = {"reason": reason, "branch_kept": not delete_branch, "bundle": bundle}
            tx.emit("worktree.discarded", f"worktree:{name}", **told)
            return worktree_of(require(tx, name))

        discarded = await ctx.write(change)
        await finish_removal(ctx, repository, name)
        return Discarded(**discarded.model_dump(), branch_kept=not delete_branch, bundle=bundle)


async def finish_removal(ctx: Ctx, repository: Repository, name: str) -> None:
    """Remove the files of a worktree that was closed. What cannot be removed now is tried again later."""
    for step in await ctx.read(lambda tx: tx.all(SQL.steps)):
        if step["name"] == name:
            try:
                await _settle(ctx, repository, step)
            except WorkbenchError:
                log.warning("the files of worktree %s could not be removed; it is tried again", name, exc_info=True)


def close(tx: Tx, row: Row, action: Action, commit: str | None) -> None:
    """Set a worktree's last state; questions about it are settled."""
    before = require(tx, row["name"])["status"]
    after = integration.step(row["name"], before, action)
    tx.run(SQL.close, name=row["name"], status=str(after), before=before, commit=commit, now=tx.now)
    tx.run(SQL.forget_question, name=row["name"])


async def _require_nothing_lost(ctx: Ctx, repository: Repository, row: Row, with_branch: bool) -> None:
    name, place, alone, refs = row["name"], place_of(ctx, row), 0, list[str]()
    if await to_thread(is_there, place):
        await take_over(ctx, repository, row)
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        if files := await to_thread(checkout.uncommitted):
            raise Conflict(
                "WORKTREE_DIRTY",
                f"The worktree {name} has uncommitted files. Commit them, or discard with force: they are then saved "
                "as a bundle.",
                files=files,
            )
        refs = await to_thread(_only_there, repository, checkout)
    if with_branch:
        alone = await to_thread(_commits_alone, repository, row["branch_name"])
    if alone or refs:
        what = f"{alone} commits of {row['branch_name']}" if alone else f"What {', '.join(refs[:3])} of {name} has"
        raise Conflict(
            "COMMITS_ONLY_HERE",
            f"{what} would be on no branch of yours. Keep the branch, or discard with force: it is then saved as a "
            "bundle.",
            commits=alone,
            refs=refs,
        )


def _commits_alone(repository: Repository, branch: str, besides: Sequence[str] = ()) -> int:
    """How many commits go if the branch does, and the references `besides` do too."""
    return repository.only_in(branch, besides=besides) if repository.resolve(branch) else 0


def _only_there(repository: Repository, checkout: Checkout) -> list[str]:
    """References of a worktree's own (a stash, other branches) whose commits the person's repository has not."""
    found = {ref: commit for ref, commit in checkout.references().items() if not ref.startswith("refs/workbench/")}
    asked = "".join(f"{commit}\n" for commit in found.values()).encode("ascii", "replace")
    known = repository.read("cat-file", "--batch-check=%(objectname)", stdin=asked).text.splitlines()
    return sorted(ref for (ref, commit), said in zip(found.items(), known, strict=True) if said != commit)


async def _save_what_is_nowhere_else(ctx: Ctx, repository: Repository, row: Row, *, with_branch: bool) -> str | None:
    """Write what would be lost with a worktree into the trash; the bundle, or None if nothing would be.

    A worktree in which git does not work is moved there as it is.

    Raises:
        Unavailable: ``BUNDLE_NOT_WRITTEN``: nothing was changed.
    """
    place, branch = place_of(ctx, row), row["branch_name"]
    try:
        refs = await _save_references(ctx, repository, row, place)
    except WorkbenchError as error:
        if error.code in ("BUNDLE_NOT_WRITTEN", "GIT_BUSY", "GIT_MISSING"):
            raise
        log.warning("worktree %s is moved to the trash as it is: %s", row["name"], error.message)
        return str(await to_thread(_move_to_trash, ctx.settings.trash, place, _stamp(ctx)))
    if with_branch and await to_thread(_commits_alone, repository, branch, refs) > 0:
        refs.append(f"refs/heads/{branch}")
    if not refs:
        return None
    bundle = ctx.settings.trash / f"{row['name']}-{_stamp(ctx)}.bundle"
    try:
        await to_thread(repository.write_bundle, bundle, refs)
    finally:
        await to_thread(_forget_saved, repository)
    return str(bundle)


async def _save_references(ctx: Ctx, repository: Repository, row: Row, place: Place) -> list[str]:
    """Take over everything of a worktree that would go with it, under references of their own; their names."""
    if not await to_thread(is_there, place):
        return []
    await take_over(ctx, repository, row)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place)
    own = f"{SAVED}/{row['name']}"
    wanted = {ref: f"{own}/{ref.removeprefix('refs/')}" for ref in await to_thread(_only_there, repository, checkout)}
    if len(wanted) > MOST_REFERENCES:
        raise Conflict("IMPORT_REFUSED", f"{row['name']} has {len(wanted)} branches of its own.")
    message = f"What was not committed in {row['name']}"
    uncommitted = "refs/workbench/uncommitted"
    if await to_thread(checkout.save_all, uncommitted, message, COMMITTER) is not None:
        wanted[uncommitted] = f"{own}/uncommitted"
    for ref, into in wanted.items():
        limit = ctx.settings.max_import_bytes
        await to_thread(repository.import_ref, checkout, ref, into=into, max_bytes=limit)
    return list(wanted.values())


def _move_to_trash(trash: Path, place: Place, stamp: str) -> Path:
    into = trash / f"{place.name}-{stamp}"
    into.mkdir(parents=True)
    for path, name in ((place.path, "files"), (place.git_dir, "repository")):
        if os.path.lexists(path):
            path.rename(into / name)
    return into


def _stamp(ctx: Ctx) -> str:
    return datetime.fromtimestamp(ctx.store.now() / 1_000_000, UTC).strftime("%Y%m%dT%H%M%S-%f")


# -- rows


def open_rows(tx: Reader) -> list[Row]:
    """The worktrees that have their files, oldest first."""
    return tx.all(SQL.open)


def require(tx: Reader, name: str) -> Row:
    """A worktree, however it stands.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``.
    """
    row = tx.one(SQL.get, name=name)
    if row is None:
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no worktree {name!r}.")
    return row


def require_own(tx: Reader, caller: Caller, name: str, action: Action) -> Row:
    """A worktree that the caller may do something to: planners manage only their own.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Conflict: ``WORKTREE_CLOSED``. Refused: ``FORBIDDEN``.
    """
    row = require(tx, name)
    check_owner(caller, row)
    integration.step(name, row["status"], action)
    return row


def check_owner(caller: Caller, row: Row) -> None:
    """Refuse a planner the worktree of somebody else.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if caller.level is not Level.OPERATOR and row["creator"] != caller.agent:
        raise Refused("FORBIDDEN", f"The worktree {row['name']} belongs to {row['created_by']}.")


def require_to(tx: Reader, name: str, action: Action) -> Row:
    """A worktree of which `action` can be done.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Conflict: ``WORKTREE_CLOSED``.
    """
    row = require(tx, name)
    integration.step(name, row["status"], action)
    return row


def set_status(tx: Tx, name: str, action: Action) -> None:
    """Move a worktree on.

    Raises:
        Conflict: ``WORKTREE_CLOSED``.
    """
    before = require(tx, name)["status"]
    tx.run(SQL.set_status, name=name, before=before, status=str(integration.step(name, before, action)))


def worktree_of(row: Row) -> Worktree:
    """A worktree as it is shown."""
    return Worktree(
        name=row["name"],
        branch_name=row["branch_name"],
        integration_target=row["integration_target"],
        status=row["status"],
        path=row["path"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        integrated_commit=row["integrated_commit"],
        confined=bool(row["confined"]),
    )


def no_branch(branch: str) -> NotFound:
    """The error for a branch that is not there."""
    return NotFound("BRANCH_NOT_FOUND", f"There is no branch {branch!r}.")
