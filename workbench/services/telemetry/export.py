"""Tells the person's OpenTelemetry collector what happens: from the feed and the ledger, as far as both have come.

Nothing else waits for it, and nothing is queued: how far the collector has been told is stored. Each span is sent once;
of a batch that was sent when the server ended it is not known whether it arrived: it is sent again, with the same ids.
A collector that is away is told later, after a growing pause, and the log says so once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench.errors import NotFound, Unavailable, WorkbenchError
from workbench.model import SECOND, Level, Micros, Wire
from workbench.ops import SYSTEM, Columns, Command, Ctx, op
from workbench.ops.duties import duty
from workbench.ops.parameters import TaskId
from workbench.rules.telemetry import spans as rules
from workbench.rules.telemetry.spans import Attribute, Span, SpanIds
from workbench.rules.telemetry.totals import Totals
from workbench.services.telemetry import collector
from workbench.services.telemetry.collector import Gauge, RetryLaterError, TooLargeError
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

TASK_ENDS = ("task.completed", "task.failed", "task.cancelled")
ATTEMPT_ENDS = (*TASK_ENDS, "task.retried", "task.expired", "task.released", "task.deferred")
CALL_ENDS = ("tool.completed", "tool.abandoned", "tool.refused")
KINDS = json.dumps([*ATTEMPT_ENDS, *CALL_ENDS])
EVENTS = 5_000
"""Events that are looked through at a time."""
OFF_SECONDS = 3_600.0
"""When it is looked again whether there is a collector: the settings of a process do not change."""
BASE_SECONDS, CAP_SECONDS = 2.0, 300.0
"""The pause before a collector that is away is told again; it doubles each time."""
METRIC_SECONDS = 15
LOOK_SECONDS = 0.1
"""The pause between looks at what is still to be told."""
LISTED = 1_000
"""Spans of requests, and of calls, that a list of a task's spans has."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the collector is told next.

    Args:
        event_id, spending_id: up to where it goes.
        more: whether there is more after it.
    """

    spans: Sequence[Span]
    requests: Sequence[Row]
    event_id: int
    spending_id: int
    more: bool


@duty("telling the collector", lambda settings: settings.telemetry_seconds, share=0.1, once=True)
async def export(ctx: Ctx) -> float | None:
    """Tell the collector what it has not been told."""
    ctx = ctx.of(SYSTEM)
    try:
        address = collector.endpoint(ctx)
        if address is None:
            return OFF_SECONDS
        place, most = await _place(ctx), ctx.settings.max_telemetry_spans
        collector.require_installed()
        while most := await _tell_spans(ctx, address, place, most):
            place = await _place(ctx)
        await _tell_metrics(ctx, address)
    except RetryLaterError as error:
        return await _failed(ctx, error.error, error.seconds)
    except Unavailable as error:
        return await _failed(ctx, error, None)
    return None


async def _place(ctx: Ctx) -> Row:
    """How far the collector has been told; the first time, up to now."""
    row = await ctx.read(lambda tx: tx.one(SQL.place))
    if row is None:
        seed = secrets.token_hex(16)
        await ctx.write(lambda tx: tx.run(SQL.begin, seed=seed, now=tx.now))
        row = await ctx.read(lambda tx: tx.one(SQL.place))
    assert row is not None
    return row


async def _tell_spans(ctx: Ctx, address: str, place: Row, most: int) -> int:
    """Send the next spans, about `most`, and note up to where; how many to send next.

    Raises:
        RetryLaterError, Unavailable: see `collector.send`.
    """
    batch = await ctx.read(lambda tx: _next(tx, ctx, place, most))
    refused: str | None = None
    if batch.spans:
        content = await asyncio.to_thread(_encoded, ctx, batch.spans)
        try:
            refused = await collector.send(ctx, address, "traces", content)
        except TooLargeError:
            if most > 1:
                return most // 2
            refused = "it is too large for it"
    elif not batch.more:
        return 0
    totals = Totals(place["totals"])
    totals.add(batch.requests)
    error = _refusal(refused) if refused else None
    values = {
        "event_id": batch.event_id,
        "spending_id": batch.spending_id,
        "totals": totals.text(),
        "spans": len(batch.spans),
        "refused": 0 if refused is None else len(batch.spans),
        "event_before": place["event_id"],
        "spending_before": place["spending_id"],
        "code": error.code if error else None,
        "error": ctx.secrets.masked(error.message) if error else None,
    }
    if error:
        log.warning("%s: %s", error.code, values["error"])
    advanced = await ctx.write(lambda tx: tx.run(SQL.advance, values, now=tx.now))
    return most if batch.more and advanced else 0


def _refusal(said: str) -> Unavailable:
    text = f"The collector did not take what it was told: {said}. Look at its log; it is not told of that again."
    return Unavailable("TELEMETRY_REFUSED", text)


def _encoded(ctx: Ctx, spans: Sequence[Span]) -> bytes:
    """Spans without secrets, as they are sent. Blocks."""
    masked = [
        Span(
            **{name: getattr(span, name) for name in Span.__slots__}
            | {"name": ctx.secrets.masked(span.name), "attributes": ctx.secrets.masked(dict(span.attributes))}
        )
        for span in spans
    ]
    return collector.encode_spans(masked, _resource(ctx))


def _resource(ctx: Ctx) -> dict[str, Attribute]:
    return {"workbench.project": ctx.settings.project.name}


def _next(tx: Reader, ctx: Ctx, place: Row, limit: int) -> _Batch:
    """The next spans, about so many: of requests, and of what the next events end."""
    ids = SpanIds(place["seed"])
    requests = tx.all(SQL.requests, after=place["spending_id"], limit=limit)
    found = [rules.of_request(ids, row) for row in requests]
    until = min(place["last_event"], place["event_id"] + EVENTS)
    left = max(1, limit - len(found))
    ends = tx.all(SQL.ends, after=place["event_id"], until=until, kinds=KINDS, limit=left)
    if len(ends) == left:
        until = ends[-1]["id"]
    for event in ends:
        found += _ended(tx, ctx, ids, event)
    spending_id = requests[-1]["id"] if requests else place["spending_id"]
    more = until < place["last_event"] or len(requests) == limit
    return _Batch(found, requests, until, spending_id, more)


def _ended(tx: Reader, ctx: Ctx, ids: SpanIds, event: Row) -> list[Span]:
    """The spans that end with an event."""
    content, key = ctx.settings.telemetry_content, event["subject"].partition(":")[2]
    if event["kind"] in CALL_ENDS:
        values = {"id": key, "content": int(content), "shown": ctx.settings.tool_shown_chars}
        row = tx.one(SQL.call, values)
        return [rules.of_call(ids, row, content=content)] if row else []
    task_id, found = int(key), []
    rows = tx.all(SQL.attempts, task_id=task_id, at=event["at"])
    found += [rules.of_attempt(ids, row) for row in rows]
    if event["kind"] in TASK_ENDS:
        row = tx.one(SQL.task, task_id=task_id, subject=event["subject"], event_id=event["id"])
        if row is not None:
            status = event["kind"].removeprefix("task.")
            ended = {**row, "at": event["at"], "event_id": event["id"], "status": status}
            found.append(rules.of_task(ids, ended, content=content))
    return found


async def _tell_metrics(ctx: Ctx, address: str) -> None:
    """Tell of the sums, unless that was just done.

    Raises:
        RetryLaterError, Unavailable: see `collector.send`.
    """
    place, now = await _place(ctx), ctx.store.now()
    if now - place["metrics_at"] < METRIC_SECONDS * SECOND:
        return
    gauges = await ctx.read(_gauges)
    series = Totals(place["totals"]).series()
    content = await asyncio.to_thread(
        collector.encode_metrics, series, gauges, place["since"], max(now, place["since"]), _resource(ctx)
    )
    refused = await collector.send(ctx, address, "metrics", content)
    await ctx.write(lambda tx: tx.run(SQL.told_metrics, now=tx.now), durable=False)
    if refused is not None:
        raise _refusal(refused)


def _gauges(tx: Reader) -> list[Gauge]:
    running = tx.one(SQL.agents)
    tasks = [
        Gauge("workbench.tasks", "{task}", row["tasks"], {"workbench.task.status": row["status"]})
        for row in tx.all(SQL.states)
    ]
    return [*tasks, Gauge("workbench.agents.running", "{agent}", running["running"] if running else 0, {})]


async def _failed(ctx: Ctx, error: WorkbenchError, seconds: float | None) -> float:
    """Note why the collector could not be told, in the log only if that is new; when it is told again, in seconds."""
    message = ctx.secrets.masked(error.message)
    before = await ctx.read(lambda tx: tx.one(SQL.place))
    if before is None or before["error_code"] != error.code:
        log.warning("%s: %s", error.code, message)
    await ctx.write(lambda tx: tx.run(SQL.fail, code=error.code, error=message, now=tx.now), durable=False)
    pause = BASE_SECONDS * 2.0 ** min(before["failures"] if before else 0, 32)
    return min(max(pause, seconds or 0.0), CAP_SECONDS)


class Collector(Wire):
    """A collector, and what it has been told. `behind`: ends and requests to models that it has not been told of.
    `spans` were sent, `refused` of them in requests that it did not take whole. `error_code`, `error`: why it could
    not be told last; null: it could.
    """

    address: str
    behind: int
    spans: int
    refused: int
    told_at: Micros | None
    failed_at: Micros | None
    error_code: str | None
    error: str | None


class Telemetry(Wire):
    """The collector that is set, if one is."""

    SHOWN: ClassVar = Columns(
        "collectors",
        "address=collector spans behind refused told_at=told error",
        "No collector is set: telemetry_endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT.",
    )

    collectors: list[Collector]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("telemetry status"))
async def get_telemetry(ctx: Ctx) -> Telemetry:
    """Show what the OpenTelemetry collector has been told, and why not if it could not be.

    Raises:
        Unavailable: ``TELEMETRY_MISSET``.
    """
    address = collector.endpoint(ctx)
    if address is None:
        return Telemetry(collectors=[])
    row = await ctx.read(lambda tx: tx.one(SQL.behind, kinds=KINDS))
    said: dict[str, Any] = {name: row[name] if row else None for name in ("failed_at", "error_code", "error")}
    counts = {name: row[name] if row else 0 for name in ("behind", "spans", "refused")}
    told_at = row["exported_at"] if row else None
    return Telemetry(collectors=[Collector(address=address, told_at=told_at, **counts, **said)])


@op(allow=Level.OPERATOR, tool=False)
async def flush_telemetry(ctx: Ctx) -> Telemetry:
    """Wait until the collector has got all that has ended, or is out of reach.

    For a server that ends with the piece of work that it was started for.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(ctx.settings.telemetry_seconds + ctx.settings.telemetry_answer_seconds):
            while any(one.behind and one.error_code is None for one in (await get_telemetry(ctx)).collectors):
                await asyncio.sleep(LOOK_SECONDS)
    return await get_telemetry(ctx)


class TaskSpan(Wire):
    """A span of a task. `of`: task, attempt, request or call; `name`: its number or id there. `ended`: false if it is
    sent later, when it ends."""

    of: str
    name: str
    trace_id: str
    span_id: str
    ended: bool


class TaskSpans(Wire):
    """The spans of a task, as the collector has them."""

    SHOWN: ClassVar = Columns("spans", "of name trace_id=trace span_id=span ended", "The task has no spans.")

    spans: list[TaskSpan]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("telemetry spans TASK_ID"))
async def list_spans(ctx: Ctx, task_id: TaskId) -> TaskSpans:
    """List the ids that the spans of a task, its attempts, requests and calls have at the collector.

    Each span has the ids of the task and the attempt in the attributes `workbench.task.id` and `workbench.attempt`.

    Raises:
        NotFound: ``NO_TELEMETRY``: no collector has been told yet. ``TASK_NOT_FOUND``.
    """

    def question(tx: Reader) -> TaskSpans:
        place = tx.one(SQL.place)
        if place is None:
            raise NotFound("NO_TELEMETRY", "No collector has been told of anything. Set telemetry_endpoint.")
        task = tx.one(SQL.task, task_id=task_id, subject=f"task:{task_id}", event_id=place["last_event"] + 1)
        if task is None:
            raise NotFound("TASK_NOT_FOUND", f"There is no task {task_id}.")
        ids = SpanIds(place["seed"])
        about = {"task_id": task_id, "limit": LISTED}
        found = [("task", str(task_id), ids.task(task_id), bool(task["ended_before"]))]
        found += [
            (
                "attempt",
                f"{task_id}.{row['attempt']}",
                ids.attempt(task_id, row["attempt"]),
                row["ended_at"] is not None,
            )
            for row in tx.all(SQL.spans_of_attempts, about)
        ]
        found += [("request", str(row["id"]), ids.request(row), True) for row in tx.all(SQL.spans_of_requests, about)]
        found += [
            ("call", row["id"], ids.call(row), row["ended_at"] is not None) for row in tx.all(SQL.spans_of_calls, about)
        ]
        return TaskSpans(
            spans=[
                TaskSpan(of=of, name=name, trace_id=span.trace_hex, span_id=span.span_hex, ended=ended)
                for of, name, span, ended in found
            ]
        )

    return await ctx.read(question)
