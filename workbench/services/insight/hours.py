"""What became of a plan hour by hour, for who looks in the morning: what was worked on, why nothing was, what happened.

All of it is derived from attempts and events. That the disk was full leaves no event by itself; it is noted here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from workbench.model import SECOND, Level, Micros, Wire
from workbench.ops import SYSTEM, Columns, Ctx, op
from workbench.ops.duties import duty
from workbench.rules import hours as rules
from workbench.rules.hours import Hour, Moment, Stretch
from workbench.services.tasks.board import TaskFilter, require_known
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

LONGEST_HOURS = 168
MOST_EVENTS = 50_000
"""The first events that count, from the beginning of the hours."""
REASON_LIMIT = 120
_HAPPENED = {
    "task.completed": "completed",
    "task.failed": "failed for good",
    "task.retried": "failed, tried again",
    "task.expired": "lease ended, tried again",
    "task.deferred": "put off",
    "task.released": "given back",
    "task.cancelled": "cancelled",
    "agent.exited": "agent ended",
    "agent.terminated": "agent was ended",
    "agent.restarted": "agent started again",
    "agent.fell_back": "agent fell back to another profile",
    "agent.silent": "agent silent",
    "agent.heard": "agent heard again",
    "agent.reattached": "agent taken back",
    "hold.begun": "held",
    "hold.ended": "no longer held",
    "budget.nearly": "budget nearly used up",
    "budget.exceeded": "budget used up",
    "worktree.integrated": "merged",
    "worktree.refused": "not merged",
    "server.returned": "server started again",
    "store.was_full": "disk was full",
}
_GONE = "no server ran"
FOUND_WITHIN = 30 * SECOND
"""How long a server that starts takes at most to find what has ended meanwhile."""
_STARTS, _ENDS = "agent.spawned", ("agent.exited", "agent.terminated", "agent.survived")


class PlanHour(Wire):
    """An hour, or several in which nothing happened and the same was done.

    `worked_seconds` is how long an attempt at one of `tasks` was under way, `idle` why none was at other times, and
    `happened` what happened, each with whom or what it happened to. `unexplained_seconds`: nothing was under way,
    although agents ran and nothing was waited for.
    """

    start: Micros
    end: Micros
    worked_seconds: float
    tasks: list[int]
    idle: list[str]
    happened: list[str]
    unexplained_seconds: float


class PlanHours(Wire):
    """The hours since work on a plan began, until now, or until the plan ended."""

    SHOWN: ClassVar = Columns("hours", "start end tasks=worked_on idle=why_not happened", "Work has not begun.")

    plan: str
    hours: list[PlanHour]


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_plan_hours(
    ctx: Ctx,
    plan: Annotated[str, Field(description="The plan's name; see list_plans.")],
    hours: Annotated[
        int, Field(ge=1, le=LONGEST_HOURS, description="At most so many hours before its end, or now.")
    ] = 24,
) -> PlanHours:
    """Get what became of a plan hour by hour: what was worked on, why at other times nothing was, and what happened."""
    now, longest = ctx.store.now(), hours * rules.HOUR

    def question(tx: Reader) -> list[Hour]:
        require_known(tx, ctx.caller, TaskFilter(plan=plan))
        return _hours(tx, plan, now, longest)

    told = await ctx.read(question)
    return PlanHours(plan=plan, hours=[_shown(hour) for hour in told])


@duty("noting that the disk was full", 1.0)
async def note_full_disk(ctx: Ctx) -> None:
    """Record from when until when nothing could be stored, once something can be."""
    since, until = ctx.store.stats().full or (0, None)
    if until is None:
        return

    def change(tx: Tx) -> None:
        noted = tx.one(SQL.noted)
        if noted is None or json.loads(noted["data"])["since"] != since:
            tx.emit("store.was_full", "store:project", since=since, until=until)

    await ctx.of(SYSTEM).write(change)


def _hours(tx: Reader, plan: str, now: int, longest: int) -> list[Hour]:
    attempts, bounds = tx.all(SQL.work, plan=plan), tx.one(SQL.bounds, plan=plan)
    is_open = tx.all(SQL.open, plan=plan)[0]["number"]
    if not attempts or bounds is None:
        return []
    until = now if is_open else _end(tx, plan, bounds)
    since = max(attempts[0]["claimed_at"], until - longest)
    window = {"since": since, "until": until}
    events = tx.all(SQL.events, window, first=bounds["first"], most=MOST_EVENTS)
    rows = tx.all(SQL.tasks, plan=plan)
    names = {f"task:{row['id']}": str(row["id"]) for row in rows}
    names |= {f"worktree:{row['worktree']}": row["worktree"] for row in rows}
    for agent in tx.all(SQL.agents):
        names |= {f"agent:{agent['id']}": agent["name"], f"agent:{agent['name']}": agent["name"]}
    told = _told([event for event in events if _concerns(event["subject"], plan, names)], until)
    work = [_attempt(row, told, until) for row in attempts]
    reasons = [
        *told,
        *_questions([row for row in tx.all(SQL.questions, window) if _concerns(row["subject"], plan, names)]),
        *rules.gaps(since, until, _agents(events, tx.all(SQL.processes, since=since), since, until), "no agent ran"),
    ]
    return rules.by_hour(since, until, work, reasons, _moments(events, names))


def _end(tx: Reader, plan: str, bounds: Row) -> int:
    """When a plan ended: with the last event of its tasks, or the merge that followed."""
    [merged] = tx.all(SQL.merged, plan=plan, last=bounds["last"], until=bounds["ended"] + rules.HOUR)
    return int(merged["at"] or bounds["ended"])


def _attempt(row: Row, told: Iterable[Stretch], until: int) -> Stretch:
    """An attempt; one that ended while no server ran was found so by the next, and may have ended when that began."""
    start, end = row["claimed_at"], row["ended_at"] or until
    gone = next((one for one in told if one.text == _GONE and start < one.end <= end <= one.end + FOUND_WITHIN), None)
    return Stretch(
        start, end if gone is None or row["outcome"] != "released" else max(gone.start, start), str(row["task_id"])
    )


def _told(events: Iterable[Row], until: int) -> list[Stretch]:
    """The reasons to do nothing that events tell, the more telling ones first."""
    gone, full, held, pauses = [], [], [], []
    holds: dict[str, tuple[int, int, str]] = {}
    for event in events:
        at, data = event["at"], json.loads(event["data"])
        match event["kind"]:
            case "server.returned":
                gone.append(Stretch(data["since"], at, _GONE))
            case "store.was_full":
                full.append(Stretch(data["since"], data["until"], "the disk was full"))
            case "hold.begun":
                reason = str(data["reason"]).partition("\n")[0][:REASON_LIMIT]
                scope = event["subject"].removeprefix("hold:")
                since = holds.pop(scope)[0] if scope in holds else at
                holds[scope] = since, data["until"] or until, f"{scope} was held: {reason}"
            case "hold.ended":
                if begun := holds.pop(event["subject"].removeprefix("hold:"), None):
                    held.append(Stretch(begun[0], at, begun[2]))
            case "task.retried" | "task.expired":
                text = f"task {event['subject'].removeprefix('task:')} paused before it was tried again"
                pauses.append(Stretch(at, at + data["wait_us"], text))
    held += [Stretch(since, min(ends, until), text) for since, ends, text in holds.values()]
    return [*gone, *full, *held, *pauses]


def _concerns(subject: str, plan: str, names: Mapping[str, str]) -> bool:
    """Whether what is about a subject may hold up a plan: not if it is about another plan, its tasks or worktrees.

    Args:
        names: the tasks and worktrees of the plan among others, by their subjects.
    """
    about, _, name = subject.partition(":")
    match about:
        case "task" | "worktree":
            return subject in names
        case "plan":
            return name == plan
        case "budget":
            return _concerns(name, plan, names)
    return True


def _questions(rows: Iterable[Row]) -> list[Stretch]:
    """Questions that waited for the person."""
    ever = max((row["decided_at"] or row["created_at"] for row in rows), default=0) + LONGEST_HOURS * rules.HOUR
    return [
        Stretch(row["created_at"], row["decided_at"] or ever, f"approval {row['id']} waited for you") for row in rows
    ]


def _agents(events: Iterable[Row], processes: Iterable[Row], since: int, until: int) -> list[Stretch]:
    """When processes of agents ran."""
    running = {f"agent:{row['agent_id']}": max(row["spawned_at"], since) for row in processes}
    stretches = [Stretch(running[f"agent:{row['agent_id']}"], row["ended_at"] or until, "") for row in processes]
    begun: dict[str, int] = {}
    for event in events:
        if event["kind"] == _STARTS:
            begun[event["subject"]] = event["at"]
        elif event["kind"] in _ENDS:
            stretches.append(Stretch(begun.pop(event["subject"], since), event["at"], ""))
    return stretches


def _moments(events: Iterable[Row], names: dict[str, str]) -> list[Moment]:
    """What happened to the plan's tasks and worktrees, and to everything that they share with others."""
    moments = []
    for event in events:
        noun, _, whom = event["subject"].partition(":")
        what = _HAPPENED.get(event["kind"])
        if what is None or (noun in ("task", "worktree") and event["subject"] not in names):
            continue
        moments.append(Moment(event["at"], what, names.get(event["subject"], "" if whom == "project" else whom)))
    return moments


def _shown(hour: Hour) -> PlanHour:
    return PlanHour(
        start=hour.start,
        end=hour.end,
        worked_seconds=round(hour.worked / SECOND, 1),
        tasks=[int(task) for task in hour.tasks],
        idle=[f"{text} ({_minutes(length)})" for text, length in hour.waited if length >= SECOND],
        happened=[f"{what}: {_listed(whom)}" if any(whom) else what for what, whom in hour.happened],
        unexplained_seconds=round(hour.unexplained / SECOND, 1),
    )


def _listed(whom: Sequence[str]) -> str:
    counts = {name: whom.count(name) for name in whom}
    return ", ".join(name if number == 1 else f"{name} ({number} times)" for name, number in counts.items())


def _minutes(length: int) -> str:
    seconds = length // SECOND
    return (
        f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
    )
