"""A worktree's branch as a bundle, for its worker on another machine: taken there in pieces, its commits sent back.

The worker needs no path of this machine. Files on their way are in `Settings.bundles`, one each way for a worktree;
they are named by their hash, so a transfer that was cut off goes on where it ended, also at the next server.
"""

from __future__ import annotations

import base64
import hashlib
from asyncio import to_thread
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, NotFound, Refused, Unavailable
from workbench.git import Repository
from workbench.git.bundles import MOST_KNOWN
from workbench.model import Int64, Level, Wire
from workbench.ops import Ctx, op
from workbench.rules.integration import WorktreeAction
from workbench.services.tasks import attempts, progress
from workbench.services.tasks.attempts import Key
from workbench.services.worktrees.imports import import_branch, no_branch
from workbench.services.worktrees.kept_work import require_put_away, writer_lock
from workbench.services.worktrees.pieces import FileBytes, Offset, Piece, Sha256, decoded
from workbench.services.worktrees.places import COMMITTER, exclusive, fill_submodules, place_of
from workbench.services.worktrees.rows import Branch, open_worktrees, require_here, require_worktree_for
from workbench.services.worktrees.update import open_on_branch
from workbench.store.base import Reader, Row
from workbench.system import file_pieces
from workbench.system.tree_removal import remove_tree

CommitId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


class OfferedBundle(Wire):
    """A bundle of a branch, which `git fetch` reads; `bytes` is 0 and `sha256` empty if all is known.

    `branches` are the commits of other branches that can be asked for.
    """

    worktree: str
    branch_name: str
    commit: str
    base_commit: str
    """Where the worktree's branch forked from its target."""
    bytes: int
    sha256: str
    branches: dict[str, str]


class BundlePiece(Wire):
    """A piece of a bundle: `data` in base64; `next_offset`: where the next one begins, null after the last."""

    data: str
    next_offset: int | None


class ReceivedBundle(Wire):
    """How many bytes of a bundle have arrived: the next piece begins there."""

    received: int


class ImportedBundle(Wire):
    """The commit that the branch of the worktree is at now. `moved`: it was at another one before."""

    worktree: str
    branch_name: str
    commit: str
    moved: bool


@op(allow=Level.WORKER, tool=False)
async def offer_worktree_bundle(
    ctx: Ctx,
    known: Annotated[
        list[CommitId], Field(max_length=MOST_KNOWN, description="Commits that you have: the bundle leaves them out.")
    ] = [],
    branch: Annotated[
        Branch | None,
        Field(description="Another branch, to merge or compare: that of an open worktree, or its target."),
    ] = None,
) -> OfferedBundle:
    """Have a git bundle made of your worktree's branch, to work elsewhere; read it with read_worktree_bundle."""
    return await ctx.local.repositories.shielded(_offer(ctx, _own(ctx), known, branch))


@op(allow=Level.WORKER, reads=True, tool=False)
async def read_worktree_bundle(ctx: Ctx, sha256: Sha256, offset: Offset = 0) -> BundlePiece:
    """Read a piece of the bundle that offer_worktree_bundle has made. Begin anywhere: a transfer can be resumed."""
    data, size = await to_thread(_read, _offered(ctx, _own(ctx), sha256), offset)
    after = offset + len(data)
    return BundlePiece(data=base64.b64encode(data).decode(), next_offset=after if after < size else None)


@op(allow=Level.WORKER, tool=False)
async def send_worktree_bundle(
    ctx: Ctx,
    sha256: Sha256,
    offset: Offset = 0,
    data: Piece = "",
) -> ReceivedBundle:
    """Send a piece of a git bundle with new commits of your worktree; import_worktree_bundle then takes them in."""
    piece = decoded(data)
    path, most = _sent(ctx, _own(ctx), sha256), ctx.settings.max_import_bytes
    if offset + len(piece) > most:
        text = f"The bundle has more than {most:,} bytes. Make it smaller, or have max_import_bytes raised."
        raise Conflict("IMPORT_REFUSED", text, limit=most)
    return ReceivedBundle(received=await to_thread(_write, path, offset, piece))


@op(allow=Level.WORKER, tool=False)
async def import_worktree_bundle(
    ctx: Ctx,
    sha256: Sha256,
    bytes: FileBytes,
    task_id: Annotated[Int64 | None, Field(description="The task of the attempt that made the commits.")] = None,
    attempt: Annotated[Int64 | None, Field(description="The attempt; its supervisor gives it.")] = None,
    key: Annotated[Key | None, Field(description="The supervisor's key of the attempt.")] = None,
) -> ImportedBundle:
    """Import the bundle that you have sent: check its objects, and move your worktree, with its branch, to its commit.

    The commit has to build on that of the branch. Sent again after a lost answer, it changes nothing. While an attempt
    is under way in the worktree, only its supervisor sends commits.
    """
    name = _own(ctx)
    await to_thread(_require_whole, _sent(ctx, name, sha256), sha256, bytes)
    made_by = None if task_id is None or attempt is None else (task_id, attempt, key or "")
    return await ctx.local.repositories.shielded(_import(ctx, name, sha256, made_by))


def _own(ctx: Ctx) -> str:
    """The caller's worktree.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if ctx.caller.worktree is None:
        text = "Only an agent that has a worktree sends and reads its branch, and you have none."
        raise Refused("FORBIDDEN", f"{text} Ask the operator to assign one.")
    return ctx.caller.worktree


async def _require_active(ctx: Ctx, name: str) -> Row:
    return require_here(ctx, await ctx.read(lambda tx: require_worktree_for(tx, name, WorktreeAction.APPROVE)))


async def _offer(ctx: Ctx, name: str, known: list[str], other: str | None) -> OfferedBundle:
    async with exclusive(ctx) as repository:
        row = await _require_active(ctx, name)
        branch, commit = row["branch_name"], await import_branch(ctx, repository, row)
        others = await ctx.read(lambda tx: _branches(tx, branch))
        branches = await to_thread(repository.heads, others)
        if other is not None:
            if other not in branches:
                raise no_branch(other)
            branch, commit = other, branches[other]
        digest, size = await to_thread(_make, ctx, repository, name, branch, known)
        target = await to_thread(repository.resolve, row["integration_target"])
        base = await to_thread(repository.merge_base, target, commit) if target else None
    return OfferedBundle(
        worktree=name,
        branch_name=branch,
        commit=commit,
        base_commit=base or row["base_commit"],
        bytes=size,
        sha256=digest,
        branches=branches,
    )


def _branches(tx: Reader, own: str) -> set[str]:
    """The branches of open worktrees and their targets, but for one."""
    return {row[column] for row in open_worktrees(tx) for column in ("branch_name", "integration_target")} - {own}


def _make(ctx: Ctx, repository: Repository, name: str, branch: str, known: list[str]) -> tuple[str, int]:
    """Make the bundle that replaces an earlier one; its hash and bytes."""
    place = ctx.settings.bundles / name / "offered"
    new = place.with_name("new")
    if repository.bundle_branch(new, branch, known=known) is None:
        return "", 0
    try:
        with new.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        remove_tree(place)
        place.mkdir()
        new.replace(place / digest)
        return digest, (place / digest).stat().st_size
    except OSError as error:
        raise _unusable(error) from error


def _offered(ctx: Ctx, name: str, sha256: str) -> Path:
    return ctx.settings.bundles / name / "offered" / sha256


def _sent(ctx: Ctx, name: str, sha256: str) -> Path:
    return ctx.settings.bundles / name / "sent" / sha256


def _read(path: Path, offset: int) -> tuple[bytes, int]:
    """A piece of a bundle, and the bytes of all."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(offset)
            return file.read(file_pieces.PIECE), size
    except FileNotFoundError:
        text = (
            "There is no such bundle (any more): a later one has replaced it. Have one made with offer_worktree_bundle."
        )
        raise NotFound("BUNDLE_NOT_FOUND", text) from None
    except OSError as error:
        raise _unusable(error) from error


def _write(path: Path, offset: int, piece: bytes) -> int:
    """Write a piece, which ends the bundle for now; the bytes that it has then. Other bundles sent before go."""
    try:
        if not path.exists():
            remove_tree(path.parent)
        size = file_pieces.write(path, offset, piece)
    except OSError as error:
        raise _unusable(error) from error
    if offset > size:
        text = f"{size:,} bytes of the bundle have arrived. Send the piece that begins there."
        raise Conflict("BUNDLE_INCOMPLETE", text, received=size)
    return size


def _require_whole(path: Path, sha256: str, size: int) -> None:
    """Refuse a bundle that has not arrived as it was sent; one that has as many bytes and other ones goes."""
    try:
        received = path.stat().st_size
        if received == size:
            if file_pieces.has_hash(path, sha256):
                return
            path.unlink(missing_ok=True)
            raise Conflict("BUNDLE_DAMAGED", "The bundle that has arrived has another hash. Send it again.")
    except FileNotFoundError:
        received = 0
    except OSError as error:
        raise _unusable(error) from error
    text = f"{received:,} of {size:,} bytes of the bundle have arrived. Send the piece that begins there."
    raise Conflict("BUNDLE_INCOMPLETE", text, received=received)


def _unusable(error: OSError) -> Unavailable:
    return Unavailable("BUNDLE_NOT_WRITTEN", f"The bundle cannot be written or read: {error}.")


async def _import(ctx: Ctx, name: str, sha256: str, made_by: tuple[int, int, str] | None) -> ImportedBundle:
    async with exclusive(ctx) as repository:
        row = await _require_active(ctx, name)
        await ctx.read(lambda tx: _require_turn(tx, ctx, name, made_by))
        await require_put_away(ctx, repository, name)  # it takes the lock itself
        with writer_lock(ctx.settings, name).held() as is_idle:
            if not is_idle:
                text = f"A worker of this machine is at work in {name}. Wait until it has ended."
                raise Conflict("WORKTREE_BUSY", text)
            before, after = await _move(ctx, repository, row, _sent(ctx, name, sha256))
    return ImportedBundle(worktree=name, branch_name=row["branch_name"], commit=after, moved=after != before)


def _require_turn(tx: Reader, ctx: Ctx, name: str, made_by: tuple[int, int, str] | None) -> None:
    """Refuse commits of an attempt that is over or has not begun, and others while one is under way.

    Raises:
        Conflict: ``LEASE_LOST``, ``WORKTREE_BUSY``.
    """
    under_way = [work for work in attempts.open_in(tx, name) if work["ended_at"] is None]
    if made_by is not None:
        task_id, attempt, key = made_by
        attempts.require_supervisor(tx, task_id, attempt, key)
        progress.held(tx, ctx.caller, task_id, attempt)
        if not any((work["task_id"], work["attempt"]) == (task_id, attempt) for work in under_way):
            raise Conflict(
                "LEASE_LOST", f"Attempt {attempt} at task {task_id} has not begun in {name}. Begin it first."
            )
    elif under_way:
        text = f"Attempt {under_way[0]['attempt']} at task {under_way[0]['task_id']} is under way in {name}."
        raise Conflict("WORKTREE_BUSY", f"{text} Only its supervisor sends commits until it has ended.")


async def _move(ctx: Ctx, repository: Repository, row: Row, bundle: Path) -> tuple[str, str]:
    """Move a worktree, with its branch, to the commit of a bundle; the commits before and after."""
    branch, most = row["branch_name"], ctx.settings.max_import_bytes
    checkout, before = await open_on_branch(ctx, repository, row)
    commit = await to_thread(repository.import_bundle, bundle, branch, max_bytes=most)
    if await to_thread(repository.contains, before, commit):
        return before, before
    builds = await to_thread(repository.contains, commit, before)
    # What is committed in the worktree at this moment can still conflict.
    conflicts = await to_thread(checkout.merge, commit, f"Merge {commit[:12]}", COMMITTER) if builds else []
    if conflicts or not builds:
        text = f"The branch {branch} is at {before[:12]} or later, on which {commit[:12]} does not build."
        advice = "Fetch it with offer_worktree_bundle, merge or rebase, and send a bundle of the result."
        raise Conflict("BRANCH_MOVED", f"{text} {advice}", commit=before)
    after = await import_branch(ctx, repository, row)
    await to_thread(fill_submodules, ctx.settings, repository, place_of(ctx, row), after, before)
    return before, after
