"""Rescues work that would be lost with a worktree: finds it, and writes it into the trash as a bundle."""

from __future__ import annotations

import errno
import logging
import os
from asyncio import to_thread
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Checkout, Repository
from workbench.ops import Ctx
from workbench.services.worktrees.imports import LOOK_SECONDS, import_branch
from workbench.services.worktrees.places import COMMITTER, WorktreeLocation, checkout_of, is_there, place_of
from workbench.store.base import Row

SAVED = "refs/workbench/saved"
"""The references of rescued work, while a bundle of it is written."""
UNCOMMITTED = "refs/workbench/uncommitted"
MOST_REFERENCES = 50
"""A worktree with more branches of its own is moved to the trash as it is."""

log = logging.getLogger(__name__)


async def save_what_is_nowhere_else(ctx: Ctx, repository: Repository, row: Row, *, with_branch: bool) -> str | None:
    """Save the work that would be lost with a worktree; return the path in the trash, or None if nothing would be lost.

    It is saved as a bundle; what the repositories of submodules have alone, as references below `SAVED` in the user's
    repositories of them. A worktree in which git does not work is moved to the trash as it is.

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
        return str(await to_thread(move_to_trash, ctx.settings.trash, place, stamp(ctx)))
    if with_branch and await to_thread(commits_alone, repository, branch, refs) > 0:
        refs.append(f"refs/heads/{branch}")
    if not refs:
        return None
    bundle = ctx.settings.trash / f"{row['name']}-{stamp(ctx)}.bundle"
    try:
        await to_thread(repository.write_bundle, bundle, refs)
    finally:
        await to_thread(forget_saved, repository)
    return str(bundle)


async def _save_references(ctx: Ctx, repository: Repository, row: Row, place: WorktreeLocation) -> list[str]:
    """Import all work that would be lost with a worktree, under references below `SAVED`; return their names."""
    if not await to_thread(is_there, place):
        return []
    await import_branch(ctx, repository, row, limit=LOOK_SECONDS)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place, limit=LOOK_SECONDS)
    own = f"{SAVED}/{row['name']}"
    targets = {ref: f"{own}/{ref.removeprefix('refs/')}" for ref in await to_thread(only_there, repository, checkout)}
    within = await to_thread(only_in_submodules, repository, checkout)
    if len(targets) + sum(len(refs) for _, _, refs in within) > MOST_REFERENCES:
        raise Conflict("IMPORT_REFUSED", f"{row['name']} has more than {MOST_REFERENCES} branches of its own.")
    most = ctx.settings.max_import_bytes
    for inner, home, refs in within:
        if home is None:
            raise Conflict("IMPORT_REFUSED", f"{row['name']} has a submodule of which the user has no repository.")
        for ref in refs:
            into = f"{own}/{stamp(ctx)}/{ref.removeprefix('refs/')}"
            await to_thread(home.import_ref, inner, ref, into=into, max_bytes=most)
    message = f"Uncommitted changes in {row['name']}"
    if await to_thread(checkout.save_all, UNCOMMITTED, message, COMMITTER) is not None:
        targets[UNCOMMITTED] = f"{own}/uncommitted"
    for ref, into in targets.items():
        await to_thread(repository.import_ref, checkout, ref, into=into, max_bytes=most)
    return list(targets.values())


def forget_saved(repository: Repository) -> None:
    """Delete the references that were made for a bundle."""
    lines = repository.read("for-each-ref", "--format=%(objectname) %(refname)", SAVED).text
    for commit, _, ref in (line.partition(" ") for line in lines.splitlines()):
        repository.delete_branch(ref, commit)


def commits_alone(repository: Repository, branch: str, besides: Sequence[str] = ()) -> int:
    """How many commits would be lost if the branch and the references `besides` were deleted."""
    return repository.only_in(branch, besides=besides) if repository.resolve(branch) else 0


def only_there(repository: Repository, checkout: Checkout, *, besides: str = UNCOMMITTED) -> list[str]:
    """References of a worktree (a stash, other branches, what an attempt made that could not be imported) whose commits
    the user's repository does not have; those that begin with `besides` are left out."""
    commit_of = {ref: commit for ref, commit in checkout.references().items() if not ref.startswith(besides)}
    commits = "".join(f"{commit}\n" for commit in commit_of.values()).encode("ascii", "replace")
    answers = repository.read("cat-file", "--batch-check=%(objectname)", stdin=commits).text.splitlines()
    return sorted(ref for (ref, commit), answer in zip(commit_of.items(), answers, strict=True) if answer != commit)


def only_in_submodules(
    repository: Repository, checkout: Checkout
) -> list[tuple[Checkout, Repository | None, list[str]]]:
    """The repositories of a worktree's submodules with references whose commits the user's repository of the same
    submodule does not have (None: she has none), and these references."""
    found = []
    for inner, home in repository.submodule_repositories(checkout):
        refs = only_there(home, inner) if home else sorted(inner.references())
        if refs:
            found.append((inner, home, refs))
    return found


def move_to_trash(trash: Path, place: WorktreeLocation, stamp: str) -> Path:
    """Move the files and the repository of a worktree to the trash, where they are `files` and `repository`.

    Files on another disk stay on that, and the trash has a link to them.
    """
    into = trash / f"{place.name}-{stamp}"
    into.mkdir(parents=True)
    for path, name in ((place.path, "files"), (place.git_dir, "repository")):
        if os.path.lexists(path):
            try:
                path.rename(into / name)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                (into / name).symlink_to(path.rename(path.with_name(into.name)))
    return into


def stamp(ctx: Ctx) -> str:
    """The time, as a part of a name."""
    return datetime.fromtimestamp(ctx.store.now() / 1_000_000, UTC).strftime("%Y%m%dT%H%M%S-%f")
