"""Comments on lines of files: the lines they are about, where those are now, and how comments read as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from workbench.errors import BadInput, Hint


class LineComment(Protocol):
    """A comment on lines of a file; the numbers count from 1 and include the last one."""

    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def end_line(self) -> int | None: ...
    @property
    def text(self) -> str: ...


def quote(path: str, lines: Sequence[str] | None, first: int, last: int) -> list[str]:
    """The lines that a comment is about.

    Args:
        lines: of the file; None if there is no such file, or it is not text.

    Raises:
        BadInput: ``LINES_NOT_FOUND``.
    """
    if lines is None:
        raise BadInput("LINES_NOT_FOUND", f"There is no text file {path} at this commit.", Hint("get_worktree_diff"))
    if not 1 <= first <= last <= len(lines):
        place = place_of(path, first, last)
        raise BadInput("LINES_NOT_FOUND", f"There are no lines {place}: the file has {len(lines)} lines.")
    return list(lines[first - 1 : last])


def locate(lines: Sequence[str] | None, quoted: Sequence[str], first: int) -> int | None:
    """Where quoted lines stand now: the number of the first one, as near as possible to where it was; else None."""
    if lines is None:
        return None
    size = len(quoted)
    found = [at for at in range(len(lines) - size + 1) if list(lines[at : at + size]) == list(quoted)]
    return min(found, key=lambda at: abs(at + 1 - first)) + 1 if found else None


def place_of(path: str, first: int, last: int | None) -> str:
    """`model.py:3` or `model.py:3-5`."""
    return f"{path}:{first}" if last in (None, first) else f"{path}:{first}-{last}"


def as_text(note: str, comments: Sequence[LineComment], cells: Sequence[str]) -> str:
    """A request for changes as Markdown, for an agent that does the work.

    Args:
        cells: for each comment, the cell of a notebook that it is about; empty: none.
    """
    lines = [
        f"- {place_of(one.path, one.line, one.end_line)}{f', {cell}' if cell else ''}: {_indented(one.text)}"
        for one, cell in zip(comments, cells, strict=True)
    ]
    return "\n\n".join(filter(None, [note, "\n".join(lines)]))


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n  ")
