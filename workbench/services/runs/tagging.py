"""What a person says about runs: their names, notes and tags; and runs that are put away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import Level
from workbench.ops import Command, Ctx, op
from workbench.rules.naming import Name
from workbench.services.runs.run import RunInfo, RunRef, WholeRun, find, run_of, whole_run
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Tag = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\s,\x00-\x1f\x7f]+$")]
Tags = Annotated[list[Tag], Field(max_length=100, description="Tags: words without spaces and commas.")]


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=(
        Command(
            "runs note RUN TEXT",
            "The notes of run {id} are saved.",
            names={"TEXT": "notes"},
            options=(),
            help="Set the notes of a run, in Markdown.",
        ),
        Command("runs name RUN NAME", "Run {id} is called {name}.", options=(), help="Give a run another name."),
    ),
)
async def update_run(
    ctx: Ctx,
    run_id: RunRef,
    name: Name | None = None,
    notes: Annotated[
        str | None, Field(max_length=100_000, description="What you note about it, in Markdown; empty: nothing.")
    ] = None,
    add_tags: Tags = [],
    remove_tags: Tags = [],
) -> WholeRun:
    """Change the name, the notes and the tags of a run; omitted arguments stay unchanged."""

    def change(tx: Tx) -> WholeRun:
        row = find(tx, ctx.caller, run_id)
        fields = {"name": name, "notes": notes, "tags": add_tags or remove_tags or None}
        if any(value is not None for value in fields.values()):
            tx.run(SQL.update, id=row["id"], name=name, notes=notes)
            tx.many(SQL.remove_tag, [{"run": row["id"], "tag": tag} for tag in remove_tags])
            put_tags(tx, row["id"], add_tags)
            changes = [field for field, value in fields.items() if value is not None]
            tx.emit("run.changed", f"run:{row['id']}", session=row["session_id"], changes=changes)
        return whole_run(tx, ctx.caller, find(tx, ctx.caller, row["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR, tool=False)
async def archive_run(ctx: Ctx, run_id: RunRef) -> RunInfo:
    """Put a run away: lists leave it out. restore_run brings it back."""

    def change(tx: Tx) -> RunInfo:
        row = find(tx, ctx.caller, run_id)
        if row["state"] == "running":
            raise Conflict("RUN_RUNNING", f"The run {row['id']} is running. End it first.", run_id=row["id"])
        if row["archived_at"] is None:
            tx.run(SQL.archive, id=row["id"], at=tx.now)
            tx.emit("run.archived", f"run:{row['id']}", session=row["session_id"])
        return run_of(tx, find(tx, ctx.caller, row["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR, tool=False)
async def restore_run(ctx: Ctx, run_id: RunRef) -> RunInfo:
    """Bring a run back that was put away."""

    def change(tx: Tx) -> RunInfo:
        row = find(tx, ctx.caller, run_id)
        if row["archived_at"] is not None:
            restore(tx, row)
        return run_of(tx, find(tx, ctx.caller, row["id"]))

    return await ctx.write(change)


def restore(tx: Tx, row: Row, **data: Any) -> None:
    """Bring a run back that was put away; `data` is added to the event."""
    tx.run(SQL.archive, id=row["id"], at=None)
    tx.emit("run.restored", f"run:{row['id']}", session=row["session_id"], **data)


def put_tags(tx: Tx, run_id: int, tags: Iterable[str]) -> None:
    """Give a run tags, in addition to those it has."""
    tx.many(SQL.add_tag, [{"run": run_id, "tag": tag} for tag in tags])
