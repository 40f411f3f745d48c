"""Faults of a project's state: what its store, its files and its repository say of each other and is not so.

They come from a crash that nothing has repaired, a restored backup, or a hand in `.aiswarm/`. Whatever mends one loses
no work: files are moved to the trash, references are saved there as bundles.
"""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint, NotFound
from workbench.git import Repository
from workbench.git.whole_bundles import create
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.process import ProcessRef, is_running
from workbench.rules import integration
from workbench.services.tasks import attempts, expiry
from workbench.services.tasks.rows import attempt_ref
from workbench.services.worktrees.journal import unfinished
from workbench.services.worktrees.places import WorktreeLocation, add_files, exclusive, is_there, place_of
from workbench.services.worktrees.rescue import move_to_trash, stamp
from workbench.services.worktrees.rows import all_worktrees, of_here
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import Query, beside

SQL = beside(__file__)
ATTEMPTS = "refs/workbench/attempts/"

Kind = Literal["orphans", "lease", "worktree_lost", "worktree_unknown", "ref_dangling", "work_lost"]
FaultName = Annotated[str, Field(max_length=400, description="Which one; see find_faults.")]
Description = Annotated[
    str, Field(max_length=4000, description="What find_faults says of it and how it is mended: nothing else is done.")
]


class Fault(Wire):
    """A fault: what is wrong, and what mending it changes."""

    kind: Kind
    name: str
    says: str
    mend: str

    @property
    def description(self) -> str:
        """What a person is shown before it is mended."""
        return f"{self.says} {self.mend}"


class Faults(Wire):
    """The faults that were found."""

    faults: list[Fault]


class Mended(Wire):
    """What was done."""

    fault: Fault
    done: str


@dataclass(frozen=True, slots=True)
class _Found:
    fault: Fault
    mend: Callable[[], Awaitable[str]]


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def find_faults(ctx: Ctx) -> Faults:
    """Find rows, leases, worktrees and references that do not fit each other, and say how each is mended."""
    return Faults(faults=[found.fault for found in await _find(ctx, await _repository(ctx))])


@op(allow=Level.OPERATOR, destructive=True, tool=False)
async def mend_fault(
    ctx: Ctx,
    kind: Annotated[Kind, Field(description="What is wrong; see find_faults.")],
    name: FaultName,
    description: Description,
) -> Mended:
    """Mend a fault that find_faults has found, if it is still what was shown. Files and references go to the trash."""
    return await ctx.local.repositories.shielded(_mend(ctx, (kind, name, description)))


async def _mend(ctx: Ctx, asked: tuple[Kind, str, str]) -> Mended:
    if await _repository(ctx) is None:
        return await _mend_found(ctx, None, asked)
    async with exclusive(ctx) as repository:
        return await _mend_found(ctx, repository, asked)


async def _mend_found(ctx: Ctx, repository: Repository | None, asked: tuple[Kind, str, str]) -> Mended:
    for found in await _find(ctx, repository):
        if (found.fault.kind, found.fault.name, found.fault.description) == asked:
            return await _record(ctx, Mended(fault=found.fault, done=await found.mend()))
    raise NotFound(
        "FAULT_NOT_FOUND",
        f"There is no such fault ({asked[0]} {asked[1]!r}), or it is another one by now. Nothing was changed.",
        Hint("find_faults", "{} lists what there is."),
    )


async def _record(ctx: Ctx, mended: Mended) -> Mended:
    about = {"name": mended.fault.name, "done": mended.done}
    await ctx.write(lambda tx: tx.emit("fault.mended", f"fault:{mended.fault.kind}", **about))
    return mended


async def _repository(ctx: Ctx) -> Repository | None:
    try:
        return await ctx.local.repositories.open()
    except BadInput:  # none, or one without a commit
        return None


async def _find(ctx: Ctx, repository: Repository | None) -> list[_Found]:
    """What is wrong, of one view of the store."""

    def question(tx: Reader) -> tuple[list[_Found], list[Row], set[str], list[Row]]:
        steps = {step["name"] for step in unfinished(tx, ctx.local.machine)}
        return [*_orphans(ctx, tx), *_leases(ctx, tx)], all_worktrees(tx), steps, tx.all(SQL.works)

    found, rows, steps, works = await ctx.read(question)
    if repository is not None:
        found += await to_thread(lambda: list(_worktrees(ctx, repository, rows, steps)))
        found += await to_thread(lambda: list(_refs(ctx, repository, works)))
    return found


# -- rows


def _orphans(ctx: Ctx, tx: Reader) -> Iterator[_Found]:
    """Rows that refer to rows that are not there, one fault for each reference of a table."""
    counts: dict[tuple[str, str, str], int] = {}
    for row in tx.all(SQL.orphans):
        key = (row["child"], row["name"], row["parent"])
        counts[key] = counts.get(key, 0) + 1
    for (child, name, parent), count in counts.items():
        fault = Fault(
            kind="orphans",
            name=f"{child}.{name}",
            says=f"{count} row{'s' * (count > 1)} of {child} refer to rows of {parent} that are not there.",
            mend="Clear the reference where it may be empty, and remove the row where it may not.",
        )
        yield _Found(fault, _mend_orphans(ctx, child, name))


def _mend_orphans(ctx: Ctx, child: str, name: str) -> Callable[[], Awaitable[str]]:
    def change(tx: Tx) -> str:
        tx.run(SQL.check_at_the_end)
        cleared = removed = 0
        orphans = tx.all(SQL.orphans)
        others = [row for row in orphans if (row["child"], row["name"]) != (child, name)]
        while here := [row for row in orphans if row not in others]:
            for row in here:
                if row["is_needed"]:
                    text = f"DELETE FROM {_quoted(row['child'])} WHERE rowid = :row"
                    removed += tx.run(Query("remove", text), row=row["row_id"])
                else:
                    text = f"UPDATE {_quoted(row['child'])} SET {_quoted(row['name'])} = NULL WHERE rowid = :row"
                    cleared += tx.run(Query("clear", text), row=row["row_id"])
            orphans = tx.all(SQL.orphans)  # also what referred to the rows that were removed
        return f"References cleared: {cleared}. Rows removed: {removed}."

    return lambda: ctx.write(change)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _leases(ctx: Ctx, tx: Reader) -> Iterator[_Found]:
    """Leases that ran out, and that no process can renew."""
    for row in expiry.overdue(tx):
        process = tx.one(SQL.running, task_id=row["id"], attempt=row["attempt"])
        if process is None or (ctx.local.machine.has(process["machine"]) and not _runs(process)):
            fault = Fault(
                kind="lease",
                name=str(row["id"]),
                says=f"The lease of task {row['id']} has run out, and no process of {row['assigned_agent_id']} runs.",
                mend="End the attempt, as the server does when a lease runs out.",
            )
            yield _Found(fault, _mend_lease(ctx, row))


def _mend_lease(ctx: Ctx, row: Row) -> Callable[[], Awaitable[str]]:
    def change(tx: Tx) -> str:
        expiry.end_lease(tx, ctx.settings, row, ctx.random)
        return f"Attempt {row['attempt']} of task {row['id']} has ended."

    return lambda: ctx.write(change)


def _runs(process: Row) -> bool:
    found = ProcessRef(process["pid"], process["started"]).find()
    return found is not None and is_running(found)


# -- worktrees


def _worktrees(ctx: Ctx, repository: Repository, rows: Iterable[Row], steps: set[str]) -> Iterator[_Found]:
    """Worktrees that the store has and the disk has not, and the reverse."""
    settings = ctx.settings
    is_open = {row["name"]: row for row in rows if row["status"] in integration.OPEN}
    for row in of_here(ctx, is_open.values()):
        if row["name"] not in steps and not is_there(place_of(ctx, row)):
            fault = Fault(
                kind="worktree_lost",
                name=row["name"],
                says=f"The worktree {row['name']} is open, and its files are gone.",
                mend=f"Make them again from its branch {row['branch_name']}; what is left of them goes to the trash.",
            )
            yield _Found(fault, _mend_lost(ctx, repository, row))
    there = {path.name for place in (settings.worktrees, settings.repositories) for path in _entries(place)}
    for name in sorted(there - is_open.keys() - steps):
        fault = Fault(
            kind="worktree_unknown",
            name=name.encode("utf-8", "backslashreplace").decode(),
            says="There are files of a worktree that the store does not have, or that is closed.",
            mend=f"Move them to the trash, {settings.trash}.",
        )
        yield _Found(fault, _mend_unknown(ctx, repository, WorktreeLocation.of(settings, name)))


def _mend_lost(ctx: Ctx, repository: Repository, row: Row) -> Callable[[], Awaitable[str]]:
    async def make() -> str:
        place, branch = place_of(ctx, row), row["branch_name"]
        says = await to_thread(_put_away, ctx, repository, place)
        tip = await to_thread(repository.resolve, branch)
        commit = await to_thread(_last_commit, repository, row) if tip is None else tip
        place = await to_thread(WorktreeLocation.of_new, ctx.settings, row["name"])
        await to_thread(add_files, ctx.settings, repository, place, branch, commit, existing=tip is not None)
        ctx.local.repositories.status_cache.forget(place.path)
        protected = json.dumps(await to_thread(repository.protected))
        await ctx.write(lambda tx: tx.run(SQL.renew, name=row["name"], protected=protected))
        return f"The worktree {row['name']} has the files of {branch} at {commit[:12]}.{says}"

    return make


def _last_commit(repository: Repository, row: Row) -> str:
    """The newest commit of a worktree that is still here, of which its branch is not."""
    imported = row["imported_commit"]
    return str(imported if imported and repository.has_object(imported) else repository.commit(row["base_commit"]))


def _mend_unknown(ctx: Ctx, repository: Repository, place: WorktreeLocation) -> Callable[[], Awaitable[str]]:
    async def move() -> str:
        return (await to_thread(_put_away, ctx, repository, place)).strip()

    return move


def _put_away(ctx: Ctx, repository: Repository, place: WorktreeLocation) -> str:
    """Move what there is of a worktree to the trash, and have git forget it; a sentence about that."""
    link = ctx.settings.worktrees / place.name
    into = move_to_trash(ctx.settings.trash, place, stamp(ctx))
    repository.unlist_worktree(place.path)
    link.unlink(missing_ok=True)  # of one that was outside of the project
    if any(into.iterdir()):
        return f" What was there is in {into}."
    into.rmdir()
    return ""


def _entries(place: Path) -> Iterator[Path]:
    return place.iterdir() if place.is_dir() else iter(())


# -- references


def _refs(ctx: Ctx, repository: Repository, works: Iterable[Row]) -> Iterator[_Found]:
    """References that name nothing or are of no attempt, and kept work whose reference is gone."""
    for ref in repository.unreadable_references("refs/workbench"):
        fault = Fault(
            kind="ref_dangling",
            name=ref,
            says=f"The file of the reference {ref} is empty or damaged, and git fails beside it.",
            mend="Delete it; a reference to kept work is made again then.",
        )
        yield _Found(fault, _mend_unreadable(repository, ref))
    by_ref = {attempt_ref(row["task_id"], row["attempt"]): row for row in works}
    named, whole = repository.references("refs/workbench"), repository.tips("refs/workbench")
    for ref, object_id in sorted(named.items(), key=lambda item: item[0] in whole):  # git fails beside one of nothing
        is_whole = ref in whole or repository.has_object(object_id)
        if not is_whole or (ref.startswith(ATTEMPTS) and not _is_of_attempt(by_ref.get(ref))):
            why = "is of no attempt that the store has" if is_whole else "names an object that is not there"
            fault = Fault(
                kind="ref_dangling",
                name=ref,
                says=f"The reference {ref} {why}.",
                mend="Save its commits as a bundle in the trash, and delete it." if is_whole else "Delete it.",
            )
            yield _Found(fault, _mend_ref(ctx, repository, ref, object_id, is_whole=is_whole))
    for ref, work in by_ref.items():
        kept = work["kept_commit"]
        if kept and ref not in whole and ctx.local.machine.has(work["machine"]):
            is_here = repository.has_object(kept)
            fault = Fault(
                kind="work_lost",
                name=ref,
                says=f"The kept work of attempt {work['attempt']} of task {work['task_id']} has no reference.",
                mend="Make it again." if is_here else "Record that the work is no longer kept: its commit is gone.",
            )
            yield _Found(fault, _mend_work(ctx, repository, ref, work, is_here=is_here))


def _is_of_attempt(work: Row | None) -> bool:
    """Whether the store says that an attempt has or may get a reference."""
    return work is not None and bool(work["kept_commit"] or work["state"] != "over")


def _mend_ref(
    ctx: Ctx, repository: Repository, ref: str, object_id: str, *, is_whole: bool
) -> Callable[[], Awaitable[str]]:
    async def delete() -> str:
        says = ""
        if is_whole:
            bundle = ctx.settings.trash / f"{'-'.join(ref.split('/')[2:])}-{stamp(ctx)}.bundle"
            await to_thread(repository.write_bundle, bundle, [ref])
            says = f" Its commits are in {bundle}."
        await to_thread(repository.delete_branch, ref, object_id)
        return f"The reference is deleted.{says}"

    return delete


def _mend_unreadable(repository: Repository, ref: str) -> Callable[[], Awaitable[str]]:
    async def delete() -> str:
        await to_thread((repository.git_dir / ref).unlink, missing_ok=True)
        return "The file is deleted."

    return delete


def _mend_work(
    ctx: Ctx, repository: Repository, ref: str, work: Mapping[str, str], *, is_here: bool
) -> Callable[[], Awaitable[str]]:
    async def mend() -> str:
        if is_here:
            await to_thread(create, repository, {ref: work["kept_commit"]})
            return "The reference is made again."
        key = {"task_id": int(work["task_id"]), "attempt": int(work["attempt"])}
        await ctx.write(lambda tx: attempts.forget(tx, **key))
        return "It is recorded that the work is gone."

    return mend
