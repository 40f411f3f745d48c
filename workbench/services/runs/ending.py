"""Runs end: as they say themselves, or as lost when their process has ended."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Conflict, Unavailable
from workbench.model import Int64, Json, Level
from workbench.ops import SYSTEM, Ctx, op
from workbench.ops.duties import duty
from workbench.process import has_ended
from workbench.services.processes import termination
from workbench.services.runs.run import RunInfo, RunRef, find, require_small, run_of, value_of
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
log = logging.getLogger(__name__)

LOST = {"error_code": "RUN_LOST", "error": "The process that ran it ended before the run did."}

EndState = Annotated[
    Literal["completed", "failed", "cancelled", "lost"], Field(description="lost: nothing runs it any more.")
]
Tries = Annotated[
    Int64 | None,
    Field(description="`tries` of the run as it was started; RUN_RESTARTED if it was started again since. null: any."),
]


@op(allow=Level.OPERATOR, tool=False, command="runs end")
async def end_run(
    ctx: Ctx,
    run_id: RunRef,
    state: EndState = "completed",
    error_code: Annotated[str | None, Field(max_length=100, description="Why it did not complete, as a code.")] = None,
    error: Annotated[str | None, Field(max_length=20_000, description="Why it did not complete.")] = None,
    output: Annotated[
        str | None, Field(max_length=1_000, description="Path of the executed notebook, relative to the project.")
    ] = None,
    environment: Annotated[
        dict[str, Json], Field(max_length=100, description="What was found of its environment, such as packages.")
    ] = {},
    tries: Tries = None,
) -> RunInfo:
    """Record how a run ended, without secrets in its error.

    Repeating it changes nothing; a lost run may still end otherwise.
    """
    why = ctx.secrets.masked({"error_code": error_code, "error": error})
    surroundings = ctx.secrets.masked(environment)

    def change(tx: Tx) -> RunInfo:
        row = find(tx, ctx.caller, run_id)
        require_try(row, tries)
        if row["state"] not in ("running", "lost", state):
            raise Conflict("RUN_ENDED", f"The run {row['id']} has ended: it is {row['state']}.", state=row["state"])
        if row["state"] != state:
            record_end(tx, row, state, why, output)
            if surroundings:
                facts = json.dumps({**json.loads(row["environment"]), **surroundings})
                require_small({"environment": facts}, ctx.settings.max_run_bytes)
                tx.run(SQL.know, id=row["id"], environment=facts)
        return run_of(tx, find(tx, ctx.caller, row["id"]))

    return await ctx.write(change)


def require_try(row: Row, tries: int | None) -> None:
    """Refuse a report about an earlier try of a run.

    Raises:
        Conflict: ``RUN_RESTARTED``.
    """
    if tries not in (None, row["tries"]):
        raise Conflict(
            "RUN_RESTARTED",
            f"The run {row['id']} was started again: this is its try {row['tries']}, and what came is of try {tries}.",
            tries=row["tries"],
        )


@duty("ending lost runs", 2.0, share=0.05)
async def settle_lost(ctx: Ctx) -> None:
    """Record runs as lost whose process has ended."""
    rows = [row for row in await ctx.read(lambda tx: tx.all(SQL.watched)) if has_ended(row["process"])]
    if rows:
        await ctx.store.write(lambda tx: _settle(tx, rows), actor=SYSTEM.name)


@duty("ending agents of lost runs", 5.0, wakes=True)
async def end_left_agents(ctx: Ctx) -> None:
    """End the agents that lost runs of sweeps started for themselves: the process that had to end them is gone."""
    rows = await ctx.read(lambda tx: tx.all(SQL.left))
    if rows:
        await termination.end_each_here(ctx, [row["agent_id"] for row in rows], "The run that started it was lost.")


async def settle_before_reading(ctx: Ctx) -> None:
    """Record lost runs, before runs are shown. A store that cannot be changed is shown as it is."""
    try:
        await settle_lost(ctx)
    except Unavailable as error:
        log.warning("lost runs could not be recorded: %s", error)


def record_end(tx: Tx, row: Row, state: str, why: dict[str, Any], output: str | None = None) -> None:
    """Record the end of a run, and announce it with its last values."""
    tx.run(SQL.end, why, id=row["id"], state=state, output=output, now=tx.now)
    values = {metric["name"]: value_of(metric) for metric in tx.all(SQL.some_latest, run=row["id"])}
    tx.emit(
        "run.ended",
        f"run:{row['id']}",
        session=row["session_id"],
        name=row["name"],
        sweep_id=row["sweep_id"],
        state=state,
        error_code=why["error_code"],
        tries=row["tries"],
        metrics=values,
    )


def _settle(tx: Tx, rows: list[Row]) -> None:
    for row in rows:
        current = tx.one(SQL.still, id=row["id"], process=row["process"])
        if current is not None:
            record_end(tx, row, "lost", LOST)
