"""Decides when a client reconnects after a break, and when it gives up. No socket, no clock of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Iterator

from workbench.client.messages import no_server
from workbench.errors import TooMany, WorkbenchError, from_dict

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0

Pauses = Iterator[float]


def backoff(chance: Callable[[], float] = random.random) -> Pauses:
    """Pauses between attempts, in seconds, without end: each twice the one before, less up to half of it.

    Args:
        chance: uniform in [0, 1), so that many clients do not come back at once.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause * (1 - chance() / 2)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


class RetryPolicy:
    """Decides after each failure whether to connect again.

    A server that was never useful, or that refuses this client, is not tried again. Another is, until no connection
    has been useful for `patience` seconds.

    Args:
        clock: seconds that only go forward.
        pauses: returns the pauses between attempts; they begin anew after a useful connection.
    """

    def __init__(self, patience: float, clock: Callable[[], float], pauses: Callable[[], Pauses]) -> None:
        self._patience = patience
        self._clock = clock
        self._new_pauses = pauses
        self._pauses = pauses()
        self._away_since: float | None = None

    def met(self) -> None:
        """There is a server, even if this connection has not been useful."""
        if self._away_since is None:
            self._away_since = self._clock()

    def was_of_use(self) -> None:
        """A connection ended on which the client had been admitted, or had waited for that."""
        self._away_since = self._clock()
        self._pauses = self._new_pauses()

    def fatal(self, failure: Exception) -> Exception | None:
        """The error to give up with; None to try again. (`process_exception` of websockets' `connect`.)"""
        refusal = _refusal(failure)
        if refusal is not None and not is_temporary(refusal):
            return refusal
        if self._away_since is None or self._clock() - self._away_since > self._patience:
            return refusal or no_server(failure)
        return None

    def pauses(self) -> Generator[float, None, None]:
        """The pauses from now on. (`reconnect_delays` of websockets' `connect`.)"""
        while True:
            yield next(self._pauses)


def is_temporary(error: WorkbenchError) -> bool:
    """Whether the same request may succeed later."""
    return error.status >= 500 or isinstance(error, TooMany)


def _refusal(failure: Exception) -> WorkbenchError | None:
    """The error in the server's answer to a WebSocket handshake; None when the failure is something else."""
    if isinstance(failure, WorkbenchError):
        return failure
    body = getattr(getattr(failure, "response", None), "body", None)
    try:
        error = json.loads(body or b"")["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return from_dict(error) if isinstance(error, dict) and "code" in error else None
