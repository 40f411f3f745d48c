"""The disk space of worktrees and their leftovers, and removing those that are safe to remove."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import WorkbenchError
from workbench.git import Repository
from workbench.model import SECOND, Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import integration as rules
from workbench.services.tasks import attempts
from workbench.services.tasks.rows import attempt_ref
from workbench.services.worktrees import checkouts
from workbench.services.worktrees.places import WorktreeLocation, exclusive, gates_are_held, gates_held, remove_link
from workbench.services.worktrees.rows import all_worktrees
from workbench.state.server_file import SERVER_LOG
from workbench.state.settings import Settings
from workbench.store.base import Row
from workbench.system.tree_removal import remove_tree

DAY = 86_400 * SECOND

Kind = Literal["worktree", "repository", "scratch", "gates", "checkout", "log", "trash", "attempt"]


class CleanupItem(Wire):
    """An item in the state directory. It is removed only if it is `safe`; `reason` says why it is or is not."""

    kind: Kind
    name: str
    path: str
    bytes: int
    safe: bool
    reason: str


class Pruned(Wire):
    """All items, their bytes in total, and how many bytes were freed."""

    items: list[CleanupItem]
    bytes: int
    freed: int


@op(allow=Level.OPERATOR, destructive=True, command="worktrees prune")
async def prune_worktrees(
    ctx: Ctx, apply: Annotated[bool, Field(description="Remove what is safe; otherwise only list.")] = False
) -> Pruned:
    """List the disk space of worktrees, checkouts, repositories, logs, kept work and the trash; remove what is safe."""
    return await ctx.local.repositories.shielded(_prune(ctx, apply))


async def _prune(ctx: Ctx, apply: bool) -> Pruned:
    async with exclusive(ctx) as repository:
        rows = {row["name"]: row for row in await ctx.read(all_worktrees)}
        begin = await checkouts.begin_of_use(ctx)
        items = await to_thread(lambda: list(_Survey(ctx, rows, begin).items()))
        kept = {
            (work["task_id"], work["attempt"]): _kept_item(ctx, work)
            for work in await ctx.read(lambda tx: attempts.all_kept(tx, ctx.local.machine.only))
        }
        freed = await _forget(ctx, repository, kept) if apply else 0
        for item in items if apply else ():
            if item.safe:
                await to_thread(_remove, ctx.settings, repository, item, begin)
                freed += item.bytes - await to_thread(size, Path(item.path))
        items += kept.values()
        return Pruned(items=items, bytes=sum(item.bytes for item in items), freed=freed)


def _kept_item(ctx: Ctx, work: Row) -> CleanupItem:
    """The kept work of an attempt. Its path is the name of the reference, its bytes are those of its objects."""
    name, days = f"task {work['task_id']}, attempt {work['attempt']}", ctx.settings.keep_attempts_days
    safe = work["over_at"] + days * DAY <= ctx.store.now()
    reason = f"Work that did not complete its task, kept for {days:g} days (keep_attempts_days)."
    ref = attempt_ref(work["task_id"], work["attempt"])
    return CleanupItem(kind="attempt", name=name, path=ref, bytes=work["bytes"], safe=safe, reason=reason)


async def _forget(ctx: Ctx, repository: Repository, kept: Mapping[tuple[int, int], CleanupItem]) -> int:
    """Delete the references of kept work that is old enough; the bytes that git can then free."""
    freed = 0
    for (task_id, attempt), item in kept.items():
        if item.safe:
            if commit := await to_thread(repository.parse, item.path):
                await to_thread(repository.delete_branch, item.path, commit)
            await ctx.write(partial(attempts.forget, task_id=task_id, attempt=attempt))
            freed += item.bytes
    return freed


def _remove(settings: Settings, repository: Repository, item: CleanupItem, begin: float) -> None:
    path = Path(item.path)
    if item.kind in ("worktree", "repository"):
        place = WorktreeLocation.of(settings, path.name)
        with suppress(WorkbenchError):
            repository.remove_worktree(place.path, place.git_dir)
            remove_link(settings, place)
    elif item.kind == "checkout":
        checkouts.remove(repository, path, begin)
    elif (approval_id := _approval_of(path)) is not None and item.kind == "gates":
        with gates_held(settings, approval_id) as is_held:
            if is_held:  # otherwise gates have started since the survey
                remove_tree(path)
    else:
        remove_tree(path)


@dataclass(frozen=True, slots=True)
class _Survey:
    """Lists the items of the state directory, while nothing else changes it.

    Attempts that are under way have begun to use a checkout at `begin` (seconds) or later.
    """

    ctx: Ctx
    rows: dict[str, Row]
    begin: float

    def items(self) -> Iterator[CleanupItem]:
        settings = self.ctx.settings
        for path in _entries(settings.worktrees):
            yield self._worktree("worktree", settings.worktree(path.name))
        for path in _entries(settings.repositories):
            yield self._worktree("repository", path)
        for path in _entries(settings.scratch):
            yield self._scratch(path)
        for path in _entries(settings.gates):
            yield self._gates(path)
        for path in _entries(settings.checkouts):
            yield self._checkout(path)
        for path in _entries(settings.logs):
            of_worker = "The log of a worker. Delete it by hand when you have read it."
            of_server = "The log of the servers that run in a process of their own."
            yield _item("log", path, False, of_server if path.name == SERVER_LOG else of_worker)
        for path in _entries(settings.trash):
            yield _item("trash", path, False, "The only copy of discarded work. Delete it by hand.")

    def _worktree(self, kind: Kind, path: Path) -> CleanupItem:
        row = self.rows.get(path.name)
        place = WorktreeLocation.of(self.ctx.settings, path.name)
        if row is not None and row["status"] in rules.OPEN:
            return _item(kind, path, False, f"It is {row['status']}: integrate or discard it.")
        if row is not None:
            return _item(
                kind, path, False, f"It is {row['status']}, but its files could not be removed. Check who owns them."
            )
        if _is_empty(path) and not (kind == "repository" and place.path.exists()):
            return _item(kind, path, True, "It is empty and belongs to no worktree.")
        return _item(kind, path, False, "It belongs to no worktree, but may hold work. Check, then delete it by hand.")

    def _scratch(self, path: Path) -> CleanupItem:
        row = self.rows.get(path.name)
        if row is not None and row["status"] in rules.OPEN:
            return _item("scratch", path, False, f"Temporary files of a worktree that is {row['status']}.")
        if row is not None:
            return _item("scratch", path, True, f"Temporary files of a worktree that is {row['status']}.")
        return _item("scratch", path, False, "Temporary files that belong to no worktree.")

    def _gates(self, path: Path) -> CleanupItem:
        approval_id = _approval_of(path)
        if approval_id is None:
            return _item("gates", path, False, "It does not belong to an approval.")
        if gates_are_held(self.ctx.settings, approval_id):
            return _item("gates", path, False, "Its gates are running.")
        return _item("gates", path, True, "Left over from gates that have ended.")

    def _checkout(self, path: Path) -> CleanupItem:
        if checkouts.last_use(path) < self.begin:
            return _item("checkout", path, True, "For tasks without a worktree. It is made again when it is needed.")
        return _item("checkout", path, False, "For tasks without a worktree, one of which may be using it.")


def _approval_of(path: Path) -> int | None:
    """The approval whose gates use this directory or lock; None if it is something else."""
    number = path.name.removesuffix(".lock")
    return int(number) if number.isdecimal() else None


def _item(kind: Kind, path: Path, safe: bool, reason: str) -> CleanupItem:
    name = path.name.encode("utf-8", "backslashreplace").decode()
    where = str(path).encode("utf-8", "backslashreplace").decode()
    return CleanupItem(kind=kind, name=name, path=where, bytes=size(path), safe=safe, reason=reason)


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(directory.iterdir())
    return []


def _is_empty(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    return False


def size(path: Path) -> int:
    """Bytes on the disk at and below a path; links are not followed."""
    total, waiting = 0, [path]
    while waiting:
        here = waiting.pop()
        with suppress(OSError):
            total += here.lstat().st_blocks * 512
            if here.is_dir() and not here.is_symlink():
                with os.scandir(here) as entries:
                    waiting.extend(Path(entry.path) for entry in entries)
    return total
