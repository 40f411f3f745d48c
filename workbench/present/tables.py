"""Tables for people: the same rows as text in a terminal and as HTML in a notebook.

`rich` is not used: it passes escape sequences and text direction marks through, cuts tables at 80 columns where there
is no terminal, has no HTML tables, takes 20 ms longer to import, and 80 times as long for a thousand rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from numbers import Real
from typing import Any

from workbench.present.inert import as_html, inert, prose_as_html

_UTC = re.compile(r"[12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_WORD = re.compile(r"\S{1,40}")
_MARKS = {
    "pending": ("○", "#6b7280"),
    "blocked": ("◌", "#6b7280"),
    "claimed": ("◔", "#1976d2"),
    "in progress": ("◑", "#1976d2"),
    "completed": ("●", "#2e7d32"),
    "failed": ("✕", "#c62828"),
    "cancelled": ("⊘", "#6b7280"),
    "running": ("◑", "#1976d2"),
    "lost": ("?", "#c62828"),
}


TOLD = ("checked", "flaky", "unchanged")
"""The evidence that the state of a completed task says."""


class StateCell(str):
    """The state of a task or run. In HTML its mark differs in shape and colour, so that neither alone is needed."""

    __slots__ = ()

    @classmethod
    def of(cls, status: str, blocked: bool = False, evidence: str | None = None) -> StateCell:
        """The state of a task from its status, and what tells that it is done, if that is more or less than a word."""
        told = f", {evidence}" if status == "completed" and evidence in TOLD else ""
        return cls("blocked" if blocked else f"{status.replace('_', ' ')}{told}")

    @property
    def mark(self) -> tuple[str, str]:
        """A character and its colour; both empty if the state has none."""
        return _MARKS.get(self.partition(",")[0], ("", ""))

    def html(self) -> str:
        """The mark and the word, escaped."""
        mark, colour = self.mark
        return f'<span style="color:{colour}">{mark}</span> {as_html(self)}' if mark else as_html(self)


class CommandCell(str):
    """A command to type next, which this program proposes: a notebook shows it as one of its own."""

    __slots__ = ()


class CellLines(str):
    """Sentences in lines of their own, where other cells are one line."""

    __slots__ = ()

    def text(self) -> list[str]:
        """The lines for a terminal."""
        return [inert(line.expandtabs()) for line in self.splitlines()] or [""]

    def html(self) -> str:
        """The lines, escaped."""
        return f'<span style="white-space: pre-line">{prose_as_html(self)}</span>'


class CellOutput(CellLines):
    """What a program wrote, below a first line about it: its lines keep their columns, and all after five are folded.

    A page opens them; a terminal says how many there are, and cuts lines that are very long.
    """

    __slots__ = ()
    SHOWN = 5
    WIDTH = 200

    def text(self) -> list[str]:
        """See `CellLines.text`."""
        lines = [line if len(line) <= self.WIDTH else f"{line[: self.WIDTH - 1]}…" for line in super().text()]
        more = len(lines) - 1 - self.SHOWN
        return [*lines[: self.SHOWN + 1], f"… {self._more(more)}: --json"] if more > 0 else lines

    def html(self) -> str:
        """See `CellLines.html`."""
        first, *rest = self.splitlines() or [""]
        shown, more = rest[: self.SHOWN], rest[self.SHOWN :]
        summary = f"<summary>{self._more(len(more))}</summary>"
        opened = f"<details>{summary}{_pre(more)}</details>" if more else ""
        return prose_as_html(first) + (_pre(shown) if shown else "") + opened

    @staticmethod
    def _more(lines: int) -> str:
        return f"{lines:,} more {'line' if lines == 1 else 'lines'}"


def _joined(value: Any) -> Any:
    """A value of a row; names one after another."""
    return ", ".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


def _pre(lines: Iterable[str]) -> str:
    text = as_html("\n".join(lines))
    return f'<pre style="white-space: pre-wrap; text-align: left">{text}</pre>'


@dataclass(frozen=True)
class Table:
    """Rows under headings, with lines above (`lead`) and below (`note`). `data` is the same for programs.

    A table without rows shows `lead` and `empty`.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    empty: str = "Nothing here yet."
    data: Any = field(default=None, repr=False)
    note: str = ""
    lead: str = ""

    @classmethod
    def of(
        cls,
        items: Sequence[Mapping[str, Any]],
        columns: Mapping[str, str],
        empty: str,
        data: Any = None,
        note: str = "",
    ) -> Table:
        """A table of some fields of mappings; `columns` maps field to heading."""
        rows = [[_joined(item.get(name)) for name in columns] for item in items]
        return cls(list(columns.values()), rows, empty, items if data is None else data, note)

    @property
    def _heads(self) -> list[Sequence[str]]:
        """The row of headings, if there are any."""
        return [self.columns] if any(self.columns) else []

    def text(self) -> str:
        """Aligned columns, without a trailing line end."""
        if not self.rows:
            return inert("\n".join(filter(None, (self.lead, self.empty))))
        cells = [line for row in (*self._heads, *self.rows) for line in _text_lines(row)]
        widths = [max(_width(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        body = "\n".join(line.rstrip() for line in lines)
        return "\n".join(filter(None, (inert(self.lead), body, inert(self.note))))

    def html(self) -> str:
        """An HTML table; every cell is escaped."""
        lead = f'<p style="white-space: pre-line">{prose_as_html(self.lead)}</p>' if self.lead else ""
        if not self.rows:
            return lead + (f"<p><em>{prose_as_html(self.empty)}</em></p>" if self.empty else "")
        sides = [_side([row[at] for row in self.rows]) for at in range(len(self.columns))]
        head = "".join(_row("th", heads, sides) for heads in self._heads)
        body = "".join(_row("td", row, sides) for row in self.rows)
        note = f'<p style="white-space: pre-line"><em>{prose_as_html(self.note)}</em></p>' if self.note else ""
        return f"{lead}<table><thead>{head}</thead><tbody>{body}</tbody></table>{note}"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


@dataclass(frozen=True)
class TablePage:
    """A sequence of tables with titles."""

    parts: Sequence[tuple[str, Table]]
    data: Any = field(default=None, repr=False)

    def text(self) -> str:
        """Each title above its table."""
        return "\n\n".join("\n".join(filter(None, (inert(title), table.text()))) for title, table in self.parts)

    def html(self) -> str:
        """The same in HTML; titles are escaped too."""
        return "".join((f"<h4>{as_html(title)}</h4>" if title else "") + table.html() for title, table in self.parts)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def _text_lines(row: Sequence[Any]) -> Iterable[Sequence[str]]:
    """The lines that a row takes in a terminal."""
    cells = [cell.text() if isinstance(cell, CellLines) else [plain(cell)] for cell in row]
    return zip_longest(*cells, fillvalue="")


def _width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # rarely needed

    return wcswidth(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _side(cells: Sequence[Any]) -> str:
    """The side to which a column's cells are aligned: left for text, right for numbers. Each cell has a style of its
    own, because JupyterLab's aligns all cells to the right.
    """
    numbers = [isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells if cell is not None]
    return "right" if numbers and all(numbers) else "left"


def _row(kind: str, cells: Iterable[Any], sides: Sequence[str]) -> str:
    shown = (
        f'<{kind} style="text-align: {side}{_wrapping(cell)}">{_cell(cell)}</{kind}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


LONG = 30
"""Letters from which on a text in a cell is a long one."""


def _wrapping(value: Any) -> str:
    """The style of a cell that stays on one line although it could be broken: a time, a state, a name with hyphens.
    A long text keeps the width of a few words, however narrow the page is.
    """
    text = plain(value)
    is_name = "-" in text and _WORD.fullmatch(text)
    is_whole = is_name or _time(value) is not None or (isinstance(value, StateCell) and value.mark[0])
    return "; white-space: nowrap" if is_whole else "; min-width: 14em" if len(text) > LONG else ""


def _cell(value: Any) -> str:
    if isinstance(value, StateCell | CellLines):
        return value.html()
    if (at := _time(value)) is not None:
        return f'<time datetime="{at.isoformat()}" title="{at.isoformat()}">{plain(value)}</time>'
    return as_html(plain(value))


def plain(value: Any) -> str:
    """A value on one line, without anything that a terminal or a page obeys; times in the zone of this computer."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if (at := _time(value)) is not None:
        return f"{at:%Y-%m-%d %H:%M:%S}"
    return inert(" ".join(str(value).split()))


def _time(value: Any) -> datetime | None:
    """The time that a value is, in the zone of this computer: a `datetime`, or the text that operations return."""
    with suppress(ValueError, OverflowError, OSError):  # any text may have the form of a time
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone()
        if isinstance(value, str) and _UTC.fullmatch(value):
            return datetime.fromisoformat(value).astimezone()
    return None
