"""A run: what it is, its row, and who sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint, NotFound
from workbench.model import Int64, Json, Level, Micros, Wire
from workbench.ops import Caller
from workbench.rules.runs import values
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

State = Literal["running", "completed", "failed", "cancelled", "lost"]
RunRef = Annotated[
    Int64 | Annotated[str, Field(min_length=1, max_length=200)],
    Field(description="The run's id, or its name if only one run has it; see list_runs."),
]
MetricName = Annotated[str, Field(min_length=1, max_length=100, pattern=values.NAME)]
MetricValue = float | str
"""A number, or a text; NaN, Infinity and -Infinity are texts."""

INNER = 500
"""The most inner runs that a run names."""
CANDIDATES = 20
"""The most runs of one name that an error names."""


class Artifact(Wire):
    """A file that a run made. `path` is relative to the project; `bytes` and `sha256` are as of `added_at`."""

    name: str
    path: str
    media_type: str
    bytes: int
    sha256: str
    added_at: Micros


class MetricSummary(Wire):
    """A series of a run: how many values it has, the last one with its step, and the lowest and highest number."""

    name: str
    count: int
    step: int
    last: MetricValue
    low: float | None
    high: float | None


class InnerRun(Wire):
    """A run that was started within another one."""

    id: int
    name: str
    state: State


class RunInfo(Wire):
    """A run of an experiment.

    `key` tells a run of a sweep from the others of it; else it is a UUID. `state`: `lost` means that the process which
    recorded it ended before it. `metrics` has the last value of each series. `git_dirty`: a tracked file differed from
    `git_commit`, or git did not track the notebook. `output` is the executed notebook, relative to the project.
    `tries`: how often it was started. `parent_id`: the run within which it was started.
    """

    id: int
    key: str
    sweep_id: int | None
    sweep: str | None
    parent_id: int | None
    name: str
    notebook: str | None
    parameters: dict[str, Json]
    state: State
    error_code: str | None
    error: str | None
    session_id: str | None
    git_commit: str | None
    git_dirty: bool | None
    output: str | None
    tries: int
    tags: list[str]
    metrics: dict[str, MetricValue]
    artifacts: int
    created_by: str
    started_at: Micros
    ended_at: Micros | None
    archived_at: Micros | None


class WholeRun(RunInfo):
    """A run with all that is known of it, but the values of its series, which get_run_series has.

    `definitions` has the content hashes of the agent definitions that it used, by name. `inner` has the first 500 runs
    that were started within it.
    """

    definitions: dict[str, str]
    environment: dict[str, Json]
    notes: str
    series: list[MetricSummary]
    files: list[Artifact]
    inner: list[InnerRun]


def require_small(facts: Mapping[str, object], limit: int) -> None:
    """Refuse what is too large for the record of a run.

    Raises:
        BadInput: ``RUN_TOO_LARGE``.
    """
    size = sum(len(value.encode()) for value in facts.values() if isinstance(value, str))
    if size > limit:
        raise BadInput(
            "RUN_TOO_LARGE",
            f"What is recorded of the run has {size} bytes; the limit is {limit} (max_run_bytes). Put large values "
            "into a file, and add it as an artifact.",
            bytes=size,
            limit=limit,
        )


def find(tx: Reader, caller: Caller, ref: int | str) -> Row:
    """The row of the run that a reference names, if the caller may see it.

    A number is an id. A text is an id if there is a run with it, and a name otherwise; archived runs count only if no
    other has the name.

    Raises:
        NotFound: ``RUN_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``; `details.candidates` are the newest ids.
    """
    row = _with_id(tx, caller, ref)
    if row is None and isinstance(ref, str):
        row = _find_named(tx, caller, ref)
    if row is None:
        raise NotFound("RUN_NOT_FOUND", f"There is no run {ref!r}.", Hint("list_runs"))
    return row


def _with_id(tx: Reader, caller: Caller, ref: int | str) -> Row | None:
    is_id = isinstance(ref, int) or re.fullmatch("[0-9]{1,18}", ref)
    return tx.one(SQL.get, scope(caller), id=int(ref)) if is_id else None


def _find_named(tx: Reader, caller: Caller, name: str) -> Row | None:
    """The only run of a name."""
    rows = tx.all(SQL.named, scope(caller), name=name, limit=CANDIDATES + 1)
    rows = [row for row in rows if row["archived_at"] is None] or rows
    if len(rows) > 1:
        ids = [row["id"] for row in rows[:CANDIDATES]]
        named = ", ".join([*map(str, ids), *(["…"] if len(rows) > CANDIDATES else [])])
        raise BadInput("AMBIGUOUS_NAME", f"More than one run is named {name!r}. Choose by id: {named}.", candidates=ids)
    return rows[0] if rows else None


def runs_of(tx: Reader, rows: Sequence[Row]) -> list[RunInfo]:
    """Runs from their rows."""
    ids = json.dumps([row["id"] for row in rows])
    tags: dict[int, list[str]] = {}
    for row in tx.all(SQL.tags, runs=ids):
        tags.setdefault(row["run_id"], []).append(row["tag"])
    metrics: dict[int, dict[str, MetricValue]] = {}
    for row in tx.all(SQL.latest, runs=ids):
        metrics.setdefault(row["run_id"], {})[row["name"]] = value_of(row)
    return [RunInfo(**_facts(row), tags=tags.get(row["id"], []), metrics=metrics.get(row["id"], {})) for row in rows]


def run_of(tx: Reader, row: Row) -> RunInfo:
    """A run from its row."""
    [run] = runs_of(tx, [row])
    return run


def whole_run(tx: Reader, caller: Caller, row: Row) -> WholeRun:
    """A run with all that a caller may know of it, from its row."""
    run = run_of(tx, row)
    latest = {each["name"]: each for each in tx.all(SQL.latest, runs=json.dumps([run.id]))}
    series = [
        MetricSummary(**each, step=latest[each["name"]]["step"], last=value_of(latest[each["name"]]))
        for each in tx.all(SQL.series, run=run.id)
    ]
    return WholeRun(
        **vars(run),
        definitions=json.loads(row["definitions"]),
        environment=json.loads(row["environment"]),
        notes=row["notes"],
        series=series,
        files=[Artifact(**each) for each in tx.all(SQL.artifacts, run=run.id)],
        inner=[InnerRun(**each) for each in tx.all(SQL.inner, scope(caller), run=run.id, limit=INNER)],
    )


def value_of(row: Row) -> MetricValue:
    """The value in a row of a metric."""
    value: MetricValue = row["text"] if row["value"] is None else row["value"]
    return value


def scope(caller: Caller) -> dict[str, Any]:
    """Which runs a caller sees, as parameters of queries: the operator all, others those of their session or none."""
    return {"everything": int(caller.level is Level.OPERATOR), "mine": caller.session}


def _facts(row: Row) -> dict[str, Any]:
    columns = RunInfo.model_fields.keys() & row.keys()
    dirty = row["git_dirty"]
    return {name: row[name] for name in columns} | {
        "parameters": json.loads(row["parameters"]),
        "git_dirty": None if dirty is None else bool(dirty),
    }
