"""What is spent, summed up as it is booked: by project, plan, session, persona, run, and task with its subtasks.

A request to a model, and an attempt at a task, counts in every scope that it is in. The sums are in the transaction
that books it, so what a booking costs does not depend on how much was booked before; they equal those of the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.rules.models.usage import ModelUsage
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
PROJECT = "project"
COLUMNS = ("plan", "session_id", "persona_id", "run_id")


@dataclass(frozen=True, slots=True)
class Place:
    """What a request or an attempt is for, and the scopes that count it."""

    plan: str | None
    session_id: str | None
    persona_id: str | None
    run_id: int | None
    scopes: tuple[str, ...]

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that keep it."""
        return {name: getattr(self, name) for name in COLUMNS}


def place(
    tx: Reader, task_id: int | None, agent: str | None, at: int | None = None, run_id: int | None = None
) -> Place:
    """What a request or an attempt of an agent is for.

    Args:
        agent: its internal id; None: the operator.
        at: when it is made, in microseconds; None: now.
        run_id: its run; None: that which is going on.
    """
    values = {"task_id": task_id, "agent": agent, "at": tx.now if at is None else at, "run_id": run_id}
    rows = tx.all(SQL.place, values)
    return Place(**{name: rows[0][name] for name in COLUMNS}, scopes=tuple(row["scope"] for row in rows))


def scopes_of_attempt(tx: Reader, task_id: int) -> set[str]:
    """The scopes that count the attempt at a task that is under way; none if there is none."""
    return {row["scope"] for row in tx.all(SQL.of_attempt, task_id=task_id)}


def book(tx: Tx, scopes: Sequence[str], usage: ModelUsage, cost_usd: float | None) -> None:
    """Count a request in scopes."""
    tokens = (usage.input, usage.cached, usage.cache_write, usage.cache_write_hour, usage.output)
    unpriced = int(cost_usd is None and usage.input is not None)
    values = {"tokens": sum(count or 0 for count in tokens), "usd": cost_usd or 0.0, "unpriced": unpriced}
    tx.run(SQL.book, values, scopes=json.dumps(scopes))


def begin(tx: Tx, scopes: Sequence[str]) -> None:
    """Count an attempt that begins in scopes."""
    tx.run(SQL.begin, scopes=json.dumps(scopes), now=tx.now)


def end(tx: Tx, task_id: int) -> None:
    """Count the time of the attempt at a task that ends now, if there is one, in the scopes in which it began."""
    tx.run(SQL.end, task_id=task_id, now=tx.now)


def move(tx: Tx, tasks: Sequence[int | None]) -> list[str]:
    """Sum up anew what was spent by tasks, and by all above them, after other tasks came to them or left them.

    Returns:
        Their scopes.
    """
    above = {row["id"] for task in tasks if task for row in tx.all(SQL.above, task_id=task)}
    for task in above:
        requests = tx.one(SQL.requests_below, id=task)
        assert requests is not None
        tx.run(SQL.put, dict(requests) | _worked(tx.all(SQL.attempts_below, id=task)), scope=f"task:{task}")
    return [f"task:{task}" for task in above]


def _worked(attempts: Sequence[Row]) -> dict[str, int]:
    """The sums of attempts, oldest first."""
    under_way = sum(row["ended_at"] is None for row in attempts)
    busy = start = until = 0
    for row in attempts:
        if row["claimed_at"] > until:
            busy, start = busy + until - start, row["claimed_at"]
            until = start
        if row["ended_at"] is None:
            break
        until = max(until, row["ended_at"])
    if not under_way:
        busy, start = busy + until - start, 0
    return {"attempts": len(attempts), "under_way": under_way, "since": start, "busy_us": busy}


def amounts(row: Mapping[str, Any], now: int) -> dict[str, Any]:
    """What is spent, from a row of sums: `tokens`, `usd`, `attempts` and `seconds`."""
    worked = row["busy_us"] + (max(now - row["since"], 0) if row["under_way"] else 0)
    # sums of 0.1 are to reach 1.0
    return {
        "tokens": row["tokens"],
        "usd": round(row["usd"], 9),
        "attempts": row["attempts"],
        "seconds": worked / 1_000_000,
    }
