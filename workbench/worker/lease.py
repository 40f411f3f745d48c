"""The lease of a claimed task: renewed while its command runs, and not given up before it is known to be lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.errors import Refused, Unauthenticated, WorkbenchError
from workbench.worker.api import RETRY_SECONDS

LONGEST_TRY_SECONDS = 5.0
"""How long to wait for the answer to a heartbeat, unless a third of the lease is longer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that was claimed.

    Args:
        task: as the server gave it.
        asked_at: when it was claimed, on the event loop's clock: its lease began later.
    """

    task: Mapping[str, Any]
    asked_at: float

    @property
    def attempt(self) -> dict[str, Any]:
        """The arguments by which operations name the attempt."""
        return {"task_id": self.task["id"], "attempt": self.task["attempt"]}

    @property
    def lease_seconds(self) -> float:
        """How long the lease lasts from each renewal."""
        claimed, expires = (datetime.fromisoformat(self.task[name]) for name in ("claimed_at", "lease_expires_at"))
        return (expires - claimed).total_seconds()


class Lease:
    """The lease of one claim.

    Args:
        renew: renews it at the server; False if it is lost.
        every: seconds between renewals.
        server: an identifier of the running server; None if none runs that could end the lease.
    """

    def __init__(
        self,
        claim: HeldTask,
        renew: Callable[[], Awaitable[bool]],
        every: float,
        server: Callable[[], str | None] = lambda: "",
    ) -> None:
        self._renew = renew
        self._server = server
        self._seconds = claim.lease_seconds
        self._every = min(every, self._seconds / 3)
        self._ends_at = claim.asked_at + self._seconds
        self._failures = 0

    async def until_lost(self) -> str:
        """Renew the lease again and again; return why it is lost.

        A failed heartbeat is repeated as long as the lease lasts. By the event loop's clock, it lasts for its whole
        length from when its last renewal was asked for: nothing depends on how the clocks of two machines are set.
        Between two servers, it does not end: the next one renews it when it starts.
        """
        while True:
            await asyncio.sleep(min(self._pause(), self._remaining()))
            if self._remaining() <= 0 and self._server() is not None:
                return "it could not be renewed in time"
            if reason := await self._heartbeat():
                return reason

    async def _heartbeat(self) -> str | None:
        """Try once to renew the lease; why it is lost, if it is."""
        asked_at, server = _now(), self._server()
        try:
            async with asyncio.timeout(min(self._remaining(), max(LONGEST_TRY_SECONDS, self._seconds / 3))):
                if not await self._renew():
                    return "the server has given the task to another, or ended it"
        except (Unauthenticated, Refused) as error:
            return str(error)
        except (WorkbenchError, TimeoutError) as error:
            if isinstance(error, WorkbenchError) and error.code == "LEASE_LOST":
                return str(error)
            self._failures += 1
            if self._server() is None or self._server() != server:
                self._ends_at = _now() + self._seconds
            log.warning("a heartbeat failed: %s; the lease lasts for %.1f s", error or "no answer", self._remaining())
        except Exception:  # a heartbeat must not end because of a fault in itself
            self._failures += 1
            log.exception("a heartbeat failed; the lease lasts for %.1f s", self._remaining())
        else:
            self._failures, self._ends_at = 0, asked_at + self._seconds
        return None

    def _pause(self) -> float:
        if not self._failures:
            return self._every
        return min(self._every, RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS)) - 1])

    def _remaining(self) -> float:
        return max(0.0, self._ends_at - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()
