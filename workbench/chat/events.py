"""The events of pydantic-ai as frames."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import RunUsage

from workbench.chat import transcript
from workbench.chat.frames import Completed, End, Frame, Thought, Token, ToolCompleted, ToolStarted, Usage


def frame(event: Any) -> Frame | None:
    """The frame of an event, or None for one that has none."""
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
            return _completed(result)
    return None


def usage(used: RunUsage) -> Usage:
    """The usage of an answer; tokens are unknown unless the provider reported those of every request."""
    is_known = not used.unmeasured_requests and bool(used.input_tokens or used.output_tokens)
    return Usage(
        input_tokens=used.input_tokens if is_known else None,
        output_tokens=used.output_tokens if is_known else None,
        requests=used.requests,
        cost_usd=used.cost if is_known else None,
    )


def _arguments(call: Any) -> str:
    text: str = transcript.storable(call.args_as_json_str())
    return text


def _text(part: Any) -> str:
    text: str = transcript.storable(part.content if isinstance(part.content, str) else part.model_response())
    return text


def _completed(result: Any) -> Completed:
    messages = result.all_messages()
    last = next(message for message in reversed(messages) if isinstance(message, ModelResponse))
    return Completed(
        transcript.storable(result.output or ""), usage(result.usage), transcript.dumped(messages), _end(last)
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
