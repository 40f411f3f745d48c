"""The pictures that tools returned, as a model gets them: so many, and no more bytes than a request may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ToolReturnPart

from workbench.rules.tools.content import Picture

MOST = 20
MOST_BYTES = 8 << 20
"""Of the pictures of one answer, and of those that the history before it keeps: requests have at most 32 MB."""


class PicturesRoom:
    """How much room for pictures there is."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._left, self._bytes_left = most, most_bytes

    def take(self, size: int) -> bool:
        """Whether a picture of so many bytes has room, which is then taken."""
        if self._left < 1 or size > self._bytes_left:
            return False
        self._left -= 1
        self._bytes_left -= size
        return True


def as_content(picture: Picture) -> BinaryContent:
    """A picture as the library sends it."""
    return BinaryContent(picture.data, media_type=picture.media_type)


def newest(messages: Sequence[ModelMessage], room: PicturesRoom) -> list[ModelMessage]:
    """Messages with the newest pictures, as far as there is room for them. The text of their results names them all."""
    return [_kept(message, room) for message in reversed(messages)][::-1]


def has_any(messages: Sequence[ModelMessage]) -> bool:
    """Whether a tool returned a picture."""
    return any(
        _is_picture(one)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart) and isinstance(part.content, list)
        for one in part.content
    )


def without(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Messages without pictures."""
    return newest(messages, PicturesRoom(0))


def _kept(message: ModelMessage, room: PicturesRoom) -> ModelMessage:
    if not isinstance(message, ModelRequest) or not has_any([message]):
        return message
    return replace(message, parts=[_part(part, room) for part in message.parts])


def _part(part: Any, room: PicturesRoom) -> Any:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.content, list):
        return part
    kept = [one for one in part.content if not _is_picture(one) or room.take(len(one.data))]
    return replace(part, content=kept[0] if len(kept) == 1 else kept)


def _is_picture(content: Any) -> bool:
    return isinstance(content, BinaryContent) and content.is_image
