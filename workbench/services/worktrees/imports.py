"""Imports the commits of a worktree: checks them, and moves its branch in the user's repository to them."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence

from workbench.errors import NotFound, WorkbenchError
from workbench.git import Repository
from workbench.git.access import ImportAttempt
from workbench.ops import Ctx
from workbench.rules import integration
from workbench.services.worktrees.places import checkout_of, exclusive, is_there, place_of, worktree_gone
from workbench.services.worktrees.rows import require_worktree
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
LOOK_SECONDS = 20.0
"""How long each git command in a worktree may take that only looks: one worktree does not hold up the view of all."""


async def import_branch(ctx: Ctx, repository: Repository, row: Row, *, limit: float | None = None) -> str:
    """Import a worktree's branch into the user's repository and return its commit. Call with exclusive access.

    Args:
        limit: see `checkout_of`.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``IMPORT_REFUSED``.
        Unavailable: ``WORKTREE_GONE``, ``REPOSITORY_DAMAGED``.
    """
    place, branch = place_of(ctx, row), row["branch_name"]
    if row["status"] not in integration.OPEN:
        commit = await to_thread(repository.resolve, branch)
    elif not await to_thread(is_there, place):
        raise worktree_gone(place)
    else:
        checkout = await to_thread(checkout_of, ctx.settings, repository, place, limit=limit)
        commit = await to_thread(repository.import_branch, checkout, branch, max_bytes=ctx.settings.max_import_bytes)
    if commit is None:
        raise no_branch(branch)
    if commit != row["imported_commit"]:
        imported = commit
        await ctx.write(lambda tx: _record_import(tx, row["name"], imported))
    return commit


def _record_import(tx: Tx, name: str, commit: str) -> None:
    if tx.run(SQL.imported, name=name, commit=commit, now=tx.now):
        tx.emit("worktree.imported", f"worktree:{name}", commit=commit)


async def import_new_commits(ctx: Ctx, repository: Repository, rows: Sequence[Row]) -> dict[str, str]:
    """Import the new commits of worktrees; return the problems by name. Runs git only where the branch has changed."""
    problems: dict[str, str] = {}
    for row, seen in await to_thread(_find_changed, ctx, repository, rows):
        name, attempts = row["name"], ctx.local.repositories.import_attempts
        attempt = attempts.get((name, seen))
        if attempt is None:
            attempt = attempts[name, seen] = await _attempt(ctx, name)
        if attempt.problem:
            problems[name] = attempt.problem
    return problems


async def _attempt(ctx: Ctx, name: str) -> ImportAttempt:
    try:
        await ctx.local.repositories.shielded(_import_now(ctx, name))
    except WorkbenchError as error:
        return ImportAttempt(f"{error.code}: {error.message}")
    return ImportAttempt()


async def _import_now(ctx: Ctx, name: str) -> None:
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_worktree(tx, name))
        await import_branch(ctx, repository, row, limit=LOOK_SECONDS)


def _find_changed(ctx: Ctx, repository: Repository, rows: Sequence[Row]) -> list[tuple[Row, str | None]]:
    """Worktrees whose branch may differ from the user's repository, and its unverified commit (None: unknown)."""
    heads = repository.heads(row["branch_name"] for row in rows)
    unverified = [
        (row, repository.unverified_branch(place_of(ctx, row).git_dir, row["branch_name"]))
        for row in rows
        if row["status"] in integration.OPEN and ctx.local.machine.has(row["machine"])
    ]
    return [(row, commit) for row, commit in unverified if commit is None or commit != heads.get(row["branch_name"])]


def commit_of(repository: Repository, branch: str) -> str:
    """The commit of a branch in the user's repository.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``.
    """
    commit = repository.resolve(branch)
    if commit is None:
        raise no_branch(branch)
    return commit


def no_branch(branch: str) -> NotFound:
    """The error for a branch that does not exist."""
    return NotFound("BRANCH_NOT_FOUND", f"There is no branch {branch!r}.")
