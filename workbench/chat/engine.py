"""One answer of a model: text, tool calls and their results, as they come.

What a tool does wrong is a result, with which the model goes on; what the provider does wrong ends the answer with a
code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from workbench.chat import events, transcript
from workbench.chat.failures import coded
from workbench.chat.frames import Frame, Thought, Token, Used
from workbench.chat.question import Limits, Question
from workbench.chat.retries import Retries
from workbench.chat.tools import Toolbox
from workbench.chat.toolset import MISTAKES, Tools
from workbench.errors import Conflict

__all__ = ["Limits", "Question", "answer"]

FIRST_WAIT = 1.0
LONGEST_TEXT = 4_000_000
"""Characters of an answer. A provider that sends more than any model writes is cut off."""
AHEAD = 256
"""How many frames the model may be ahead of their reader."""

Frames = MemoryObjectSendStream[Frame]


async def answer(
    model: Model,
    question: Question,
    toolbox: Toolbox,
    limits: Limits = Limits(),
    first_wait: float = FIRST_WAIT,
) -> AsyncIterator[Frame]:
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
    model: Model, question: Question, toolbox: Toolbox, limits: Limits, first_wait: float, frames: Frames
) -> None:
    deadline = asyncio.timeout(limits.seconds)
    try:
        with frames:
            async with deadline, model:
                retries = Retries(limits.attempts, first_wait, frames.send)
                await _stream(model, question, toolbox, limits, retries, frames)
    except Exception as error:
        if deadline.expired():
            raise Conflict("CHAT_LIMIT", f"The answer took longer than {limits.seconds:g} s.") from None
        raise coded(error) from None


async def _stream(
    model: Model, question: Question, toolbox: Toolbox, limits: Limits, retries: Retries, frames: Frames
) -> None:
    agent = Agent(
        retries.around(model),
        output_type=[str, type(None)],  # a model may have nothing to say, after its tools for example
        instructions=question.instructions or None,
        toolsets=[Tools(toolbox)],
        retries={"tools": MISTAKES, "output": 0},
    )
    used = RunUsage()
    counted = length = 0

    async def report_usage() -> None:
        nonlocal counted
        if used.requests > counted:
            counted = used.requests
            await frames.send(Used(events.usage(used)))

    async with agent.run_stream_events(
        question.prompt,
        message_history=transcript.loaded(question.history),
        model_settings=_settings(model, question, limits),
        usage_limits=_usage_limits(limits),
        usage=used,
    ) as found:
        try:
            async for event in found:
                retries.reset()
                await report_usage()
                frame = events.frame(event)
                if frame is not None:
                    length = _checked_length(length, frame)
                    await frames.send(frame)
        except Exception:
            await report_usage()  # of the step after which a limit ended the answer
            raise


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


def _usage_limits(limits: Limits) -> UsageLimits:
    return UsageLimits(request_limit=limits.steps, output_tokens_limit=limits.output_tokens, cost_limit=limits.cost_usd)


def _settings(model: Model, question: Question, limits: Limits) -> ModelSettings:
    wanted: dict[str, Any] = {
        "temperature": question.temperature,
        "top_p": question.top_p,
        "max_tokens": question.max_output_tokens,
        "thinking": question.thinking,
        "first_event_timeout": limits.silence_seconds,
    }
    if model.system in ("openai", "anthropic", "google"):  # Bedrock has its own client, see `models`
        wanted |= {"timeout": limits.silence_seconds, "max_retries": 0}
    if model.system == "anthropic" and question.temperature is not None:
        del wanted["top_p"]  # its newer models refuse both together
    return cast(ModelSettings, {name: value for name, value in wanted.items() if value is not None})


def _check_price(model: Model, limits: Limits) -> None:
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
