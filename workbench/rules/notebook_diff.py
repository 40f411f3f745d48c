"""The changes of a notebook, cell by cell, in the form of a unified diff. Pure.

The lines are those of cells' sources; their numbers are those of the lines of the file that have them, so that comments
on lines are about the file. Of outputs and metadata it says only that they changed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"
_CONTEXT = 3
EMPTY = '{"nbformat": 4, "cells": []}'
"""What a notebook is compared with that was added or removed."""
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading any JSON, or none, as a notebook raises."""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell: its place in the notebook from 1, its source, and the line of the file that the source begins in."""

    place: int
    content: dict[str, Any]
    lines: tuple[str, ...]
    first_line: int

    @property
    def name(self) -> tuple[str, ...]:
        return (self.content["id"],) if "id" in self.content else self.lines


def as_patch(old: str, new: str) -> str | None:
    """The hunks of the changes, one or more a cell; empty if no cell changed.

    None if one is no notebook of format 4, or has no line of its own for each line of a source.
    """
    try:
        return "".join(_hunks(cells(old), cells(new)))
    except UNREADABLE:
        return None


def cell_at(text: str, line: int) -> str | None:
    """What the cell is called that has a line of the file (counted from 1), such as `cell 3 (id 4f2a), code`; None
    without one."""
    try:
        all_cells = cells(text)
    except UNREADABLE:
        return None
    cell = next((cell for cell in reversed(all_cells) if cell.first_line <= line), None)
    if cell is None or line >= cell.first_line + max(1, len(cell.lines)):
        return None
    name = f" (id {cell.content['id']})" if "id" in cell.content else ""
    return f"cell {cell.place}{name}, {cell.content['cell_type']}"


def cells(text: str) -> list[NotebookCell]:
    """The cells of a notebook.

    Raises:
        ValueError, and others of `UNREADABLE`: it is none of format 4, or has no line of its own for each of a source.
    """
    breaks = [found.start() for found in re.finditer("\n", text)]
    members = dict(_members(text, _skip(text, 0)))
    if _DECODER.raw_decode(text, members["nbformat"])[0] != 4:
        raise ValueError("This is not a notebook of format 4.")
    return [_cell(text, place, start, breaks) for place, start in enumerate(_items(text, members["cells"]), 1)]


def _cell(text: str, place: int, start: int, breaks: Sequence[int]) -> NotebookCell:
    content = _DECODER.raw_decode(text, start)[0]
    source = dict(_members(text, start))["source"]
    starts = [source] if text[source] == '"' else list(_items(text, source))
    first = bisect_right(breaks, starts[0] if starts else source) + 1
    lines = tuple(str(_DECODER.raw_decode(text, at)[0]).removesuffix("\n") for at in starts)
    if any(
        "\n" in line or bisect_right(breaks, at) + 1 != first + n
        for n, (at, line) in enumerate(zip(starts, lines, strict=True))
    ):
        raise ValueError("A line of a source has no line of its own.")
    return NotebookCell(place, content, lines, first)


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The names of an object's members, and where their values begin."""
    at = _expect(text, at, "{")
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _expect(text, _skip(text, at), ":")
        yield name, at
        at = _next(text, _DECODER.raw_decode(text, at)[1])


def _items(text: str, at: int) -> Iterator[int]:
    """Where the items of an array begin."""
    at = _expect(text, at, "[")
    while text[at] != "]":
        yield at
        at = _next(text, _DECODER.raw_decode(text, at)[1])


def _next(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at


def _expect(text: str, at: int, what: str) -> int:
    if text[at : at + 1] != what:
        raise ValueError(f"{what} is missing.")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _hunks(before: Sequence[NotebookCell], after: Sequence[NotebookCell]) -> Iterator[str]:
    old_line = new_line = 1
    for one, other in pairs(before, after):
        old_line = one.first_line if one else old_line
        new_line = other.first_line if other else new_line
        yield from _cell_hunks(one, other, old_line, new_line)


def pairs(
    before: Sequence[NotebookCell], after: Sequence[NotebookCell]
) -> Iterator[tuple[NotebookCell | None, NotebookCell | None]]:
    """The cells of two versions in order, those that are the same in both (by id, else by source) together."""
    names = [cell.name for cell in before], [cell.name for cell in after]
    for kind, start, end, new_start, new_end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        yield from _pairs(before[start:end], after[new_start:new_end], kind == "equal")


def _pairs(
    before: Sequence[NotebookCell], after: Sequence[NotebookCell], are_same: bool
) -> Iterator[tuple[NotebookCell | None, NotebookCell | None]]:
    if are_same:
        yield from zip(before, after, strict=True)
        return
    yield from ((cell, None) for cell in before)
    yield from ((None, cell) for cell in after)


def _cell_hunks(one: NotebookCell | None, other: NotebookCell | None, old_line: int, new_line: int) -> Iterator[str]:
    old, new = one.lines if one else (), other.lines if other else ()
    title = _title(one, other)
    groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT))
    if not groups and title:
        first = "".join(f" {line}\n" for line in new[:1])
        yield f"@@ -{old_line},{len(new[:1])} +{new_line},{len(new[:1])} @@ {title}\n{first}"
    for group in groups:
        start, end, new_start, new_end = group[0][1], group[-1][2], group[0][3], group[-1][4]
        yield (
            f"@@ -{old_line + start},{end - start} +{new_line + new_start},{new_end - new_start} @@ "
            f"{title or _label(other or one)}\n"
        )
        for kind, i, j, k, m in group:
            if kind == "equal":
                yield from (f" {line}\n" for line in old[i:j])
            else:
                yield from (f"-{line}\n" for line in old[i:j])
                yield from (f"+{line}\n" for line in new[k:m])


def _title(one: NotebookCell | None, other: NotebookCell | None) -> str:
    """What happened to a cell, besides to its source; empty: nothing."""
    if one is None or other is None:
        return f"{_label(one or other)}: {'added' if one is None else 'removed'}"
    keys = [key for key in ("cell_type", "metadata", "attachments") if one.content.get(key) != other.content.get(key)]
    changes = [key.replace("_", " ") for key in keys]
    if one.content.get("outputs") != other.content.get("outputs"):
        changes.append(f"outputs ({', '.join(_kinds(other)) or 'none any more'})")
    return f"{_label(other)}: {', '.join(changes)} changed" if changes else ""


def _label(cell: NotebookCell | None) -> str:
    return f"cell {cell.place}, {cell.content['cell_type']}" if cell else ""


def _kinds(cell: NotebookCell) -> list[str]:
    """What the outputs of a cell are: the types of data, streams, errors."""
    outputs = cell.content.get("outputs") or []
    kinds = [kind for output in outputs for kind in output.get("data", {output.get("name") or output.get("ename"): 0})]
    return list(dict.fromkeys(map(str, kinds)))
