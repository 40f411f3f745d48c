"""The history of a conversation, as the next answer takes it: read, written, and extended after an interruption.

It is the library's own form, with a version. A history of another version, or one that cannot be read, is refused; it
can be made anew from the questions and the frames of their answers, with `extended`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from workbench.errors import Conflict
from workbench.providers import pictures
from workbench.providers.frames import Frame, History, Token, ToolCompleted, ToolStarted
from workbench.rules.wire import json_safety

VERSION = "pydantic-ai/2"
LOST = "The tool was interrupted; whether it had an effect is unknown."

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def dumped(messages: Sequence[ModelMessage]) -> History:
    """Messages as a history, with their newest pictures. Characters that no store takes are replaced."""
    kept = pictures.newest(messages, pictures.PicturesRoom())
    return {"version": VERSION, "messages": storable(ModelMessagesTypeAdapter.dump_python(kept, mode="json"))}


def loaded(history: History | None) -> list[ModelMessage]:
    """The messages of a history.

    Raises:
        Conflict: ``HISTORY_UNREADABLE``.
    """
    if history is None:
        return []
    if history.get("version") != VERSION:
        raise _unreadable(f"its version is {history.get('version')!r}, not {VERSION!r}")
    try:
        return ModelMessagesTypeAdapter.validate_python(history.get("messages"))
    except ValidationError as error:
        raise _unreadable(f"{error.error_count()} of its fields are wrong") from None


def extended(history: History | None, prompt: str, frames: Iterable[Frame]) -> History:
    """A history with a question whose answer was stopped, failed, or was lost with its process.

    Args:
        frames: those of the answer that are known. A call without a result gets one that says so.

    Raises:
        Conflict: ``HISTORY_UNREADABLE``.
    """
    messages = [*loaded(history), ModelRequest(parts=[UserPromptPart(content=prompt)])]
    return dumped([*messages, *_answered(frames)])


def _answered(frames: Iterable[Frame]) -> list[ModelMessage]:
    """The messages of an answer: text and calls of each step, then the results of these calls."""
    messages: list[ModelMessage] = []
    step = _Step()
    for frame in frames:
        match frame:
            case Token(text):
                if step.has_results:
                    messages += step.messages()
                    step = _Step()
                step.text += text
            case ToolStarted():
                if step.has_results and not step.awaits_results:
                    messages += step.messages()
                    step = _Step()
                step.calls[frame.call_id] = frame
            case ToolCompleted():
                step.results[frame.call_id] = frame
    return messages + step.messages()


class _Step:
    """One step of an answer."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[str, ToolStarted] = {}
        self.results: dict[str, ToolCompleted] = {}

    @property
    def has_results(self) -> bool:
        return bool(self.results)

    @property
    def awaits_results(self) -> bool:
        return bool(self.calls.keys() - self.results.keys())

    def messages(self) -> list[ModelMessage]:
        parts: list[ModelResponsePart] = [TextPart(content=self.text)] if self.text else []
        parts += [ToolCallPart(call.name, _arguments(call), call_id) for call_id, call in self.calls.items()]
        if not parts:
            return []
        response = ModelResponse(parts=parts)
        returns = [self._result(call) for call in self.calls.values()]
        return [response, ModelRequest(parts=returns)] if returns else [response]

    def _result(self, call: ToolStarted) -> ToolReturnPart:
        found = self.results.get(call.call_id)
        if found is None:
            return ToolReturnPart(call.name, LOST, call.call_id, outcome="interrupted")
        return ToolReturnPart(call.name, found.result, call.call_id, outcome="failed" if found.is_error else "success")


def _arguments(call: ToolStarted) -> dict[str, Any]:
    """The arguments of a call; what is no JSON object, no provider would accept in a history."""
    try:
        arguments = json_safety.decode(call.arguments)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def storable(value: Any) -> Any:
    """A JSON value without NUL and lone surrogates, which no store takes."""
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case dict():
            return {storable(key): storable(one) for key, one in value.items()}
        case list():
            return [storable(one) for one in value]
    return value


def _unreadable(why: str) -> Conflict:
    return Conflict("HISTORY_UNREADABLE", f"The history of this conversation cannot be continued: {why}.")
