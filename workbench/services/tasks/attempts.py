"""Ends attempts without success: the task becomes claimable again, waits for a retry, or fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from workbench.model import TaskState
from workbench.rules.tasks import lifecycle
from workbench.services.tasks import dependencies
from workbench.services.tasks.rows import (
    end_attempt,
    reserve,
)
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def held_by(tx: Reader, agent: str) -> list[Row]:
    """The tasks that an agent (`agent_uid`) holds, those in progress first."""
    return tx.all(SQL.held_by, agent=agent)


def release_all(tx: Tx, agent: str, reason: str) -> None:
    """Release every task an agent holds (its process ended, or its admission was withdrawn)."""
    for row in held_by(tx, agent):
        put_back(tx, row, "released", reason)


def unreserve(tx: Tx, agent: str, reason: str) -> None:
    """Lift the reservations for an agent that will not return, so that others may claim the tasks."""
    for row in tx.all(SQL.reserved_for, agent=agent):
        reserve(tx, row["id"], None)
        data = {"assigned_agent_id": None, "reason": reason}
        tx.emit("task.reassigned", f"task:{row['id']}", session=row["session_id"], **data)


def put_back(tx: Tx, row: Row, outcome: str, reason: str) -> None:
    """Make a held task claimable again at once, without using up a retry."""
    tx.run(SQL.put_back, task_id=row["id"], not_before=None, retries=0, error=None)
    end_attempt(tx, row["id"], outcome, reason or None)
    tx.emit("task.released", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"], reason=reason)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed."""

    outcome: Literal["failed", "expired"]
    error: str
    error_class: str | None = None
    retryable: bool = True


def after_failure(tx: Tx, settings: Settings, row: Row, failure: Failure, jitter: float) -> None:
    """End a failed attempt: its task is retried after a pause, or fails.

    Args:
        jitter: uniform in [0, 1); varies the length of the pause.
    """
    end_attempt(tx, row["id"], failure.outcome, failure.error, failure.error_class)
    never = lifecycle.is_never_retried(failure.error_class, json.loads(row["no_retry"]))
    data = {"attempt": row["attempt"], "error": failure.error[:500], "error_class": failure.error_class}
    subject, session = f"task:{row['id']}", row["session_id"]
    retryable = failure.retryable and not never
    if lifecycle.after_failure(row["retry_count"], row["max_retries"], retryable) is TaskState.PENDING:
        wait = lifecycle.backoff(row["retry_count"], settings.retry_base_seconds, settings.retry_cap_seconds, jitter)
        tx.run(SQL.put_back, task_id=row["id"], not_before=tx.now + wait, retries=1, error=failure.error)
        kind = "task.retried" if failure.outcome == "failed" else "task.expired"
        tx.emit(kind, subject, session=session, **data, wait_us=wait)
    else:
        tx.run(SQL.give_up, task_id=row["id"], error=failure.error, now=tx.now)
        tx.emit("task.failed", subject, session=session, **data)
        dependencies.ended_badly(tx, row["id"])
