"""Tables for people: the same rows as text in a terminal and as HTML in a notebook.

`rich` is not used: it passes escape sequences and text direction marks through, cuts tables at 80 columns where there
is no terminal, has no HTML tables, takes 20 ms longer to import, and 80 times as long for a thousand rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.inert import as_html, inert

_MARKS = {
    "pending": ("○", "#6b7280"),
    "blocked": ("◌", "#6b7280"),
    "claimed": ("◔", "#1976d2"),
    "in progress": ("◑", "#1976d2"),
    "completed": ("●", "#2e7d32"),
    "failed": ("✕", "#c62828"),
    "cancelled": ("⊘", "#6b7280"),
}


class State(str):
    """The state of a task. In HTML its mark differs in shape and colour, so that neither alone is needed to tell."""

    __slots__ = ()

    @classmethod
    def of(cls, status: str, blocked: bool = False) -> State:
        """The state of a task from its status."""
        return cls("blocked" if blocked else status.replace("_", " "))

    @property
    def mark(self) -> tuple[str, str]:
        """A character and its colour; both empty if the state has none."""
        return _MARKS.get(self.partition(",")[0], ("", ""))

    def html(self) -> str:
        """The mark and the word, escaped."""
        mark, colour = self.mark
        return f'<span style="color:{colour}">{mark}</span> {as_html(self)}' if mark else as_html(self)


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
        rows = [[item.get(name) for name in columns] for item in items]
        return cls(list(columns.values()), rows, empty, items if data is None else data, note)

    def text(self) -> str:
        """Aligned columns, without a trailing line end."""
        if not self.rows:
            return inert("\n".join(filter(None, (self.lead, self.empty))))
        cells = [[plain(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(_width(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        body = "\n".join(line.rstrip() for line in lines)
        return "\n".join(filter(None, (inert(self.lead), body, inert(self.note))))

    def html(self) -> str:
        """An HTML table; every cell is escaped."""
        lead = f'<p style="white-space: pre-line">{as_html(self.lead)}</p>' if self.lead else ""
        if not self.rows:
            return lead + (f"<p><em>{as_html(self.empty)}</em></p>" if self.empty else "")
        head = "".join(f"<th>{as_html(plain(c))}</th>" for c in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{_marked(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        note = f'<p style="white-space: pre-line"><em>{as_html(self.note)}</em></p>' if self.note else ""
        return f"{lead}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


@dataclass(frozen=True)
class Page:
    """A sequence of tables with titles."""

    parts: Sequence[tuple[str, Table]]
    data: Any = field(default=None, repr=False)

    def text(self) -> str:
        """Each title above its table."""
        return "\n\n".join(f"{inert(title)}\n{table.text()}" for title, table in self.parts)

    def html(self) -> str:
        """The same in HTML; titles are escaped too."""
        return "".join(f"<h4>{as_html(title)}</h4>{table.html()}" for title, table in self.parts)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def _width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # rarely needed

    return wcswidth(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _marked(value: Any) -> str:
    return value.html() if isinstance(value, State) else as_html(plain(value))


def plain(value: Any) -> str:
    """A value on one line, without anything that a terminal or a page obeys."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return inert(" ".join(str(value).split()))
