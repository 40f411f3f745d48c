"""How a file is shown: as a picture, a table, or text. Pure.

What a file is comes from its bytes, not from its name alone. Nothing that a page could run is ever a picture: SVG and
HTML are shown as text.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

Form = Literal["picture", "table", "markdown", "json", "text", "file"]

TEXT_BYTES = 200_000
"""As much of a text is shown."""
PICTURE_BYTES = 5_000_000
"""The largest picture that is shown."""
ROWS, COLUMNS, CELL = 100, 50, 500
"""The most rows and columns of a table, and characters of a cell, that are shown."""

_SIGNATURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
_TABLES = {".csv": ",", ".tsv": "\t"}
_TABLE_TYPES = {"text/csv": ",", "text/tab-separated-values": "\t"}
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Preview:
    """What is shown of a file.

    Attributes:
        media_type: of a picture, as its bytes say.
        cut: there is more of it.
    """

    form: Form
    media_type: str | None = None
    text: str | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    cut: bool = False


def picture_type(head: bytes) -> str | None:
    """The media type of a picture that a page can show and not run; None for anything else."""
    for media_type, beginnings in _SIGNATURES.items():
        if head.startswith(beginnings):
            return media_type
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def preview(name: str, media_type: str, head: bytes, size: int) -> Preview:
    """What is shown of a file.

    Args:
        head: its first bytes, at least `TEXT_BYTES` if it has as many.
        size: of the whole file.
    """
    if (picture := picture_type(head)) is not None:
        return Preview("picture", picture) if size <= PICTURE_BYTES else Preview("file")
    cut = size > TEXT_BYTES
    text = _decoded(head[:TEXT_BYTES], cut)
    if text is None:
        return Preview("file")
    suffix = PurePosixPath(name).suffix.lower()
    if separator := _TABLES.get(suffix) or _TABLE_TYPES.get(media_type):
        return _table(text, separator, cut) or Preview("text", text=text, cut=cut)
    if suffix == ".json" or media_type == "application/json":
        return _json(text, cut)
    if suffix in (".md", ".markdown") or media_type == "text/markdown":
        return Preview("markdown", text=text, cut=cut)
    return Preview("text", text=text, cut=cut)


def cells(columns: list[Any], rows: list[Any], cut: bool) -> Preview:
    """A table with texts in its cells, cut to what is shown."""
    shown = [[_cell(value) for value in row[:COLUMNS]] for row in rows[:ROWS]]
    more = cut or len(rows) > ROWS or len(columns) > COLUMNS
    return Preview("table", columns=[_cell(name) for name in columns[:COLUMNS]], rows=shown, cut=more)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _decoded(head: bytes, cut: bool) -> str | None:
    """The text, up to the last whole character; None if it is none."""
    if b"\0" in head:
        return None
    for dropped in range(4 if cut else 1):
        try:
            return head[: len(head) - dropped].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
    return None


def _table(text: str, separator: str, cut: bool) -> Preview | None:
    """The first rows of a table, under the names in its first line, all of one length; None if it has none.

    A table with commas may have semicolons, as programs write it where a comma begins the decimals.
    """
    head = text.partition("\n")[0]
    if separator == "," and head.count(";") > head.count(","):
        separator = ";"
    try:
        lines = []
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=not cut):
            if line:
                lines.append(line)
            if len(lines) > ROWS + 1:
                break
    except csv.Error:
        return None
    if cut and len(lines) <= ROWS + 1:
        lines = lines[:-1]  # it may not be whole
    width = max(map(len, lines), default=0)
    lines = [[*line, *[""] * (width - len(line))] for line in lines]
    return cells(lines[0], lines[1:], cut) if lines else None


def _json(text: str, cut: bool) -> Preview:
    """Indented, if it is whole and valid; else as it is."""
    try:
        shown = text if cut else json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return Preview("text", text=text, cut=cut)
    return Preview("json", text=shown[:TEXT_BYTES], cut=cut or len(shown) > TEXT_BYTES)
