"""What a panel shows, as tables of rows, and what changed between two states of them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = dict[str, Any]
Tables = Mapping[str, Mapping[Any, Row]]
"""Rows by their `id`, by the name of their table."""
Change = dict[str, dict[str, list[Any]]]
"""`{table: {"set": [row, …], "gone": [id, …]}}`, only tables in which something changed."""

_TASK_FIELDS = (
    "id",
    "title",
    "status",
    "persona_id",
    "worktree",
    "plan",
    "name",
    "parent_task_id",
    "assigned_agent_id",
    "progress",
    "attempt",
    "dependencies",
)


def flatten(nodes: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of a task tree (`get_task_tree`), parents first, each with its `depth`."""
    waiting = [(node, 0) for node in reversed(list(nodes))]
    while waiting:
        node, depth = waiting.pop()
        yield task_row(node, depth)
        waiting.extend((child, depth + 1) for child in reversed(node["children"]))


def task_row(task: Mapping[str, Any], depth: int) -> Row:
    """What a panel is told of a task, without what is null. "Blocked" and roll-ups follow from the rows."""
    return {field: task[field] for field in _TASK_FIELDS if task[field] is not None} | {"depth": depth}


def agent_row(agent: Mapping[str, Any]) -> Row:
    """What a panel is told of every agent, without what is null; the rest is asked for one by one."""
    return {name: value for name, value in agent.items() if value is not None and name != "capabilities"}


def by_id(rows: Iterable[Row]) -> dict[Any, Row]:
    """A table from its rows."""
    return {row["id"]: row for row in rows}


def waits_for(row: Row, tasks: Mapping[Any, Row]) -> list[int]:
    """The unfinished tasks that a pending one waits for; it is blocked when there are any."""
    if row["status"] != "pending":
        return []
    return [on for on in row["dependencies"] if on in tasks and tasks[on]["status"] != "completed"]


def diff(old: Tables, new: Tables) -> Change:
    """What turns `old` into `new`; empty when nothing changed."""
    found: Change = {}
    for name in {**old, **new}:
        before, after = old.get(name, {}), new.get(name, {})
        changed = [row for key, row in after.items() if before.get(key) != row]
        gone = [key for key in before if key not in after]
        if changed or gone:
            found[name] = {"set": changed, "gone": gone}
    return found


def apply(old: Tables, change: Change) -> dict[str, dict[Any, Row]]:
    """`old` with a change made to it: what the front end does, here for tests and as the contract."""
    made = {name: dict(rows) for name, rows in old.items()}
    for name, part in change.items():
        table = made.setdefault(name, {})
        for key in part["gone"]:
            table.pop(key, None)
        table.update(by_id(part["set"]))
    return made
