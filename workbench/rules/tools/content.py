"""Content blocks, as MCP has them: as text, and the pictures among them. What a picture is, its bytes say."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.rules.runs.previews import picture_type
from workbench.rules.tools.results import as_json

LARGEST_PICTURE = 3_750_000
"""Bytes. What is larger is named, and not shown or sent: no provider takes more than 5 MB of base64."""
MOST_PICTURES = 20
"""How many of one result are shown and sent."""

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a page and a model can show.

    Args:
        media_type: as its bytes say, whatever the tool calls it.
    """

    media_type: str
    data: bytes

    @property
    def words(self) -> str:
        """What stands in its place where it cannot be seen."""
        return words(len(self.data), self.media_type)

    @property
    def address(self) -> str:
        """It as a ``data:`` URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


def words(size: int, media_type: str) -> str:
    """What is said of a picture of so many bytes."""
    return f"a picture of {size:,} bytes, {media_type}"


NOTE = "workbench/note"
"""The key in the ``_meta`` of a text that Workbench adds to a result."""


def note(text: str) -> dict[str, Any]:
    """A text that Workbench adds to a result; whoever reads the result as text gets it, too."""
    return {"type": "text", "text": text, "_meta": {NOTE: True}}


def is_note(block: Block) -> bool:
    """See `note`."""
    return isinstance(meta := block.get("_meta"), Mapping) and NOTE in meta


def picture(block: Any) -> Picture | None:
    """The picture in a block, also in an embedded resource; None if it is something else."""
    match block:
        case {"type": "image", "data": str(text)} | {"type": "resource", "resource": {"blob": str(text)}}:
            try:
                data = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return None
            media_type = picture_type(data[:16])
            return Picture(media_type, data) if media_type else None
    return None


def pictures(content: Any) -> list[Picture]:
    """The pictures of a result that are shown and sent. Takes time for large ones."""
    found = filter(None, map(picture, content if isinstance(content, list) else ()))
    return [one for one in found if len(one.data) <= LARGEST_PICTURE][:MOST_PICTURES]


def has_pictures(content: Iterable[Block]) -> bool:
    """Whether a picture is among blocks."""
    return any(picture(block) for block in content)


def as_text(content: Iterable[Block]) -> str:
    """What can be read of blocks: pictures and other data are named."""
    return "\n".join(map(block_text, content))


def block_text(block: Block) -> str:
    """A block as text."""
    if (seen := picture(block)) is not None:
        return f"[{seen.words}]"
    match block:
        case {"type": "text", "text": str(text)} | {"resource": {"text": str(text)}}:
            return text
        case {"data": str(data), "mimeType": str(media)} | {"resource": {"blob": str(data), "mimeType": str(media)}}:
            return f"[{media}, {len(data) * 3 // 4:,} bytes]"
    return as_json(block)


def masked(content: Sequence[Any], mask: Callable[[Any], Any]) -> list[Any]:
    """Blocks with their texts masked: in the base64 of a picture, what looks like a secret is none."""
    return [block if picture(block) else mask(block) for block in content]
