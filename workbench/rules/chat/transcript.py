"""What an answer consists of, in order: its text, and the calls of tools between. Made of its frames."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.model import Wire


class FrameKind(StrEnum):
    """The kinds of frames. `complete` and `error` end an answer; the other kinds are pieces of it.

    ``message`` is what the person wrote, ``thinking`` what a model thinks, ``retry`` says that the provider failed and
    is asked again, ``compacted`` that the conversation was too long, and what was done, ``tool_waiting`` that a tool
    waits for the operator's permission, ``tool_progress`` how far it is.
    """

    MESSAGE = "message"
    TOKEN = "token"
    THINKING = "thinking"
    RETRY = "retry"
    COMPACTED = "compacted"
    TOOL_START = "tool_start"
    TOOL_WAITING = "tool_waiting"
    TOOL_PROGRESS = "tool_progress"
    TOOL_COMPLETE = "tool_complete"
    COMPLETE = "complete"
    ERROR = "error"


class CallState(StrEnum):
    """Where the call of a tool in an answer stands."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TextType = Literal["text", "thinking", "notice"]


class TextPart(Wire):
    """A part of an answer: text, what the model thinks, or a notice that the conversation was too long for it."""

    type: TextType = "text"
    text: str


class ShownPicture(Wire):
    """A picture that a tool returned; the record of the call has it."""

    media_type: str
    bytes: int


class ToolPart(Wire):
    """A part of an answer: the call of a tool.

    `call_id` identifies it in its answer; `record_id` is the call_id of get_tool_call. `tool_input` is JSON,
    `tool_result` text, which names the `pictures`; secrets in them are masked. `progress` of `total`, and `message`:
    how far it was when it last said so.
    """

    type: Literal["tool"] = "tool"
    call_id: str
    tool_name: str
    tool_input: str
    tool_result: str | None = None
    source: str = "local"
    server: str | None = None
    state: CallState = CallState.RUNNING
    approval_id: int | None = None
    record_id: str | None = None
    duration_ms: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    pictures: list[ShownPicture] = []


Part = Annotated[TextPart | ToolPart, Field(discriminator="type")]


class Transcript:
    """Collects the parts of an answer from its frames."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._type: TextType = "text"
        self._parts: list[TextPart | ToolPart] = []
        self._calls: dict[str, int] = {}

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add a frame; those that are no piece of an answer change nothing."""
        match kind:
            case FrameKind.TOKEN:
                self._add_text("text", str(data["content"]))
            case FrameKind.THINKING:
                self._add_text("thinking", str(data["content"]))
            case FrameKind.COMPACTED:
                self._add_text("notice", str(data["message"]))
            case FrameKind.TOOL_START:
                self._end_text()
                self._calls[data["call_id"]] = len(self._parts)
                self._parts.append(ToolPart(**_of_call(data)))
            case FrameKind.TOOL_WAITING:
                self._update(data, state=CallState.WAITING)
            case FrameKind.TOOL_PROGRESS:
                self._update(data, state=CallState.RUNNING)
            case FrameKind.TOOL_COMPLETE:
                self._update(data, state=CallState.FAILED if data.get("is_error") else CallState.COMPLETED)

    def parts(self, *, ended: bool) -> list[TextPart | ToolPart]:
        """The parts so far.

        Args:
            ended: nothing more comes, so calls without a result were cancelled.
        """
        self._end_text()
        return [_cancelled(part) if ended else part for part in self._parts]

    @property
    def text(self) -> str:
        """The text of the answer, without what the model thinks."""
        self._end_text()
        return "".join(part.text for part in self._parts if isinstance(part, TextPart) and part.type == "text")

    def _add_text(self, of_type: TextType, text: str) -> None:
        if of_type != self._type:
            self._end_text()
        self._type = of_type
        self._texts.append(text)

    def _end_text(self) -> None:
        """Make the text that has come a part; text that follows text belongs to the same part."""
        if not self._texts:
            return
        text, last = "".join(self._texts), self._parts[-1] if self._parts else None
        self._texts.clear()
        if isinstance(last, TextPart) and last.type == self._type:
            self._parts[-1] = last.model_copy(update={"text": last.text + text})
        else:
            self._parts.append(TextPart(type=self._type, text=text))

    def _update(self, data: Mapping[str, Any], state: CallState) -> None:
        place = self._calls.get(data["call_id"])
        if place is None:
            return
        known = {name: value for name, value in _of_call(data).items() if value is not None}
        self._parts[place] = ToolPart(**self._parts[place].model_dump() | known | {"state": state})


def _of_call(data: Mapping[str, Any]) -> dict[str, Any]:
    """What of a frame is about the call."""
    return {name: data[name] for name in ToolPart.model_fields if name in data and name != "type"}


def _cancelled(part: TextPart | ToolPart) -> TextPart | ToolPart:
    if isinstance(part, ToolPart) and part.state in (CallState.RUNNING, CallState.WAITING):
        return part.model_copy(update={"state": CallState.CANCELLED})
    return part


CUT = "length"
"""The end of an answer that reached its limit of tokens."""


def remark(end: str | None, cut_at: int | None, text: str) -> str | None:
    """A sentence about an answer that is completed; None: there is nothing to say.

    Args:
        end: why the model ended it.
        cut_at: the tokens at which its limit cut it; None: unknown.
        text: that of the answer.
    """
    if end == CUT:
        return f"This answer is cut at {cut_at:,} tokens." if cut_at else "This answer is cut at its limit of tokens."
    return None if text.strip() else "This answer is empty."
