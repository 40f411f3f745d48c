"""What the project did within the last minutes or hours, as charts show it.

Every question goes through an index to what happened in the window, and lists are capped: the answer costs the same
after a year. For questions about all of the past there are the views and reports of `workbench.analytics`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from pydantic import Field

from workbench.model import SECOND, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules import activity
from workbench.rules.activity import Window
from workbench.store.base import Reader, Row
from workbench.store.queries import Query, beside

SQL = beside(__file__)

STREAMED = 300
"""The most attempts of each kind, under way and ended."""
LISTED = 50
"""The most agents, tools and approvals of each kind."""
CALLS = 5_000
"""The newest calls of tools, and answers of models, that are counted."""


class Interval(Wire):
    """What happened in an interval; `running` and `waiting` are the tasks at its end, claimed and not.

    `completed`, `failed` (also by an expired lease) and `other` (released, cancelled) count attempts that ended.
    """

    start: Micros
    completed: int
    failed: int
    other: int
    running: int
    waiting: int
    answers: int
    input_tokens: int
    output_tokens: int


class BusyAgent(Wire):
    """How busy an agent was: `share` is that of its time in the window, since it registered, in which it held tasks."""

    agent_id: str
    persona_id: str | None
    attempts: int
    busy_seconds: float
    share: float


class StreamedAttempt(Wire):
    """An attempt; `outcome` is null while it is under way."""

    task_id: int
    task: str
    attempt: int
    agent_id: str
    claimed_at: Micros
    ended_at: Micros | None
    outcome: str | None


class WaitingQuestion(Wire):
    """An approval that waits, or was decided in the window, and how long it has waited."""

    id: int
    kind: str
    requester: str
    status: str
    waited_seconds: float


class ToolTimes(Wire):
    """The calls of a tool; milliseconds of those that ended, null without one. `failed` includes interrupted ones."""

    tool: str
    calls: int
    failed: int
    median_ms: float | None
    p95_ms: float | None


class Totals(Wire):
    """All that happened in a window, of which the lists have only some.

    `attempts` were made by `agents` at `tasks`; `completed` and `failed` (also by an expired lease) ended so, and the
    others are under way, or were released or cancelled. `share` is how busy the `present` agents were. The times are of
    decisions by a person; `decided_otherwise` are the rest: rules, starts, withdrawals.
    """

    attempts: int
    tasks: int
    agents: int
    completed: int
    failed: int
    present: int
    share: float
    decided: int
    mean_seconds: float | None
    longest_seconds: float | None
    decided_otherwise: int
    calls: int
    answers: int


class Activity(Wire):
    """What happened in a window of 60 intervals.

    `attempts` and `approvals` are the latest, `tools` those called most; of the calls of tools and the answers of
    models the latest 5,000 count. `totals` counts all of them. `pending` approvals wait now. `cost_usd` is null if no
    provider reported a cost.
    """

    since: Micros
    until: Micros
    interval_seconds: float
    totals: Totals
    intervals: list[Interval]
    agents: list[BusyAgent]
    attempts: list[StreamedAttempt]
    approvals: list[WaitingQuestion]
    pending: int
    tools: list[ToolTimes]
    cost_usd: float | None
    unpriced: int


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_activity(
    ctx: Ctx,
    minutes: Annotated[int, Field(ge=1, le=10_080, description="Length of the window, which ends now.")] = 60,
) -> Activity:
    """Get what happened in the last minutes: throughput, queue, agents, attempts, approvals, tools, tokens."""
    window = Window.ending(ctx.store.now(), minutes * 60 * SECOND)
    return await ctx.read(lambda tx: _activity(tx, window))


def _activity(tx: Reader, window: Window) -> Activity:
    now = tx.one(SQL.now)
    assert now is not None
    agents = _agents(tx, window)
    answers = {row["place"]: row for row in _rows(tx, SQL.answers, window, CALLS)}
    costs = [row["cost_usd"] for row in answers.values() if row["cost_usd"] is not None]
    return Activity(
        since=window.since,
        until=window.now,
        interval_seconds=window.width / SECOND,
        totals=_totals(tx, window, agents),
        intervals=_intervals(tx, window, now, answers),
        agents=agents[:LISTED],
        attempts=[StreamedAttempt(**row) for row in _rows(tx, SQL.stream, window, STREAMED)],
        approvals=_approvals(tx, window),
        pending=now["asked"],
        tools=_tools(_rows(tx, SQL.calls, window, CALLS)),
        cost_usd=sum(costs) if costs else None,
        unpriced=sum(row["unpriced"] for row in answers.values()),
    )


def _totals(tx: Reader, window: Window, agents: Sequence[BusyAgent]) -> Totals:
    [attempts], [by_person], [decided_otherwise], [counts] = (
        _rows(tx, query, window) for query in (SQL.totals, SQL.answered, SQL.decided_otherwise, SQL.counted)
    )
    decided = by_person["decided"]
    return Totals(
        **attempts,
        **counts,
        decided=decided,
        mean_seconds=by_person["waited"] / decided / SECOND if decided else None,
        longest_seconds=by_person["longest"] / SECOND if decided else None,
        decided_otherwise=decided_otherwise["number"],
        present=len(agents),
        share=sum(agent.share for agent in agents) / len(agents) if agents else 0.0,
    )


def _rows(tx: Reader, query: Query, window: Window, most: int = LISTED) -> list[Row]:
    """The answer to a question about a window."""
    parameters = {
        "since": window.since,
        "width": window.width,
        "now": window.now,
        "most": most,
        "first": str(UUID(int=window.since // 1_000 << 80)),  # ids that are UUIDs of version 7 sort by time
    }
    return tx.all(query, parameters)


def _count(tx: Reader, query: Query, window: Window) -> list[int]:
    return activity.placed({row["place"]: row["number"] for row in _rows(tx, query, window)})


def _intervals(tx: Reader, window: Window, now: Row, answers: dict[int, Row]) -> list[Interval]:
    ended: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for row in _rows(tx, SQL.ended, window):
        of_kind = ended[_kind(row["outcome"])]
        of_kind[row["place"]] = of_kind.get(row["place"], 0) + row["number"]
    completed, failed, other = (activity.placed(ended[kind]) for kind in ("completed", "failed", "other"))
    stopped = [sum(numbers) for numbers in zip(completed, failed, other, strict=True)]
    running = activity.open_at_ends(now["running"], _count(tx, SQL.claimed, window), stopped)
    unfinished = activity.open_at_ends(now["open"], _count(tx, SQL.created, window), _count(tx, SQL.finished, window))
    nothing = {"answers": 0, "input_tokens": 0, "output_tokens": 0}
    return [
        Interval(
            start=start,
            completed=completed[place],
            failed=failed[place],
            other=other[place],
            running=running[place],
            waiting=max(0, unfinished[place] - running[place]),
            **{name: answers.get(place, nothing)[name] or 0 for name in nothing},
        )
        for place, start in enumerate(window.starts)
    ]


def _kind(outcome: str | None) -> str:
    if outcome in ("failed", "expired"):
        return "failed"
    return "completed" if outcome == "completed" else "other"


def _agents(tx: Reader, window: Window) -> list[BusyAgent]:
    """The busiest agents, and workers that have done nothing."""
    busy = _rows(tx, SQL.busy, window)
    busy_ids = {row["agent_id"] for row in busy}
    idle = [row for row in _rows(tx, SQL.present, window) if row["agent_id"] not in busy_ids]
    rows = [*busy, *({**row, "attempts": 0, "busy": 0} for row in idle)]
    return [
        BusyAgent(
            agent_id=row["agent_id"],
            persona_id=row["persona_id"],
            attempts=row["attempts"],
            busy_seconds=row["busy"] / SECOND,
            share=round(activity.share(row["busy"], window, row["registered_at"]), 4),
        )
        for row in rows
    ]


def _approvals(tx: Reader, window: Window) -> list[WaitingQuestion]:
    """Those that wait, the oldest first; then those that were decided, the latest first."""
    rows = [*_rows(tx, SQL.pending, window), *_rows(tx, SQL.decided, window)]
    return [
        WaitingQuestion(
            **{name: row[name] for name in ("id", "kind", "requester", "status")},
            waited_seconds=max(0, (row["decided_at"] or window.now) - row["created_at"]) / SECOND,
        )
        for row in rows
    ]


def _tools(calls: Sequence[Row]) -> list[ToolTimes]:
    """The tools, those that were called most first."""
    of_tool: defaultdict[str, list[Row]] = defaultdict(list)
    for row in calls:
        of_tool[row["tool"]].append(row)
    tools = sorted(of_tool.items(), key=lambda item: (-len(item[1]), item[0]))[:LISTED]
    return [_times(tool, rows) for tool, rows in tools]


def _times(tool: str, calls: Sequence[Row]) -> ToolTimes:
    spent = sorted(row["spent"] for row in calls if row["spent"] is not None)
    median, slow = activity.quantile(spent, 0.5), activity.quantile(spent, 0.95)
    return ToolTimes(
        tool=tool,
        calls=len(calls),
        failed=sum(row["state"] in ("failed", "interrupted") for row in calls),
        median_ms=None if median is None else median / 1_000,
        p95_ms=None if slow is None else slow / 1_000,
    )
