"""The result of `wb.call`: the data of an operation, which shows itself in a cell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.present.tables import Table, TablePage, plain

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter

ROWS = 50
COLUMNS = 12
LETTERS = 80
"""The most that is shown of a list, of its items and of a text; the data is whole."""
TOKEN = re.compile(r"\b(wb[ao]_)[\w-]+")
"""Tokens are not shown: a notebook is saved, and shared, with what its cells show."""
EMPTY: tuple[Any, ...] = (None, "", [], {})


class Result(dict[str, Any]):
    """An operation's result: a dict in every way, but shown as tables.

    A cell and `print` show the first rows of each list of objects, long texts cut, times in the zone of this computer,
    and tokens only by their beginning. `repr` is that of a dict.
    """

    def page(self) -> TablePage:
        """Each list of objects as a table, below a table of everything else that has a value."""
        lists = {name: value for name, value in self.items() if _is_list_of_objects(value)}
        other = {name: value for name, value in self.items() if name not in lists and value not in (None, "")}
        facts = [[_words(name), "none" if value in ([], {}) else _brief(value)] for name, value in other.items()]
        first = [("", Table(["", ""], facts, "Nothing."))] if facts or not lists else []
        return TablePage([*first, *((_title(name, items), _table(items)) for name, items in lists.items())], dict(self))

    def __str__(self) -> str:
        return self.page().text()

    def _repr_html_(self) -> str:
        return self.page().html()

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        alone = len(printer.stack) <= 1 and not cycle
        printer.text(str(self) if alone else repr(self))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _title(name: str, items: Sequence[Any]) -> str:
    return f"{_words(name)}: {len(items):,}"


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """The first items, and their first keys that have a value in any of them."""
    keys = dict.fromkeys(key for item in items for key in item)
    used = [key for key in keys if any(item.get(key) not in EMPTY for item in items)]
    more = len(items) - ROWS
    notes = [f"… and {more:,} more"] if more > 0 else []
    notes += [f"not shown: {', '.join(used[COLUMNS:])}"] if used[COLUMNS:] else []
    rows = [[_brief(item.get(key)) for key in used[:COLUMNS]] for item in items[:ROWS]]
    return Table([_words(key) for key in used[:COLUMNS]], rows, note="; ".join(notes))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _brief(value: Any) -> Any:
    """A value for a cell: numbers and times as they are, texts and structures cut."""
    if value in EMPTY:
        return None
    if isinstance(value, bool | int | float):
        return value
    text = TOKEN.sub(r"\1…", _text(value))
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        fields = {name: item for name, item in value.items() if item not in ([], {})} or value
        return ", ".join(f"{_words(str(name))}: {_text(item)}" for name, item in fields.items())
    if isinstance(value, list) and not any(isinstance(item, list | Mapping) for item in value):
        return ", ".join(map(plain, value))
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "none" if value is None else plain(value)
