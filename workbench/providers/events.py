"""The events of pydantic-ai as frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import RunUsage

from workbench.providers import transcript
from workbench.providers.frames import AnswerUsage, Completed, End, Frame, Thought, Token, ToolCompleted, ToolStarted


def frame(event: Any, begun: int, shortened: Callable[[Sequence[ModelMessage]], list[ModelMessage]]) -> Frame | None:
    """The frame of an event, or None for one that has none.

    Args:
        begun: see `usage`.
        shortened: messages as the next question takes them.
    """
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return Token(transcript.storable(text)) if text else None
        case (
            PartStartEvent(part=ThinkingPart(content=text))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
        ):
            return Thought(transcript.storable(text)) if text else None
        case FunctionToolCallEvent(part=call):
            return ToolStarted(call.tool_call_id, transcript.storable(call.tool_name), _arguments(call))
        case FunctionToolResultEvent(part=part):
            failed = getattr(part, "outcome", "success") != "success"
            return ToolCompleted(part.tool_call_id, transcript.storable(part.tool_name or ""), _text(part), failed)
        case AgentRunResultEvent(result=result):
            return _completed(result, begun, shortened(result.all_messages()))
    return None


def usage(used: RunUsage, begun: int) -> AnswerUsage:
    """The usage of an answer: what the provider reported, and how many requests it did not report.

    Args:
        begun: the requests, also the one whose answer is still coming, or was cut.
    """
    measured = used.requests - used.unmeasured_requests if used.input_tokens or used.output_tokens else 0
    return AnswerUsage(
        input_tokens=used.input_tokens if measured else None,
        output_tokens=used.output_tokens if measured else None,
        requests=begun,
        cost_usd=used.cost if measured else None,
        unmeasured=begun - measured,
    )


def _arguments(call: Any) -> str:
    text: str = transcript.storable(call.args_as_json_str())
    return text


def _text(part: Any) -> str:
    if isinstance(part.content, str):
        text = part.content
    elif isinstance(part.content, list):  # with pictures, which its text names
        text = "\n".join(one for one in part.content if isinstance(one, str))
    else:  # what was wrong with the arguments
        text = part.model_response() if isinstance(part, RetryPromptPart) else part.model_response_str()
    shown: str = transcript.storable(text)
    return shown


def _completed(result: Any, begun: int, messages: Sequence[ModelMessage]) -> Completed:
    last = next(message for message in reversed(messages) if isinstance(message, ModelResponse))
    end = _end(last)
    return Completed(
        transcript.storable(result.output or ""),
        usage(result.usage, begun),
        transcript.dumped(messages),
        end,
        cut_at=last.usage.output_tokens or None if end is End.LENGTH else None,
    )


def _end(response: ModelResponse) -> End:
    match response.finish_reason:
        case "length":
            return End.LENGTH
        case "content_filter":
            return End.FILTERED
    return End.STOP if _has_ended(response) else End.CUT


def _has_ended(response: ModelResponse) -> bool:
    """Whether the provider reported the end; of OpenAI's protocol, the library claims it when the connection ends."""
    if response.state != "complete":
        return False
    if response.finish_reason is None:
        return response.provider_name is None  # the provider `test`
    return response.provider_name != "openai" or "finish_reason" in (response.provider_details or {})
