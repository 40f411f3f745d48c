"""Sends a request again that failed before anything of its answer came. Each repetition is reported first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pydantic_ai import exceptions as ai
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel

from workbench.chat.failures import coded
from workbench.chat.frames import Retrying

LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for a longer wait gets no repetition; the error names the wait."""

TRANSIENT = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
    ai.ModelRequestTimeout,
)

Report = Callable[[Retrying], Awaitable[None]]


class Retries:
    """The repetitions of the requests of one answer.

    Args:
        attempts: how often a request is sent at most.
        first_wait: seconds before the first repetition; each further wait is twice as long, and as long as the
            provider asks at least.
        report: called before each wait.
    """

    def __init__(self, attempts: int, first_wait: float, report: Report) -> None:
        self._attempts = attempts
        self._first_wait = first_wait
        self._report = report
        self._failed = 0

    def around(self, model: Model) -> Model:
        """A model that repeats requests: it falls back to the same one, and hands over no stream without an event."""
        return FallbackModel(*[model] * self._attempts, fallback_on=self._repeats)

    def reset(self) -> None:
        """Count from the beginning: a request has succeeded."""
        self._failed = 0

    async def _repeats(self, error: Exception) -> bool:
        self._failed += 1
        if self._failed >= self._attempts or not isinstance(error, TRANSIENT):
            return False
        asked = getattr(error, "retry_after", None) or 0.0
        wait = max(asked, self._first_wait * 2 ** (self._failed - 1))
        if wait > LONGEST_WAIT:
            return False
        failure = coded(error)
        await self._report(Retrying(failure.code, failure.message, self._failed + 1, self._attempts, wait))
        await asyncio.sleep(wait)
        return True
