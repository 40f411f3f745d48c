"""What requests to models cost, and what was said to them, as objects of a notebook: `wb.spending()`, `task.cost`,
`task.transcript()`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from kernel_ext.libraries import imported
from kernel_ext.objects.kinds import NotebookSession
from workbench.cli.keys import read_transcript, said
from workbench.present.inert import as_html, inert
from workbench.present.tables import Table

if TYPE_CHECKING:
    import pandas

ALL_DAYS = 36_500
SHOWN = 100
"""The most messages of a transcript that a cell shows: its last ones."""
COLUMNS = {
    "name": "",
    "provider": "provider",
    "requests": "requests",
    "input_tokens": "in",
    "cached_tokens": "cached",
    "cache_write_tokens": "written",
    "output_tokens": "out",
    "reasoning_tokens": "thinking",
    "cost_usd": "cost",
}
COUNTED = ("requests", "unpriced", "estimated")
FOLDED = frozenset({"system", "tools"})


class Spending:
    """What some requests to models used and cost. A cell shows it as a table; a cost that is not known is `unknown`.

    `usd` is the sum of the costs that are known, and None if none is; `unpriced` is how many requests it leaves out.
    """

    def __init__(self, costs: Sequence[Mapping[str, Any]], by: str) -> None:
        self.rows = [dict(cost) for cost in costs]
        self.by = by

    @property
    def usd(self) -> float | None:
        """In US dollars."""
        known = [row["cost_usd"] for row in self.rows if row["cost_usd"] is not None]
        return sum(known) if known else None

    @property
    def unpriced(self) -> int:
        """The requests whose price is not known."""
        return sum(row["unpriced"] for row in self.rows)

    @property
    def requests(self) -> int:
        """How many there were."""
        return sum(row["requests"] for row in self.rows)

    def frame(self) -> pandas.DataFrame:
        """A DataFrame with a row for each name, and its tokens by class; a cost that is not known is missing."""
        imported("pandas")
        import pandas

        return pandas.DataFrame(self.rows)

    def _table(self) -> Table:
        rows = [row | {"cost_usd": cost_text(row["cost_usd"], row["unpriced"])} for row in self.rows]
        told = {name for row in self.rows for name, value in row.items() if value not in (None, 0)}
        shown = {name: head for name, head in COLUMNS.items() if name in told or name in ("name", "cost_usd")}
        lead = f"{self.requests:,} {'request' if self.requests == 1 else 'requests'} to models"
        note = f"{lead}, {cost_text(self.usd, self.unpriced)}."
        return Table.of(rows, shown | {"name": self.by}, "No request to a model was made.", self.rows, note)

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def cost_text(usd: float | None, unpriced: int) -> str:
    """A cost in words: what is not known is said, and not 0."""
    if usd is None:
        return "unknown" if unpriced else "–"
    known = f"${usd:.{4 if 0 < usd < 0.1 else 2}f}"
    return f"{known} + unknown" if unpriced else known


def spending(notebook: NotebookSession, by: str, days: int = ALL_DAYS, **which: Any) -> Spending:
    """What some requests used and cost.

    Args:
        which: other arguments of the operation `list_costs`.

    Raises:
        WorkbenchError: what the operation raises.
    """
    return Spending(notebook.call("list_costs", by=by, days=days, **which)["costs"], by)


class Transcript(Sequence[dict[str, Any]]):
    """What an attempt's program and its model said to each other, each message once. A cell shows its end, with calls
    of tools folded; each is `{"role": …, "parts": […]}` with when and after which it came."""

    def __init__(self, page: Mapping[str, Any]) -> None:
        self.attempt: int | None = page["attempt"]
        self.task_id: int = page["task_id"]
        self._messages: list[dict[str, Any]] = page["messages"]

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._messages[at]

    def __len__(self) -> int:
        return len(self._messages)

    def frame(self) -> pandas.DataFrame:
        """A DataFrame with a row for each message: when it came, from whom, what it is, and its text."""
        imported("pandas")
        import pandas

        rows = [
            {
                "at": message["at"],
                "role": message["role"],
                "kind": _kind(part),
                "tool": part.get("tool_call"),
                "text": said(part),
                "chain": message["chain"],
                "node": message["node"],
            }
            for message in self._messages
            for part in message["parts"]
        ]
        frame = pandas.DataFrame(rows, columns=["at", "role", "kind", "tool", "text", "chain", "node"])
        frame["at"] = pandas.to_datetime(frame["at"], utc=True, format="ISO8601")
        return frame

    @property
    def _earlier(self) -> str:
        left_out = len(self) - SHOWN
        return f"{left_out:,} earlier messages are left out: .frame() has all." if left_out > 0 else ""

    def __repr__(self) -> str:
        if not self._messages:
            return "Nothing was said by way of this server."
        lines = [f"[{message['role']}] {said(part)}" for message in self[-SHOWN:] for part in message["parts"]]
        return inert("\n".join(filter(None, (self._earlier, *lines))))

    def _repr_html_(self) -> str:
        if not self._messages:
            return f"<p><em>{as_html(repr(self))}</em></p>"
        note = f"<p><em>{as_html(self._earlier)}</em></p>" if self._earlier else ""
        return note + "".join(map(_as_html, self[-SHOWN:]))


def _kind(part: Mapping[str, Any]) -> str:
    return next(kind for kind in ("tool_call", "tool_result", "thinking", "text", "other") if kind in part)


def _as_html(message: Mapping[str, Any]) -> str:
    """A message: what was said is read at once, what was called and returned is opened."""
    role = message["role"]
    if role in FOLDED:
        return _folded(role, ", ".join(map(said, message["parts"])))
    return "".join(_part_as_html(role, part) for part in message["parts"])


def _part_as_html(role: str, part: Mapping[str, Any]) -> str:
    if "tool_call" in part:
        return _folded(part["tool_call"], json.dumps(part["arguments"], ensure_ascii=False, indent=1))
    if "tool_result" in part:
        return _folded("result" if not part.get("failed") else "result, failed", " ".join(map(said, part["content"])))
    if "thinking" in part:
        return _folded("thinking", part["thinking"])
    return f'<p style="white-space: pre-wrap; overflow-wrap: anywhere"><b>{as_html(role)}</b> {as_html(said(part))}</p>'


def _folded(head: str, text: str) -> str:
    line = " ".join(text.split())
    short = f"{line[:100]}…" if len(line) > 100 else line
    whole = f'<pre style="white-space: pre-wrap; overflow-wrap: anywhere">{as_html(text)}</pre>'
    return f"<details><summary><b>{as_html(head)}</b> {as_html(short)}</summary>{whole}</details>"


def transcript(notebook: NotebookSession, task_id: int, attempt: int | None, containing: str) -> Transcript:
    """The whole transcript of an attempt, or the messages of it that contain a text.

    Raises:
        WorkbenchError: see the operation ``get_transcript``.
    """
    which = {"task_id": task_id, "containing": containing} | ({} if attempt is None else {"attempt": attempt})
    return Transcript(read_transcript(notebook, which))
