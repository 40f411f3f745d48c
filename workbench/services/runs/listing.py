"""Runs are listed, read and compared."""

from __future__ import annotations

import json
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


@op(allow=Level.PLANNER, reads=True, tool=False, command="runs", refreshed_by="run sweep")
async def list_runs(
    ctx: Ctx,
    sweep: Annotated[str | None, Field(max_length=200, description="Only of this sweep: its name or id.")] = None,
    state: Annotated[State | None, Field(description="Only in this state.")] = None,
    tag: Annotated[str | None, Field(max_length=100, description="Only with this tag.")] = None,
    search: Search = None,
    where: Annotated[
        list[Condition],
        Field(
            max_length=20,
            description="Conditions on parameters and last values, all of which must hold, such as lr=0.1.",
        ),
    ] = [],
    archived: Annotated[bool, Field(description="List the archived ones instead.")] = False,
    sort: Annotated[
        str,
        Field(
            min_length=1,
            max_length=108,
            description="newest, name, state, started, duration, or the name of a metric, whose last values count, or "
            "of a parameter that is a number (metric:NAME and parameter:NAME, if it is called like another of these). "
            "Smallest first, with - before it largest first; runs without it come last.",
        ),
    ] = sorting.NEWEST,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """List runs of experiments, filtered and sorted. `search` searches names, notebooks and notes."""
    await settle_before_reading(ctx)
    parsed = [parse_condition(each) for each in where]
    by = sorting.value_of(sort)
    values = scope(ctx.caller) | {
        "sweep": sweep,
        "state": state,
        "tag": tag,
        "search": like_pattern(search),
        "archived": int(archived),
    }

    def question(tx: Reader) -> RunPage:
        conditions = [{**each, **_subject(tx, ctx.caller, each["name"])} for each in parsed]
        order = sort
        if by is not None and _subject(tx, ctx.caller, by)["of"] == "parameter":
            order = f"{'-' * sort.startswith('-')}{sorting.PARAMETER}{by.removeprefix(sorting.PARAMETER)}"
        rows, following = sorting.page(tx, values | {"conditions": json.dumps(conditions)}, order, limit, cursor)
        return RunPage(runs=runs_of(tx, rows), next_cursor=following)

    return await ctx.read(question)


@op(allow=Level.PLANNER, reads=True, tool=False, command=Command("runs show RUN"))
async def get_run(ctx: Ctx, run_id: RunRef) -> WholeRun:
    """Get a run with its series, artifacts, definitions, environment and notes."""
    await settle_before_reading(ctx)
    return await ctx.read(lambda tx: whole_run(tx, ctx.caller, find(tx, ctx.caller, run_id)))


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
    runs = await ctx.read(lambda tx: [whole_run(tx, ctx.caller, find(tx, ctx.caller, ref)) for ref in run_ids])
    if len({run.id for run in runs}) < len(runs):
        raise BadInput("INVALID_ARGUMENTS", "Each run can be compared once.", problems=[])
    rows = [line for line in comparison.lines([_sections(run) for run in runs]) if all_rows or line.differs]
    return Comparison(
        runs=[RunInfo(**{name: getattr(run, name) for name in RunInfo.model_fields}) for run in runs],
        rows=[
            ComparedLine(section=line.section, name=line.name, values=list(line.values), differs=line.differs)
            for line in rows
        ],
    )


def _sections(run: WholeRun) -> comparison.Facts:
    """What a comparison has of a run."""
    seconds = None if run.ended_at is None else (run.ended_at // 1_000 - run.started_at // 1_000) / 1_000
    about = {"notebook": run.notebook, "state": run.state, "error_code": run.error_code, "seconds": seconds}
    return {
        "run": about | {"tries": run.tries, "parent_id": run.parent_id},
        "parameters": run.parameters,
        "metrics": run.metrics,
        "git": {"commit": run.git_commit, "dirty": run.git_dirty},
        "definitions": run.definitions,
        "environment": run.environment,
    }


NAMED = 10
"""How many metrics and parameters an error names."""


def _subject(tx: Reader, caller: Caller, text: str) -> dict[str, str]:
    """Whether a name is `of` a metric or a parameter; of a metric if runs have both.

    While no run has any, every name passes.

    Raises:
        BadInput: ``UNKNOWN_METRIC``.
    """
    name = text.removeprefix(sorting.METRIC).removeprefix(sorting.PARAMETER)
    if not text.startswith(sorting.PARAMETER) and tx.one(SQL.has_metric, scope(caller), metric=name) is not None:
        return {"name": name, "of": "metric"}
    parameters = [row["name"] for row in tx.all(SQL.parameter_names, scope(caller))]
    if name in parameters and not text.startswith(sorting.METRIC):
        return {"name": name, "of": "parameter"}
    known = [*(row["name"] for row in tx.all(SQL.metric_names, scope(caller))), *parameters]
    if known:
        problem = f"No run has a metric or parameter {name!r}."
        raise BadInput("UNKNOWN_METRIC", f"{problem} {_hint(name, known)}")
    return {"name": name, "of": "metric"}


def _hint(name: str, names: list[str]) -> str:
    if likely := similar(name, names):
        return f"Did you mean {likely}?"
    more = ", …" if len(names) > NAMED else ""
    return f"Recorded are: {', '.join(names[:NAMED])}{more}."
