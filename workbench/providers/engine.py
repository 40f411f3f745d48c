"""One answer of a model: text, tool calls and their results, as they come.

What a tool does wrong is a result, with which the model goes on; what the provider does wrong ends the answer with a
code.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from copy import copy
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from workbench.errors import Conflict, Unavailable
from workbench.providers import events, transcript
from workbench.providers.compaction import Compaction
from workbench.providers.failures import coded, limit_reached
from workbench.providers.frames import Compacted, Frame, Thought, Token, Used
from workbench.providers.question import AnswerLimits, ModelQuestion
from workbench.providers.recorded import RecordedModel, RequestLog, cost
from workbench.providers.retries import Retries
from workbench.providers.taken_settings import refuse_setting, require_taken
from workbench.providers.tools import Toolbox
from workbench.providers.toolset import MISTAKES, ToolboxToolset

__all__ = ["AnswerLimits", "ModelQuestion", "answer"]

FIRST_WAIT = 1.0
LONGEST_TEXT = 4_000_000
"""Characters of an answer. A provider that sends more than any model writes is cut off."""
AHEAD = 256
"""How many frames the model may be ahead of their reader."""

Frames = MemoryObjectSendStream[Frame]

log = logging.getLogger(__name__)


async def answer(
    model: Model,
    question: ModelQuestion,
    toolbox: Toolbox,
    limits: AnswerLimits = AnswerLimits(),
    first_wait: float = FIRST_WAIT,
) -> AsyncGenerator[Frame, None]:
    """The frames of an answer; the last one is `Completed`. Closing the iterator stops the model and its tools.

    Args:
        first_wait: seconds before the first repetition of a failed request.

    Raises:
        WorkbenchError: see `failures.coded`; ``HISTORY_UNREADABLE``, ``PRICE_UNKNOWN``.
    """
    _check_price(model, limits)
    sender, receiver = anyio.create_memory_object_stream[Frame](AHEAD)
    running = asyncio.create_task(_run(model, question, toolbox, limits, first_wait, sender))
    try:
        with receiver:
            async for frame in receiver:
                yield frame
        await running
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _run(
    model: Model, question: ModelQuestion, toolbox: Toolbox, limits: AnswerLimits, first_wait: float, frames: Frames
) -> None:
    deadline = asyncio.timeout(limits.seconds)
    try:
        with frames:
            async with deadline, model:
                await _Answer(model, question, toolbox, limits, frames).stream(first_wait)
    except Exception as error:
        if deadline.expired():
            raise Conflict("CHAT_LIMIT", f"The answer took longer than {limits.seconds:g} s.") from None
        refuse_setting(error, question)
        failure = coded(error)
        if failure.code == "CHAT_FAILED":
            log.error("an answer failed", exc_info=error)
        raise failure from None


class _Answer:
    """One answer of a model: asks for its steps, and counts what they use."""

    def __init__(
        self, model: Model, question: ModelQuestion, toolbox: Toolbox, limits: AnswerLimits, frames: Frames
    ) -> None:
        self._model = model
        self._question = question
        self._toolbox = toolbox
        self._limits = limits
        self._frames = frames
        self._used = RunUsage()
        self._begun = self._counted = self._length = self._before = 0
        self._length_before = 0
        """Of the steps before this one."""
        self._requests = RequestLog(frames.send)
        summarising = RecordedModel(model, self._requests, "summary")
        self._compaction = Compaction(summarising, _connection(model, limits), self._count_summary)

    async def stream(self, first_wait: float) -> None:
        """Send the frames.

        Raises:
            WorkbenchError: ``CHAT_LIMIT``, ``SETTING_REFUSED``, ``HISTORY_UNREADABLE``. Others: those of the library.
        """
        retries = Retries(
            self._limits.attempts, first_wait, self._frames.send, self._step, self._compaction, self._shorten
        )
        agent = Agent(
            retries.around(RecordedModel(self._model, self._requests)),
            output_type=[str, type(None)],  # a model may have nothing to say, after its tools for example
            instructions=self._question.instructions or None,
            toolsets=[ToolboxToolset(self._toolbox)],
            retries={"tools": MISTAKES, "output": 0},
        )
        async with agent.run_stream_events(
            self._question.prompt,
            message_history=transcript.loaded(self._question.history),
            model_settings=_settings(self._model, self._question, self._limits),
            usage_limits=UsageLimits(
                request_limit=None, total_tokens_limit=self._limits.tokens, cost_limit=self._limits.cost_usd
            ),
            usage=self._used,
        ) as found:
            try:
                async for event in found:
                    retries.reset()
                    await self._report_step()
                    frame = events.frame(event, self._begun, self._compaction.applied)
                    if frame is not None:
                        self._length = _checked_length(self._length, frame)
                        await self._frames.send(frame)
            except UsageLimitExceeded:
                await self._report_step()  # the one after which a limit ended the answer
                raise self._reached() from None
            except Exception as error:
                await self._report_step()
                if self._length > self._length_before and coded(error).code == "PROVIDER_UNREACHABLE":
                    raise Unavailable("ANSWER_CUT", "The connection ended before the answer did. Try again.") from None
                raise

    async def _step(self, count: int) -> None:
        """Note that a step is asked for, or that it got no answer.

        Raises:
            Conflict: ``CHAT_LIMIT``.
        """
        if count > 0:
            if self._begun >= self._limits.steps:
                raise limit_reached("steps", f"the model was asked {self._limits.steps:,} times")
            newest = self._used.input_tokens - self._before  # the next request contains the last one
            if self._limits.tokens is not None and self._used.total_tokens + newest > self._limits.tokens:
                raise self._reached()
            self._before = self._used.input_tokens
            self._length_before = self._length
        self._begun += count
        await self._report()

    async def _shorten(self, messages: Sequence[ModelMessage]) -> bool:
        """Make messages shorter that are too long for the model, and say how; whether that is possible."""
        done = await self._compaction.go_further(messages)
        if done is None:
            return False
        await self._frames.send(Compacted(done))
        return True

    def _count_summary(self, summary: ModelResponse) -> None:
        usage = copy(summary.usage)
        usage.cost = cost(summary)
        self._used.incr(usage)
        self._used.requests += 1
        self._before += usage.input_tokens  # the next request does not contain what was summarised
        self._begun += 1

    async def _report_step(self) -> None:
        for request in self._requests.take():
            await self._frames.send(request)
        if self._used.requests > self._counted:
            self._counted = self._used.requests
            await self._report()

    async def _report(self) -> None:
        await self._frames.send(Used(events.usage(self._used, self._begun)))

    def _reached(self) -> Conflict:
        """The error for the limit of tokens or costs that is reached."""
        tokens, most = self._limits.tokens, self._limits.cost_usd
        if most is not None and self._used.cost is not None and self._used.cost > most:
            return limit_reached("cost_usd", f"it cost {self._used.cost:.4f} US dollars, of {most:.4f} that were left")
        left = "" if tokens is None else f", of {tokens:,} that were left; another request would use more"
        return limit_reached("tokens", f"it used {self._used.total_tokens:,} tokens{left}")


def _checked_length(length: int, frame: Frame) -> int:
    """The characters of an answer with another frame.

    Raises:
        Conflict: ``CHAT_LIMIT``.
    """
    if isinstance(frame, Token | Thought):
        length += len(frame.text)
    if length > LONGEST_TEXT:
        raise Conflict("CHAT_LIMIT", f"The answer has more than {LONGEST_TEXT:,} characters.")
    return length


def _settings(model: Model, question: ModelQuestion, limits: AnswerLimits) -> ModelSettings:
    wanted: dict[str, Any] = {
        "temperature": question.temperature,
        "top_p": question.top_p,
        "max_tokens": question.max_output_tokens,
        "thinking": question.thinking,
        "cache": True,  # where a provider caches only what is marked: the instructions, the tools, the conversation
    }
    require_taken(model.profile, question)
    given = {name: value for name, value in wanted.items() if value is not None}
    return cast(ModelSettings, given | _connection(model, limits))


def _connection(model: Model, limits: AnswerLimits) -> ModelSettings:
    """How long a provider may be silent; what fails is repeated here, and not by its library."""
    settings = ModelSettings(first_event_timeout=limits.silence_seconds)
    if model.system in ("openai", "anthropic", "google"):  # Bedrock has its own client, see `models`
        settings |= ModelSettings(timeout=limits.silence_seconds, max_retries=0)
    return settings


def _check_price(model: Model, limits: AnswerLimits) -> None:
    """Refuse a limit of cost that cannot be kept.

    Raises:
        Conflict: ``PRICE_UNKNOWN``.
    """
    if limits.cost_usd is None:
        return
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    sample = ModelResponse(parts=[], usage=usage, model_name=model.model_name, provider_name=model.system)
    try:
        sample.cost()
    except LookupError:
        raise Conflict(
            "PRICE_UNKNOWN",
            f"The price of {model.model_name} is unknown, so its cost cannot be limited. Limit tokens instead.",
        ) from None
