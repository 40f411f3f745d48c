"""An answer that is followed while it is made, frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from workbench.cli.chat.parts import Pictures, as_page, as_text
from workbench.errors import Hint, Unavailable, WorkbenchError, from_dict
from workbench.present.inert import as_html, inert
from workbench.rules.chat.transcript import FrameKind, TextPart, ToolPart, Transcript

Frame = Mapping[str, Any]


class ConversationCaller(Protocol):
    """What runs operations as the operator: a terminal's client, or a notebook's session."""

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the operation raises.
        """
        ...


class Answer:
    """An answer of a conversation.

    `turn` is what list_turns says about it, once it has ended: its state, error and usage.

    Args:
        started: the answer, as ask or retry_answer returned it.
        after: the number of the conversation's last frame before it.
    """

    def __init__(self, caller: ConversationCaller, started: Mapping[str, Any], after: int) -> None:
        self.conversation_id: str = started["conversation_id"]
        self.id: str = started["id"]
        self.turn: Mapping[str, Any] | None = None
        self._caller = caller
        self._after = after
        self._transcript = Transcript()
        self._pictures = Pictures(caller.call)
        self._hint: Hint | None = None

    @classmethod
    def asked(cls, caller: ConversationCaller, conversation_id: str, question: str) -> Self:
        """Ask something in a conversation.

        Raises:
            WorkbenchError: what the operation ask raises.
        """
        after = _last_frame(caller, conversation_id)
        exchange = caller.call("ask", conversation_id=conversation_id, content=question)
        return cls(caller, exchange["answer"], after)

    @classmethod
    def retried(cls, caller: ConversationCaller, conversation_id: str) -> Self:
        """Ask the last question of a conversation again.

        Raises:
            WorkbenchError: what the operation retry_answer raises.
        """
        after = _last_frame(caller, conversation_id)
        return cls(caller, caller.call("retry_answer", conversation_id=conversation_id), after)

    @property
    def text(self) -> str:
        """What the model has said so far, without what it thought."""
        return self._transcript.text

    @property
    def parts(self) -> Sequence[TextPart | ToolPart]:
        """The text and the calls of tools so far, in order."""
        return self._transcript.parts(ended=self.turn is not None)

    @property
    def tool_calls(self) -> list[ToolPart]:
        """The calls of tools so far."""
        return [part for part in self.parts if isinstance(part, ToolPart)]

    @property
    def state(self) -> str:
        """``running``, ``completed``, ``stopped``, ``interrupted`` or ``failed``."""
        return "running" if self.turn is None else str(self.turn["state"])

    def read(self, wait_seconds: float = 0.0) -> list[Frame]:
        """The frames that have come since the last read; waits for a first one.

        Raises:
            NotFound: ``CONVERSATION_NOT_FOUND``: it was deleted. Other errors: the server cannot be reached.
        """
        page = self._caller.call(
            "read_frames", conversation_id=self.conversation_id, after=self._after, wait_seconds=wait_seconds
        )
        self._after = page["next_after"]
        frames = [frame for frame in page["frames"] if frame["turn_id"] == self.id]
        for frame in frames:
            self._transcript.add(frame["type"], frame["data"])
            if frame["type"] == FrameKind.ERROR:
                self._hint = from_dict(frame["data"]).hint
        has_end = any(frame["type"] in (FrameKind.COMPLETE, FrameKind.ERROR) for frame in frames)
        if has_end or (not page["frames"] and page["answer_id"] != self.id):
            self.turn = self._read_turn()
        return frames

    def stop(self) -> None:
        """Stop the answer, and wait until it has ended; what has come of it is kept.

        Raises:
            WorkbenchError: see `read`, and what the operation stop_answer raises.
        """
        if self.turn is None:
            self._caller.call("stop_answer", conversation_id=self.conversation_id)
            self.wait()

    def wait(self) -> Self:
        """Wait until it has ended.

        Raises:
            WorkbenchError: see `read`.
        """
        while self.turn is None:
            self.read(wait_seconds=20)
        return self

    @property
    def failure(self) -> WorkbenchError | None:
        """Why it failed, or was interrupted by the end of the server."""
        if self.turn is None or self.state in ("completed", "stopped"):
            return None
        code, message = self.turn["error_code"] or "ANSWER_INTERRUPTED", self.turn["error"] or "It was cut off."
        error = Unavailable(code, message)
        error.hint = self._hint
        return error

    def ending(self) -> str:
        """How it ended, unless it was completed whole."""
        return ending(self.turn) if self.turn else ""

    def plain(self) -> str:
        """It for a terminal."""
        return "\n".join(filter(None, (*map(as_text, self.parts), inert(self.ending()))))

    def html(self) -> str:
        """It for a notebook."""
        ending = f"<p><em>{as_html(self.ending())}</em></p>" if self.ending() else ""
        return "".join(map(self.page, self.parts)) + ending

    def page(self, part: TextPart | ToolPart) -> str:
        """A part of it for a notebook, with the pictures that its tool returned."""
        return as_page(part, self._pictures.of(part))

    def __repr__(self) -> str:
        return self.plain()

    def _read_turn(self) -> Mapping[str, Any]:
        page = self._caller.call("list_turns", conversation_id=self.conversation_id, replaced=True)
        return next(turn for turn in page["turns"] if turn["id"] == self.id)


def ending(turn: Frame) -> str:
    """How the answer of a turn ended, unless it was completed whole or is being made."""
    if turn["state"] in ("running", "completed"):
        return turn["remark"] or ""
    if turn["error_code"]:
        return f"{turn['error_code']}: {turn['error']}"
    return f"The answer was {turn['state']}."


def _last_frame(caller: ConversationCaller, conversation_id: str) -> int:
    return int(caller.call("get_conversation", conversation_id=conversation_id)["last_frame"])
