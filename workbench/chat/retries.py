"""Sends a request again that failed before anything of its answer came. Each repetition is reported first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import exceptions as ai
from pydantic_ai.models import Model, StreamedResponse
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
Begun = Callable[[int], Awaitable[None]]


class _Repeating(FallbackModel):
    def __init__(self, *models: Model, fallback_on: Any, begun: Begun) -> None:
        super().__init__(*models, fallback_on=fallback_on)
        self._workbench_begun = begun

    @asynccontextmanager
    async def request_stream(self, *args: Any, **more: Any) -> AsyncGenerator[StreamedResponse]:
        """See `Model`."""
        await self._workbench_begun(1)
        is_answered = False
        try:
            async with super().request_stream(*args, **more) as found:
                is_answered = True
                yield found
        except Exception:
            if not is_answered:
                await self._workbench_begun(-1)
            raise


class Retries:
    """The repetitions of the requests of one answer.

    Args:
        attempts: how often a request is sent at most.
        first_wait: seconds before the first repetition; each further wait is twice as long, and as long as the
            provider asks at least.
        report: called before each wait.
        begun: called with 1 before each step is asked for, and with -1 if none of its requests got an answer.
    """

    def __init__(self, attempts: int, first_wait: float, report: Report, begun: Begun) -> None:
        self._attempts = attempts
        self._first_wait = first_wait
        self._report = report
        self._begun = begun
        self._failed = 0

    def around(self, model: Model) -> Model:
        """A model that repeats requests: it falls back to the same one, and hands over no stream without an event."""
        return _Repeating(*[model] * self._attempts, fallback_on=self._repeats, begun=self._begun)

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
