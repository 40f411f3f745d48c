"""The outputs of a notebook's cells before and after a change, as a person may be shown them. Pure.

What a worker wrote is never run: of an output there are PNG and JPEG pictures, which are what their bytes say, and else
its text. Of HTML, SVG, JavaScript and widgets it is only said that they are there.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workbench.rules.notebook_diff import NotebookCell, cells, pairs
from workbench.rules.runs.previews import picture_type

PICTURES = ("image/png", "image/jpeg")
MOST_PIXELS = 50_000_000
"""A picture with more is not shown: a small file can be one that fills the memory of a page."""
TEXT_CHARS = 20_000
"""As much of a text is shown."""
MOST_OUTPUTS = 100
"""The most outputs of a cell."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SIZES_OF_JPEG = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """An output: a picture (`data` in base64), a text, or why it is left out (`text`)."""

    form: Literal["picture", "text", "left_out"]
    text: str = ""
    media_type: str | None = None
    data: str = ""


@dataclass(frozen=True, slots=True)
class CellOutputs:
    """A cell whose outputs differ, with its places before and after, from 1; None where it is not.

    `stale`: those after are of one side of a merge, whose code was not that of the merge.
    """

    place: int | None
    old_place: int | None
    before: list[ShownOutput]
    after: list[ShownOutput]
    stale: bool


@dataclass(slots=True)
class Allowance:
    """How many bytes of pictures may be shown: of each, and of all that are still to come."""

    each: int
    left: int

    def take(self, size: int) -> bool:
        """Whether a picture of a size may be shown; then it counts."""
        if size > self.each or size > self.left:
            return False
        self.left -= size
        return True


def changed_outputs(old: str, new: str, allowance: Allowance) -> list[CellOutputs]:
    """The cells whose outputs a change of a notebook changed, added or removed.

    Raises:
        ValueError, and others of `notebook_diff.UNREADABLE`: one is no notebook of format 4.
    """
    return [
        CellOutputs(
            place=after.place if after else None,
            old_place=before.place if before else None,
            before=[_shown(output, allowance) for output in _outputs(before)[:MOST_OUTPUTS]],
            after=[_shown(output, allowance) for output in _outputs(after)[:MOST_OUTPUTS]],
            stale=_is_stale(after),
        )
        for before, after in pairs(cells(old), cells(new))
        if _outputs(before) != _outputs(after)
    ]


def _outputs(cell: NotebookCell | None) -> list[Any]:
    outputs = cell.content.get("outputs") if cell else None
    return outputs if isinstance(outputs, list) else []


def _is_stale(cell: NotebookCell | None) -> bool:
    own = cell.content.get("metadata", {}).get("workbench") if cell else None
    return isinstance(own, dict) and own.get("stale_outputs") is True


def _shown(output: Any, allowance: Allowance) -> ShownOutput:
    kind = output.get("output_type") if isinstance(output, dict) else None
    if kind == "stream":
        return _text(_joined(output.get("text")))
    if kind == "error":
        return _text(_joined(output.get("traceback"), "\n") or f"{output.get('ename')}: {output.get('evalue')}")
    data = output.get("data") if isinstance(output, dict) else None
    if not isinstance(data, dict):
        return ShownOutput("left_out", "An output of an unknown kind is not shown.")
    for media_type in PICTURES:
        if media_type in data:
            return _picture(_joined(data[media_type]), allowance)
    if isinstance(data.get("text/plain"), str | list):
        return _text(_joined(data["text/plain"]), _others(data))
    return ShownOutput("left_out", _others(data) or "An empty output.")


def _others(data: Mapping[str, Any]) -> str:
    """What is not shown of an output, as a sentence."""
    others = ", ".join(str(name)[:100] for name in list(data)[:10] if name != "text/plain")
    return f"Not shown: {others}." if others else ""


def _text(text: str, note: str = "") -> ShownOutput:
    plain = _ESCAPES.sub("", text)
    cut = f"… ({len(plain) - TEXT_CHARS:,} more characters)" if len(plain) > TEXT_CHARS else ""
    return ShownOutput("text", "\n".join(filter(None, [plain[:TEXT_CHARS].rstrip("\n"), cut, note])))


def _joined(value: Any, between: str = "") -> str:
    """A text of a notebook, which may be a list of texts."""
    return between.join(map(str, value)) if isinstance(value, list) else str(value or "")


def _picture(text: str, allowance: Allowance) -> ShownOutput:
    try:
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        content = b""
    media_type = picture_type(content)
    if media_type not in PICTURES:
        return ShownOutput("left_out", "A picture is not shown: it is no PNG or JPEG.")
    if not 0 < _pixels(content) <= MOST_PIXELS:
        return ShownOutput("left_out", f"A picture is not shown: it has more than {MOST_PIXELS:,} pixels, or no size.")
    if not allowance.take(len(content)):
        return ShownOutput("left_out", f"A picture of {len(content):,} bytes is not shown: that is too much.")
    return ShownOutput("picture", media_type=media_type, data=base64.b64encode(content).decode())


def _pixels(content: bytes) -> int:
    """How many pixels a PNG or a JPEG has; 0 if it does not say."""
    if content.startswith(b"\x89PNG"):
        return int.from_bytes(content[16:20]) * int.from_bytes(content[20:24])
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:  # the segments of a JPEG, up to the one with its size
        if content[at + 1] in _SIZES_OF_JPEG:
            return int.from_bytes(content[at + 5 : at + 7]) * int.from_bytes(content[at + 7 : at + 9])
        at += 2 + int.from_bytes(content[at + 2 : at + 4])
    return 0
