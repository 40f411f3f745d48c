"""What operations declare of commands and lists, as `python -m docs.generator` writes it into `declared.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from workbench.present.tables import Table

FILE = Path(__file__).with_suffix(".json")


@cache
def _declared() -> Mapping[str, Any]:
    whole: Mapping[str, Any] = json.loads(FILE.read_text("utf-8"))
    return whole


def declared() -> Sequence[Mapping[str, Any]]:
    """Each command that is one call: its words, operation, help, parameters, and how its result is shown."""
    rows: Sequence[Mapping[str, Any]] = _declared()["commands"]
    return rows


def commands_of_operations() -> Mapping[str, str]:
    """The command that runs an operation, of all that have one."""
    names: Mapping[str, str] = _declared()["operations"]
    return names


def rows_of(operation: str) -> str:
    """The field of a list that has its rows."""
    return str(_declared()["lists"][operation]["rows"])


def what_refreshes(operation: str) -> Sequence[str]:
    """The nouns of the events after which a list has other rows; `clock`: time changes them, too."""
    nouns: Sequence[str] = _declared()["lists"][operation]["refreshed_by"]
    return nouns


def table_of(operation: str, items: Sequence[Mapping[str, Any]], empty: str | None = None, note: str = "") -> Table:
    """Rows in the columns that an operation declares for what it lists.

    Args:
        empty: shown if there are none, instead of what is declared.
    """
    table = _table(operation)
    unused = {name for name in table["sparse"].split() if not any(item.get(name) for item in items)}
    columns = {name: head for name, head in table["columns"].items() if name not in unused}
    return Table.of(items, columns, table["empty"] if empty is None else empty, note=note)


def empty_of(operation: str) -> str:
    """What is shown of a list without rows."""
    return str(_table(operation)["empty"])


def _table(operation: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = next(row["table"] for row in declared() if row["operation"] == operation)
    return table
