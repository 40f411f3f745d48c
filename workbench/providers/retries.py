"""Sends a request again that failed before anything of its answer came. Each repetition is reported first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai import exceptions as ai
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel

from workbench.providers import pictures
from workbench.providers.compaction import Compaction
from workbench.providers.failures import coded, is_too_long
from workbench.providers.frames import Retrying

LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for a longer wait gets no repetition; the error names the wait."""

TRANSIENT = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
    ai.ModelRequestTimeout,
)

PICTURE_WORDS = ("image", "multimodal", "vision")
"""What a server says that takes no pictures."""

Report = Callable[[Retrying], Awaitable[None]]
Begun = Callable[[int], Awaitable[None]]
Shorten = Callable[[Sequence[ModelMessage]], Awaitable[bool]]


class _Repeating(FallbackModel):
    def __init__(
        self, *models: Model, fallback_on: Any, begun: Begun, compaction: Compaction, shorten: Shorten
    ) -> None:
        super().__init__(*models, fallback_on=fallback_on)
        self._workbench_begun = begun
        self._workbench_compaction = compaction
        self._workbench_shorten = shorten
        self._workbench_is_blind = False

    @asynccontextmanager
    async def request_stream(
        self, messages: list[ModelMessage], *args: Any, **more: Any
    ) -> AsyncGenerator[StreamedResponse]:
        """See `Model`. What is refused is asked again with less: without pictures, which their results name, and
        shortened."""
        await self._workbench_begun(1)
        is_answered = False
        try:
            async with AsyncExitStack() as stack:
                while True:
                    sent = self._workbench_sent(messages)
                    try:
                        found = await stack.enter_async_context(super().request_stream(sent, *args, **more))
                        break
                    except Exception as error:
                        if is_too_long(error) and await self._workbench_shorten(messages):
                            continue
                        if not _refuses_pictures(error, sent):
                            raise
                        self._workbench_is_blind = True
                is_answered = True
                yield found
        except Exception:
            if not is_answered:
                await self._workbench_begun(-1)
            raise

    def _workbench_sent(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        shortened = self._workbench_compaction.applied(messages)
        return pictures.without(shortened) if self._workbench_is_blind else shortened


def _refuses_pictures(error: Exception, messages: list[ModelMessage]) -> bool:
    """Whether a request was refused that has pictures, which not every model of a server takes."""
    if not pictures.has_any(messages):
        return False
    is_rejected = isinstance(error, ai.ModelRequestRejectedError)
    is_said = isinstance(error, ai.ModelAPIError) and any(word in str(error).lower() for word in PICTURE_WORDS)
    return is_said or (is_rejected and not is_too_long(error))


class Retries:
    """The repetitions of the requests of one answer.

    Args:
        attempts: how often a request is sent at most.
        first_wait: seconds before the first repetition; each further wait is twice as long, and as long as the
            provider asks at least.
        report: called before each wait.
        begun: called with 1 before each step is asked for, and with -1 if none of its requests got an answer.
        compaction: how the messages are shortened.
        shorten: shortens messages that are too long; whether it could.
    """

    def __init__(
        self,
        attempts: int,
        first_wait: float,
        report: Report,
        begun: Begun,
        compaction: Compaction,
        shorten: Shorten,
    ) -> None:
        self._attempts = attempts
        self._first_wait = first_wait
        self._report = report
        self._begun = begun
        self._compaction = compaction
        self._shorten = shorten
        self._failed = 0

    def around(self, model: Model) -> Model:
        """A model that repeats requests: it falls back to the same one, and hands over no stream without an event."""
        return _Repeating(
            *[model] * self._attempts,
            fallback_on=self._repeats,
            begun=self._begun,
            compaction=self._compaction,
            shorten=self._shorten,
        )

    def reset(self) -> None:
        """Count from the beginning: a request has succeeded."""
        self._failed = 0

    async def _repeats(self, error: Exception) -> bool:
        self._failed += 1
        if self._failed >= self._attempts or not isinstance(error, TRANSIENT) or is_too_long(error):
            return False
        asked = getattr(error, "retry_after", None) or 0.0
        wait = max(asked, self._first_wait * 2 ** (self._failed - 1))
        if wait > LONGEST_WAIT:
            return False
        failure = coded(error)
        await self._report(Retrying(failure.code, failure.message, self._failed + 1, self._attempts, wait))
        await asyncio.sleep(wait)
        return True
