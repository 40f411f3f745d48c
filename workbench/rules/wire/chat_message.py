"""The WebSocket protocol of conversations (spec 4) as data: what a client sends, and every message to it.

A client sends objects such as `{"type": "message", "conversation_id": …, "content": …}`. Fields that the protocol does
not define are ignored, and so should clients do. No socket and no `await` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from workbench.errors import BadInput, WorkbenchError
from workbench.model import LARGEST_INT
from workbench.rules.reasons import reason
from workbench.rules.wire import json_safety
from workbench.rules.wire.message import Message


class _Command(BaseModel):
    """Base of the messages of a client. A reply to one that has a `request_id` carries it."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)

    request_id: Any = None

    @property
    def conversation(self) -> str | None:
        """The conversation that it is about."""
        return None


class _OfConversation(_Command):
    conversation_id: str

    @property
    def conversation(self) -> str | None:
        """The conversation that it is about."""
        return self.conversation_id


class Say(_OfConversation):
    """Write a message; its answer follows on the same connection."""

    type: Literal["message"]
    content: str


class Subscribe(_OfConversation):
    """Follow a conversation after the frame with a number; None: from now on."""

    type: Literal["subscribe"]
    after: Annotated[int, Field(ge=0, le=LARGEST_INT)] | None = None


class Unsubscribe(_OfConversation):
    """Follow a conversation no longer. Its answer goes on."""

    type: Literal["unsubscribe"]


class StopMessage(_OfConversation):
    """Stop the answer that is being made."""

    type: Literal["stop"]


class RetryMessage(_OfConversation):
    """Ask the last question again.

    Args:
        message_id: the answer to replace, if it still is the last message.
    """

    type: Literal["retry"]
    message_id: str | None = None


class Ping(_Command):
    """Ask whether the server is there."""

    type: Literal["ping"]


Command = Annotated[Say | Subscribe | Unsubscribe | StopMessage | RetryMessage | Ping, Field(discriminator="type")]
_COMMAND: TypeAdapter[Say | Subscribe | Unsubscribe | StopMessage | RetryMessage | Ping] = TypeAdapter(
    Command, config=ConfigDict(defer_build=True)
)


def parse(text: str | None) -> Say | Subscribe | Unsubscribe | StopMessage | RetryMessage | Ping:
    """The message of a client.

    Args:
        text: None for a binary message.

    Raises:
        BadInput: ``BAD_MESSAGE``.
    """
    if text is None:
        raise _bad("binary messages are not supported")
    try:
        return _COMMAND.validate_python(json_safety.decode(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        raise _bad(f"{place}: {reason(first)}" if place else reason(first)) from None
    except ValueError as error:
        raise _bad(str(error)) from None


def _bad(why: str) -> BadInput:
    return BadInput("BAD_MESSAGE", f'Send {{"type": "message", "conversation_id": …, "content": …}} as JSON: {why}.')


def frame(conversation_id: str, found: Mapping[str, Any]) -> Message:
    """A frame of a conversation, with the number after which a later connection continues."""
    about = {"conversation_id": conversation_id, "message_id": found["turn_id"], "number": found["number"]}
    return {**found["data"], **about, "type": found["type"]}


def pong(command: Ping) -> Message:
    """The answer to a ping."""
    return _replying({"type": "pong"}, command.request_id)


def subscribed(command: Subscribe, after: int) -> Message:
    """The answer to a subscription; the frames after this number follow."""
    about = {"conversation_id": command.conversation_id, "after": after}
    return _replying({"type": "subscribed", **about}, command.request_id)


def done(command: _OfConversation, action: str, **more: Any) -> Message:
    """The answer to another message. Empty if that had no `request_id`: the spec has no such answer."""
    if command.request_id is None:
        return {}
    about = {"action": action, "conversation_id": command.conversation_id, **more}
    return _replying({"type": "accepted", **about}, command.request_id)


def error(problem: WorkbenchError, conversation_id: str | None, request_id: Any = None) -> Message:
    """A message that failed, or a conversation that can no longer be followed; the connection stays open."""
    more = {key: value for key, value in problem.as_dict().items() if key in ("details", "hint") and value}
    about = {"conversation_id": conversation_id} if conversation_id is not None else {}
    said = {"type": "error", "message": problem.message, "code": problem.code, "status": problem.status}
    return _replying({**said, **about, **more}, request_id)


def _replying(message: Message, request_id: Any) -> Message:
    return message if request_id is None else {**message, "request_id": request_id}
