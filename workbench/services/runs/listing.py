"""Runs are listed, read and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import BadInput
from workbench.model import Json, Level, Wire
from workbench.ops import Caller, Command, Ctx, op
from workbench.rules.naming import like_pattern, similar
from workbench.rules.runs import comparison
from workbench.rules.runs.values import parse_condition
from workbench.rules.wire.paging import Cursor, Limit, Search
from workbench.services.runs import sorting
from workbench.services.runs.ending import settle_before_reading
from workbench.services.runs.run import (
    SQL,
    RunInfo,
    RunRef,
    State,
    WholeRun,
    find,
    runs_of,
    scope,
    whole_run,
)
from workbench.store.base import Reader

COMPARED = 100

Condition = Annotated[str, Field(min_length=1, max_length=500)]


class RunPage(Wire):
    """Runs in the requested order. `next_cursor` is null on the last page."""

    runs: list[RunInfo]
    next_cursor: str | None


class ComparedLine(Wire):
    """A row of a comparison: a value of each run, null where it has none."""

    section: Literal["run", "parameters", "metrics", "git", "definitions", "environment"]
    name: str
    values: list[Json]
    differs: bool


class Comparison(Wire):
    """Runs beside each other: the values of each row are in the order of the runs."""

    runs: list[RunInfo]
    rows: list[ComparedLine]


@op(allow=Level.PLANNER, reads=True, tool=False)
async def list_runs(
    ctx: Ctx,
    sweep: Annotated[str | None, Field(max_length=200, description="Only of this sweep: its name or id.")] = None,
    state: Annotated[State | None, Field(description="Only in this state.")] = None,
    tag: Annotated[str | None, Field(max_length=100, description="Only with this tag.")] = None,
    search: Search = None,
    where: Annotated[
        list[Condition],
        Field(max_length=20, description="Conditions on last values, all of which must hold, such as loss<0.1."),
    ] = [],
    archived: Annotated[bool, Field(description="List the archived ones instead.")] = False,
    sort: Annotated[
        str,
        Field(
            min_length=1,
            max_length=108,
            description="newest, name, state, started, duration, or the name of a metric, whose last values count "
            "(metric:NAME if it is called like one of these). Smallest first, with - before it largest first; runs "
            "without it come last.",
        ),
    ] = sorting.NEWEST,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """List runs of experiments, filtered and sorted. `search` searches names, notebooks and notes."""
    await settle_before_reading(ctx)
    parsed = [parse_condition(each) for each in where]
    values = scope(ctx.caller) | {
        "sweep": sweep,
        "state": state,
        "tag": tag,
        "search": like_pattern(search),
        "conditions": json.dumps(parsed),
        "archived": int(archived),
    }

    def question(tx: Reader) -> RunPage:
        require(tx, ctx.caller, [*(each["name"] for each in parsed), *sorting.metric_of(sort)])
        rows, following = sorting.page(tx, values, sort, limit, cursor)
        return RunPage(runs=runs_of(tx, rows), next_cursor=following)

    return await ctx.read(question)


@op(allow=Level.PLANNER, reads=True, tool=False, command=Command("runs show RUN"))
async def get_run(ctx: Ctx, run_id: RunRef) -> WholeRun:
    """Get a run with its series, artifacts, definitions, environment and notes."""
    await settle_before_reading(ctx)
    return await ctx.read(lambda tx: whole_run(tx, find(tx, ctx.caller, run_id)))


@op(allow=Level.PLANNER, reads=True, tool=False)
async def compare_runs(
    ctx: Ctx,
    run_ids: Annotated[
        list[RunRef],
        Field(
            min_length=1, max_length=COMPARED, description="Their ids, or names that only one run has, in this order."
        ),
    ],
    all_rows: Annotated[bool, Field(description="Also the rows in which the runs do not differ.")] = False,
) -> Comparison:
    """Compare runs: parameters, last values of metrics, commits, definitions and environment, side by side."""
    await settle_before_reading(ctx)
    found = await ctx.read(lambda tx: [whole_run(tx, find(tx, ctx.caller, ref)) for ref in run_ids])
    if len({run.id for run in found}) < len(found):
        raise BadInput("INVALID_ARGUMENTS", "Each run can be compared once.", problems=[])
    rows = [line for line in comparison.lines([_sections(run) for run in found]) if all_rows or line.differs]
    return Comparison(
        runs=[RunInfo(**{name: getattr(run, name) for name in RunInfo.model_fields}) for run in found],
        rows=[
            ComparedLine(section=line.section, name=line.name, values=list(line.values), differs=line.differs)
            for line in rows
        ],
    )


def _sections(run: WholeRun) -> comparison.Facts:
    """What a comparison has of a run."""
    seconds = None if run.ended_at is None else (run.ended_at - run.started_at) / 1_000_000
    about = {"notebook": run.notebook, "state": run.state, "error_code": run.error_code, "seconds": seconds}
    return {
        "run": about | {"tries": run.tries},
        "parameters": run.parameters,
        "metrics": run.metrics,
        "git": {"commit": run.git_commit, "dirty": run.git_dirty},
        "definitions": run.definitions,
        "environment": run.environment,
    }


NAMED = 10
"""How many metrics an error names."""


def require(tx: Reader, caller: Caller, names: Iterable[str]) -> None:
    """Refuse the name of a metric that no run has recorded: a misspelt condition would silently match nothing.

    While no run has recorded any metric, every name passes.

    Raises:
        BadInput: ``UNKNOWN_METRIC``.
    """
    for name in dict.fromkeys(names):
        if tx.one(SQL.has_metric, scope(caller), metric=name) is None:
            known = [row["name"] for row in tx.all(SQL.metric_names, scope(caller))]
            if known:
                raise BadInput("UNKNOWN_METRIC", f"No run has recorded the metric {name!r}. {_hint(name, known)}")


def _hint(name: str, known: list[str]) -> str:
    if meant := similar(name, known):
        return f"Did you mean {meant}?"
    more = ", …" if len(known) > NAMED else ""
    return f"Recorded are: {', '.join(known[:NAMED])}{more}."
