"""Runs are started: each key once, again only after it failed, was cancelled or was lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound, WorkbenchError
from workbench.model import Int64, Json, Level, uuid7
from workbench.ops import Ctx, op
from workbench.process import has_ended
from workbench.rules.naming import Name
from workbench.services.definitions import changes
from workbench.services.runs import ending
from workbench.services.runs.run import SQL as RUN
from workbench.services.runs.run import RunInfo, find, require_small, run_of
from workbench.services.runs.tagging import Tag, put_tags
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Process = Annotated[
    str | None,
    Field(
        max_length=500,
        description="The process that records the run, as workbench.process.process_identity names it: once it has "
        "ended without end_run, the run is lost. null: nobody watches it.",
    ),
]


class StartedRun(RunInfo):
    """A run. `already`: it was completed before, and was not started again."""

    already: bool


@op(allow=Level.OPERATOR, tool=False)
async def start_run(
    ctx: Ctx,
    name: Name,
    key: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="What tells the run from all others; null: a new one."),
    ] = None,
    sweep_id: Annotated[Int64 | None, Field(description="The sweep that it is a run of.")] = None,
    parent_id: Annotated[Int64 | None, Field(description="The run within which it starts.")] = None,
    notebook: Annotated[str | None, Field(max_length=1_000, description="Path of its notebook.")] = None,
    parameters: Annotated[dict[str, Json], Field(description="The values of its parameters.")] = {},
    definitions: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1_000)]],
        Field(max_length=100, description="The agent definitions that it uses: paths, ids or names."),
    ] = [],
    environment: Annotated[
        dict[str, Json], Field(description="What it runs on: python, platform, packages, and what else matters.")
    ] = {},
    output: Annotated[
        str | None, Field(max_length=1_000, description="Path of the executed notebook, relative to the project.")
    ] = None,
    session_id: Annotated[str | None, Field(max_length=100, description="The session that it coordinates in.")] = None,
    tags: Annotated[list[Tag], Field(max_length=100, description="Its tags.")] = [],
    process: Process = None,
) -> StartedRun:
    """Record that a run starts, with the commit that the project is at and the hashes of the definitions it uses.

    Secrets in parameters and environment are masked.

    If the run with this key is completed, it is returned with `already`. If it failed, was cancelled or was lost, it
    starts again, with one more of `tries` and without the metrics and artifacts of the last one. A call that the same
    process repeats while the run goes on changes nothing.
    """
    commit, dirty = await git_state(ctx, notebook)
    used = [await changes.read(ctx, ref) for ref in definitions]
    facts = {
        "sweep": sweep_id,
        "parent": parent_id,
        "name": name,
        "notebook": notebook,
        "parameters": json.dumps(ctx.secrets.masked(parameters)),
        "session": session_id,
        "commit": commit,
        "dirty": None if dirty is None else int(dirty),
        "definitions": json.dumps({snapshot.definition.metadata.name: snapshot.hash for snapshot in used}),
        "environment": json.dumps(ctx.secrets.masked(environment)),
        "output": output,
        "process": process,
        "machine": ctx.local.machine.name,
    }
    require_small(facts, ctx.settings.max_run_bytes)

    def change(tx: Tx) -> StartedRun:
        _require_sweep_and_session(tx, sweep_id, session_id)
        if parent_id is not None:
            find(tx, ctx.caller, parent_id)
        run_key = key or str(uuid7(tx.now))
        row = tx.one(RUN.by_key, key=run_key)
        already = row is not None and row["state"] == "completed"
        if row is None:
            tx.run(SQL.add, facts, key=run_key, by=tx.actor, now=tx.now)
        elif not already and not _is_repeated(row, process):
            _start_again(tx, row, facts)
        current = tx.one(RUN.by_key, key=run_key)
        assert current is not None
        if row is None or current["tries"] != row["tries"]:
            put_tags(tx, current["id"], tags)
            tx.emit(
                "run.started",
                f"run:{current['id']}",
                session=session_id,
                name=name,
                sweep_id=sweep_id,
                notebook=notebook,
                tries=current["tries"],
            )
        return StartedRun(**vars(run_of(tx, current)), already=already)

    return await ctx.write(change)


async def git_state(ctx: Ctx, notebook: str | None) -> tuple[str | None, bool | None]:
    """The commit of the main checkout, and whether what ran may differ from it; None without a repository.

    It may if a tracked file differs, or if git does not track the notebook, a path as `start_run` takes it.
    """
    file = notebook and ctx.settings.project / notebook
    try:
        repository = await ctx.local.repositories.open()
        return await asyncio.to_thread(
            lambda: (repository.parse("HEAD"), repository.is_dirty() or bool(file and repository.is_untracked(file)))
        )
    except WorkbenchError:
        return None, None


def _is_repeated(row: Row, process: str | None) -> bool:
    """Whether the process that starts a run has started it before.

    Raises:
        Conflict: ``RUN_RUNNING``.
    """
    if row["state"] != "running":
        return False
    if process is not None and row["process"] == process:
        return True
    if row["process"] is not None and has_ended(row["process"]):
        return False
    raise Conflict(
        "RUN_RUNNING",
        f"The run {row['id']} is running.",
        Hint("end_run", "If nothing runs it any more, end it with {} and the state lost."),
        run_id=row["id"],
    )


def _start_again(tx: Tx, row: Row, facts: Mapping[str, object]) -> None:
    if row["state"] == "running":
        ending.record_end(tx, row, "lost", ending.LOST)
    for query in (SQL.forget_metrics, SQL.forget_latest, SQL.forget_artifacts):
        tx.run(query, run=row["id"])
    tx.run(SQL.start_again, facts, id=row["id"], now=tx.now)


def _require_sweep_and_session(tx: Tx, sweep_id: int | None, session_id: str | None) -> None:
    if sweep_id is not None and tx.one(SQL.sweep, id=sweep_id) is None:
        raise NotFound("SWEEP_NOT_FOUND", f"There is no sweep {sweep_id}.", Hint("list_sweeps"))
    if session_id is not None and tx.one(SQL.session, id=session_id) is None:
        raise NotFound("SESSION_NOT_FOUND", f"There is no session {session_id!r}.", Hint("list_sessions"))
