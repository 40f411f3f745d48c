"""Ends leases that have run out, and pauses before retries; tells when the host's clock was set."""

from __future__ import annotations

import logging
from collections.abc import Callable

from workbench.model import SECOND
from workbench.ops import SYSTEM, Ctx
from workbench.services.tasks.attempts import Failure, after_failure
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

log = logging.getLogger(__name__)


STALL = 5 * SECOND
"""The watch runs every quarter of a second: after such a pause, the server was stopped or had no time to run."""


class LeaseWatch:
    """Ends leases on time, even if the host's clock is set, or the server stands still and cannot renew them.

    Args:
        clock: the store's clock, in microseconds UTC.
        steady: a monotonic clock, in microseconds from any start; None if `clock` is never set.
    """

    def __init__(self, clock: Callable[[], int], steady: Callable[[], int] | None) -> None:
        self._clock = clock
        self._steady = steady
        self._ahead = self._ahead_at(clock())
        self._last = steady() if steady else 0

    async def end_due(self, ctx: Ctx) -> None:
        """End the leases and pauses that are over.

        If the clock was set since the last call, restart them first; if the server stood still, or could not reach its
        store, restart the leases.
        """

        def change(tx: Tx) -> int:
            ahead = self._ahead_at(tx.now)
            if was_set(self._ahead, ahead):
                log.warning("the clock was set by %+.0f s; leases are restarted", (ahead - self._ahead) / SECOND)
                restart_leases(tx)
                restart_pauses(tx)
            elif stalled:
                log.warning("the server or its store stood still for %.0f s; leases are restarted", stalled / SECOND)
                restart_leases(tx)
            expire(tx, ctx.settings, ctx.random, serving=serving)
            return ahead

        serving, began = ctx.local.server is not None, self._steady() if self._steady else 0
        stalled = began - self._last if serving and began - self._last > STALL else 0
        due = await ctx.store.read_inline(lambda tx: next_deadline(tx, serving=serving))
        now = self._clock()
        ahead = self._ahead_at(now)
        over = due is not None and due <= now
        clock_was_set = was_set(self._ahead, ahead)
        self._ahead = await ctx.of(SYSTEM).write(change) if over or clock_was_set or stalled else ahead
        if serving:
            self._last = began  # unless the store was away, and with it the heartbeats

    def _ahead_at(self, now: int) -> int:
        return now - self._steady() if self._steady else 0


def expire(tx: Tx, settings: Settings, random: Callable[[], float], *, serving: bool = True) -> int:
    """End the leases that ran out and the pauses that are over; return how many leases ended.

    Args:
        random: uniform in [0, 1); called for each lease, so that leases that end together are not retried together.
        serving: whether the servers run here. Without them, leases of agents with a running process do not end: such
            an agent cannot renew its lease while no server answers, and the next server takes it back.
    """
    ended = 0
    for row in tx.all(SQL.expired, now=tx.now, serving=int(serving)):
        ended += end_lease(tx, settings, row, random)
    for row in tx.all(SQL.rested, now=tx.now):
        end_pause(tx, row["task_id"], row["session_id"] or None)
    return ended


def overdue(tx: Reader) -> list[Row]:
    """The leases that have run out, also of agents whose process is said to run."""
    return tx.all(SQL.expired, now=tx.now, serving=1)


def end_lease(tx: Tx, settings: Settings, row: Row, random: Callable[[], float]) -> bool:
    """End one of `overdue`; False if its task is no longer held, as the failure of an earlier one may cancel it."""
    if not tx.one(SQL.is_held, task_id=row["id"]):
        return False
    after_failure(tx, settings, row, Failure("expired", "the lease ran out"), random())
    return True


def end_pause(tx: Tx, task_id: int, session: str | None) -> None:
    """Make a task claimable that pauses before its retry."""
    tx.run(SQL.wake, task_id=task_id)
    tx.emit("task.retry_ready", f"task:{task_id}", session=session)


def next_deadline(tx: Reader, *, serving: bool = True) -> int | None:
    """When the next lease (see `expire`) or pause ends, in microseconds UTC; None if there is none."""
    row = tx.one(SQL.next_deadline, serving=int(serving))
    at = row["at"] if row else None
    return None if at is None else int(at)


def restart_leases(tx: Tx) -> None:
    """Give every lease its full length again.

    Otherwise setting the host's clock forward would end all leases at once, and setting it back would keep them too
    long; and a server that stood still would end the leases of agents whose heartbeats wait to be read.
    """
    tx.run(SQL.mend_leases, now=tx.now)


def restart_pauses(tx: Tx) -> None:
    """End every pause, because the host's clock was set."""
    tx.run(SQL.mend_pauses, now=tx.now)


STEP = 2 * SECOND
"""More than a clock drifts between two readings."""


def was_set(ahead_before: int, ahead: int) -> bool:
    """Whether the host's clock was set between two readings.

    Args:
        ahead_before, ahead: how far it was ahead of a monotonic clock, in microseconds.
    """
    return abs(ahead - ahead_before) > STEP
