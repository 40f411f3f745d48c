"""A model each of whose requests is reported: when it is sent, and what came of it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from workbench.providers.failures import coded
from workbench.providers.frames import Purpose, Requested


class RequestLog:
    """The requests of one answer, in their order.

    Args:
        report: called when a request is sent. What came of it is in `take`.
    """

    def __init__(self, report: Callable[[Requested], Awaitable[None]]) -> None:
        self.report = report
        self._sent = 0
        self._ended: list[Requested] = []

    def next(self, purpose: Purpose) -> Requested:
        """Another request."""
        self._sent += 1
        return Requested(self._sent, purpose)

    def end(self, request: Requested) -> None:
        """Note what came of a request."""
        self._ended.append(request)

    def take(self) -> list[Requested]:
        """The requests that have ended since this was last asked."""
        ended, self._ended = self._ended, []
        return ended


class RecordedModel(WrapperModel):
    """A model that reports its requests, also those that fail.

    Args:
        purpose: what its requests are for.
    """

    def __init__(self, wrapped: Model, requests: RequestLog, purpose: Purpose = "answer") -> None:
        super().__init__(wrapped)
        self._workbench_requests = requests
        self._workbench_purpose = purpose

    @asynccontextmanager
    async def request_stream(self, *args: Any, **more: Any) -> AsyncGenerator[StreamedResponse]:
        """See `Model`."""
        requests = self._workbench_requests
        sent = requests.next(self._workbench_purpose)
        await requests.report(sent)
        begun = time.perf_counter()
        stream: StreamedResponse | None = None
        code: str | None = None
        try:
            async with super().request_stream(*args, **more) as stream:
                yield stream
        except Exception as error:
            code = coded(error).code
            raise
        finally:
            requests.end(_ended(sent, begun, stream, code))


def _ended(sent: Requested, begun: float, stream: StreamedResponse | None, code: str | None) -> Requested:
    """What came of a request."""
    seconds = time.perf_counter() - begun
    if stream is None:
        return replace(sent, seconds=seconds, error_code=code)
    response = stream.get()
    usage = response.usage
    is_known = bool(usage.input_tokens or usage.output_tokens) and not usage.unmeasured_requests
    return replace(
        sent,
        seconds=seconds,
        first_token_seconds=stream.time_to_first_chunk(begun),
        input_tokens=usage.input_tokens if is_known else None,
        cached_tokens=usage.cache_read_tokens if is_known else None,
        cache_write_tokens=usage.cache_write_tokens if is_known else None,
        output_tokens=usage.output_tokens if is_known else None,
        thinking_tokens=usage.output_reasoning_tokens if is_known else None,
        cost_usd=cost(response) if is_known else None,
        end=response.finish_reason,
        error_code=code,
    )


def cost(response: ModelResponse) -> Decimal | None:
    """What an answer costs; None: the price of its model is unknown."""
    try:
        return response.cost().total_price
    except LookupError:
        return None
