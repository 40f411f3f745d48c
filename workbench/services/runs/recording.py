"""What runs measure: values are recorded in series, announced together, and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import LARGEST_INT, SECOND, Level, Wire
from workbench.ops import SYSTEM, Ctx, op
from workbench.ops.duties import duty
from workbench.rules.runs.values import LONGEST_TEXT, Point, points
from workbench.services.runs.ending import Tries, require_try
from workbench.services.runs.run import MetricName, MetricValue, RunRef, find, value_of
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
ANNOUNCED_EVERY = SECOND
"""The least time between two events about values of one run, unless it ends."""
VALUES_AT_ONCE = 10_000

Value = float | Annotated[str, Field(max_length=LONGEST_TEXT)]
Metrics = Annotated[
    dict[MetricName, Value | Annotated[list[Value], Field(max_length=VALUES_AT_ONCE)]],
    Field(
        min_length=1,
        max_length=1_000,
        description='Values by name: a number, a short text, or a list of these for consecutive steps. "NaN", '
        '"Infinity" and "-Infinity" are numbers.',
    ),
]
Step = Annotated[
    int | None,
    Field(ge=0, le=LARGEST_INT - VALUES_AT_ONCE, description="Of these values; null: the next one of each series."),
]


class Recorded(Wire):
    """What was recorded: the number of values, and how many the run has recorded in all."""

    values: int
    total: int


class SeriesPoint(NamedTuple):
    """A value of a series."""

    step: int
    value: MetricValue


class Series(Wire):
    """The values of a series by step. `thinned`: it has more, of which these are evenly chosen with the last one."""

    name: str
    points: list[SeriesPoint]
    thinned: bool


class RunSeries(Wire):
    """Series of a run, by name."""

    run_id: int
    series: list[Series]


@op(allow=Level.OPERATOR, tool=False)
async def record_metrics(
    ctx: Ctx, run_id: RunRef, metrics: Metrics, step: Step = None, tries: Tries = None
) -> Recorded:
    """Record values of a run, many in one call. A value replaces the one with the same name and step.

    Values may also be added to a run that has ended. Numbers are stored as double precision.
    """
    added = points(_mask_secrets(ctx, metrics), step)
    limit = ctx.settings.max_run_metrics

    def change(tx: Tx) -> Recorded:
        row = find(tx, ctx.caller, run_id)
        require_try(row, tries)
        _add(tx, row["id"], _number_points(tx, row["id"], added), may_replace=step is not None)
        counts = tx.one(SQL.note, id=row["id"], count=len(added), now=tx.now)
        assert counts is not None
        if counts["metrics"] > limit:
            raise Conflict(
                "TOO_MANY_METRICS",
                f"The run {row['id']} may record {limit} values (max_run_metrics). Record fewer, or raise the limit.",
                limit=limit,
            )
        if ctx.local.server is None or tx.now - counts["announced_at"] >= ANNOUNCED_EVERY:
            _announce(tx, {**row, **counts})
        return Recorded(values=len(added), total=counts["metrics"])

    return await ctx.write(change, durable=False)


@op(allow=Level.PLANNER, reads=True, tool=False)
async def get_run_series(
    ctx: Ctx,
    run_id: RunRef,
    names: Annotated[list[MetricName], Field(max_length=1_000, description="Only these; empty: all.")] = [],
    max_points: Annotated[int, Field(ge=2, le=1_000_000, description="At most this many of each series.")] = 1_000,
) -> RunSeries:
    """Get the values of a run's series by step."""

    def question(tx: Reader) -> RunSeries:
        run: int = find(tx, ctx.caller, run_id)["id"]
        counts = {row["name"]: row["count"] for row in tx.all(SQL.counts, run=run)}
        chosen = [name for name in counts if not names or name in names]
        return RunSeries(run_id=run, series=[_series(tx, run, name, counts[name], max_points) for name in chosen])

    return await ctx.read(question)


@duty("announcing metrics", 1.0, once=True)
async def announce(ctx: Ctx) -> None:
    """Announce values that were recorded since their runs were announced last."""
    if await ctx.store.read_inline(lambda tx: tx.one(SQL.unannounced)):
        await ctx.store.write(_announce_all, actor=SYSTEM.name)


def _announce_all(tx: Tx) -> None:
    for row in tx.all(SQL.unannounced):
        _announce(tx, row)


def _announce(tx: Tx, row: Row) -> None:
    tx.run(SQL.announced, id=row["id"])
    tx.emit(
        "run.recorded", f"run:{row['id']}", session=row["session_id"], sweep_id=row["sweep_id"], values=row["metrics"]
    )


def _mask_secrets(ctx: Ctx, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics with the secrets in names and texts masked, since programs made them. Numbers stay numbers."""

    def masked(value: Any) -> Any:
        if isinstance(value, list):
            return [masked(item) for item in value]
        return ctx.secrets.masked(value) if isinstance(value, str) else value

    return {ctx.secrets.masked(name): masked(value) for name, value in metrics.items()}


def _number_points(tx: Tx, run_id: int, added: Sequence[Point]) -> list[Point]:
    """Points with the steps that they get: those that have none get the next ones of their series."""
    following: Counter[str] = Counter()
    numbered = []
    for point in added:
        if point.step is None:
            if point.name not in following:
                row = tx.one(SQL.next_step, run=run_id, name=point.name)
                assert row is not None
                following[point.name] = row["step"]
            numbered.append(replace(point, step=following[point.name]))
            following[point.name] += 1
        else:
            numbered.append(point)
    return numbered


def _add(tx: Tx, run_id: int, added: Sequence[Point], may_replace: bool) -> None:
    about = {"run": run_id, "now": tx.now}
    if may_replace:  # by rows of their own, because who follows the values reads those with new ids
        tx.many(SQL.remove, [{"run": run_id, "name": point.name, "step": point.step} for point in added])
    tx.many(SQL.add, [about | asdict(point) for point in added])
    last = {point.name: point for point in sorted(added, key=lambda point: point.step or 0)}
    tx.many(SQL.add_latest, [about | asdict(point) for point in last.values()])


def _series(tx: Reader, run_id: int, name: str, count: int, most: int) -> Series:
    every = max(1, -(-(count - 1) // (most - 1)))
    rows = tx.all(SQL.points, run=run_id, name=name, every=every, last=count - 1)
    return Series(
        name=name, points=[SeriesPoint(row["step"], value_of(row)) for row in rows], thinned=len(rows) < count
    )
