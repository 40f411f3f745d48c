"""The provider `test`: answers from a script, without a network. Deterministic, for tests and for the manual."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from workbench.errors import BadInput
from workbench.rules.reasons import reason


class ScriptedCall(BaseModel):
    """A call of a tool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    input: dict[str, Any] = {}


class ScriptedStep(BaseModel):
    """What the model does in one step: it says something, calls tools, both; slowly, or not at all.

    Args:
        say: text, sent word by word.
        calls: tools that are called at once.
        pause: seconds before each word.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    say: str = ""
    calls: list[ScriptedCall] = []
    pause: Annotated[float, Field(ge=0, le=60)] = 0.0


Script = TypeAdapter(list[ScriptedStep])


def scripted(script: Sequence[Mapping[str, Any]] | None) -> FunctionModel:
    """A model that follows a script: one step for each answer of the model; after the last it begins again.

    Args:
        script: steps, such as ``{"say": "Hello."}`` or ``{"calls": [{"tool": "add", "input": {"a": 1}}]}``; without
            one, the model repeats what it is asked.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    try:
        steps = Script.validate_python(script) if script else []
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadInput(
            "INVALID_CONFIGURATION",
            f"The script of the test model: {'.'.join(map(str, first['loc']))}: {reason(first)}.",
        ) from None

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        done = sum(isinstance(message, ModelResponse) for message in messages)
        step = steps[done % len(steps)] if steps else ScriptedStep(say=f"You said: {_said(messages)}")
        for number, word in enumerate(step.say.split(" ") if step.say else []):
            await asyncio.sleep(step.pause)
            yield f" {word}" if number else word
        if not step.say and not step.calls:
            yield ""
        if step.calls:
            yield {number: _delta(call, f"call_{done}_{number}") for number, call in enumerate(step.calls)}

    return FunctionModel(stream_function=stream, model_name="test")


def _delta(call: ScriptedCall, call_id: str) -> DeltaToolCall:
    return DeltaToolCall(name=call.tool, json_args=json.dumps(call.input), tool_call_id=call_id)


def _said(messages: Sequence[ModelMessage]) -> str:
    """What the person said last."""
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                    return part.content
    return ""
