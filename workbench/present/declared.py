"""The commands that operations declare, as `python -m tests.docs` has written them into `declared.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from workbench.present.tables import Table

FILE = Path(__file__).with_suffix(".json")


@cache
def declared() -> Sequence[Mapping[str, Any]]:
    """Each command: its words, operation, help, parameters, and how its result is shown."""
    rows: Sequence[Mapping[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return rows


def commands_of_operations() -> Mapping[str, str]:
    """The command that runs an operation; of several the first that is declared."""
    return {row["operation"]: row["words"].removesuffix(" list") for row in reversed(declared())}


def table_of(operation: str, items: Sequence[Mapping[str, Any]], empty: str | None = None, note: str = "") -> Table:
    """Rows in the columns that an operation declares for what it lists.

    Args:
        empty: shown if there are none, instead of what is declared.
    """
    table = _table(operation)
    is_used = any(item.get(table["sparse"]) for item in items)
    columns = {name: head for name, head in table["columns"].items() if is_used or name != table["sparse"]}
    return Table.of(items, columns, table["empty"] if empty is None else empty, note=note)


def empty_of(operation: str) -> str:
    """What is shown of a list without rows."""
    return str(_table(operation)["empty"])


def _table(operation: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(row["table"] for row in declared() if row["operation"] == operation)
    return found
