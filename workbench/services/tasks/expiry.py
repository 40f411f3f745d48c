"""What time alone does to tasks: leases run out, and pauses before a retry end."""

from __future__ import annotations

from workbench.services.tasks.attempts import Failure, after_failure
from workbench.settings import Settings
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def expire(tx: Tx, settings: Settings, random: float) -> int:
    """Send tasks whose lease ran out back, and wake those whose pause is over; how many leases ended."""
    ended = 0
    for row in tx.all(SQL.expired, now=tx.now):
        if tx.one(SQL.is_held, task_id=row["id"]):  # not cancelled by the end of one before it
            after_failure(tx, settings, row, Failure("expired", "the lease ran out"), random)
            ended += 1
    for row in tx.all(SQL.rested, now=tx.now):
        tx.run(SQL.wake, task_id=row["task_id"])
        tx.emit("task.retry_ready", f"task:{row['task_id']}", session=row["session_id"] or None)
    return ended


def next_deadline(tx: Reader) -> int | None:
    """When the next lease or pause ends, in microseconds UTC."""
    row = tx.one(SQL.next_deadline)
    at = row["at"] if row else None
    return None if at is None else int(at)


def mend_leases(tx: Tx) -> None:
    """The host's clock was set: every lease gets the whole time it was given, and every pause ends.

    Otherwise a step forward would end all leases at once, and a step back would keep them for too long.
    """
    tx.run(SQL.mend_leases, now=tx.now)
    tx.run(SQL.mend_pauses, now=tx.now)
