"""The tables of rows that a panel shows, and the changes between two versions of them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.rules.personalities.highlights import highlights
from workbench.rules.personalities.profile import PersonalityTrait

Row = dict[str, Any]
Tables = Mapping[str, Mapping[Any, Row]]
"""Rows by their `id`, by the name of their table."""
Change = dict[str, dict[str, list[Any]]]
"""`{table: {"set": [row, …], "removed": [id, …]}}`, with only the tables in which something changed."""

_TASK_FIELDS = (
    "id",
    "title",
    "status",
    "persona_id",
    "priority",
    "worktree",
    "plan",
    "name",
    "session_id",
    "parent_task_id",
    "assigned_agent_id",
    "progress",
    "attempt",
    "blocked",
    "not_before",
    "error_message",
    "due",
    "overdue",
    "evidence",
)
_ERROR_LENGTH = 200
"""Longer error messages are cut; a task's details have all of it."""


def task_rows(tasks: Iterable[Mapping[str, Any]], edges: Iterable[tuple[int, int]]) -> dict[int, Row]:
    """A table of tasks with their dependencies."""
    waits: dict[int, list[int]] = {}
    for task_id, on in edges:
        waits.setdefault(task_id, []).append(on)
    return {task["id"]: task_row(task, waits.get(task["id"], [])) for task in tasks}


def task_row(task: Mapping[str, Any], dependencies: Sequence[int]) -> Row:
    """The row of a task, without null or false values. Roll-ups are computed from the rows."""
    values = ((field, task.get(field)) for field in _TASK_FIELDS)
    row = {field: value for field, value in values if value is not None and value is not False}
    if "error_message" in row:
        row["error_message"] = row["error_message"][:_ERROR_LENGTH]
    return row | {"dependencies": list(dependencies)}


def in_tree(tasks: Mapping[Any, Row]) -> Iterator[tuple[Row, int]]:
    """Tasks with their depth, parents first, siblings by id."""
    below: dict[int | None, list[Row]] = {}
    for task_id in sorted(tasks):
        parent = tasks[task_id].get("parent_task_id")
        below.setdefault(parent if parent in tasks else None, []).append(tasks[task_id])
    waiting = [(row, 0) for row in reversed(below.get(None, []))]
    while waiting:
        row, depth = waiting.pop()
        yield row, depth
        waiting.extend((child, depth + 1) for child in reversed(below.get(row["id"], [])))


def agent_row(agent: Mapping[str, Any]) -> Row:
    """The row of an agent, without null values. Its capabilities are read when its details are opened."""
    return {name: value for name, value in agent.items() if value is not None and name != "capabilities"}


def definition_row(agent: Mapping[str, Any]) -> Row:
    """The row of a definition: its id is its path, which is unique."""
    names = {"definition_id": agent["id"], "name": agent["name"], "mode": agent["mode"]}
    about = {"description": agent["description"]} if agent["description"] else {}
    return {"id": agent["path"]} | names | about


_ABOUT_LENGTH = 300
"""Longer descriptions of tools are cut; a tool's details have all of it."""


def tool_row(tool: Mapping[str, Any]) -> Row:
    """The row of a tool in the catalogue: its id is its name, which is unique."""
    return dict(tool) | {"description": tool["description"][:_ABOUT_LENGTH]}


_LISTED_FILES = 200
"""The most uncommitted files in the row of a worktree; `uncommitted` is the number of all."""


def worktree_row(worktree: Mapping[str, Any]) -> Row:
    """The row of a worktree, with counts instead of its files. Its agents and tasks are in their own rows."""
    left_out = ("files", "dirty", "agents", "open_tasks")
    dirty, files = worktree.get("dirty", []), worktree.get("files", [])
    counts = {"changed": len(files), "uncommitted": len(dirty), "dirty": dirty[:_LISTED_FILES]}
    return {name: value for name, value in worktree.items() if name not in left_out} | counts


def conflict_rows(conflicts: Mapping[str, Any]) -> dict[str, Row]:
    """Pairs that would conflict. The row with the empty id has the number of checked pairs."""
    pairs = by_id({"id": f"{pair['one']}\n{pair['other']}", **pair} for pair in conflicts["pairs"])
    return {"": {"id": "", "checked": conflicts["checked"]}} | pairs


def unpublished_row(own: Mapping[str, Any]) -> Row:
    """An own personality that no network has received yet, as if it were listed.

    Its provenance has no more than the freshness `unpublished`.
    """
    traits = [PersonalityTrait.model_validate(trait) for trait in own["traits"]]
    return {
        "id": own["name"],
        **{key: own[key] for key in ("rid", "name", "version")},
        "versions": [own["version"]],
        "traits": len(traits),
        "tools": [trait.name for trait in traits if trait.is_callable],
        "highlights": [highlight.model_dump() for highlight in highlights(traits)],
        "provenance": {"freshness": "unpublished"},
    }


_MOVING = frozenset({"cpu_seconds", "cpu_percent", "memory_bytes", "children", "log_tail"})
"""Fields that change without an event: a page polls them while it is visible."""


def process_row(agent: Mapping[str, Any]) -> Row | None:
    """The row of a managed agent's process, without the fields in `_MOVING`; None if there never was one."""
    process = agent.get("process")
    if process is None:
        return None
    fixed = {name: value for name, value in process.items() if name not in _MOVING and value is not None}
    return {"name": agent["name"], "persona_id": agent["persona_id"]} | fixed


def by_id(rows: Iterable[Row]) -> dict[Any, Row]:
    """Rows as a table."""
    return {row["id"]: row for row in rows}


def waits_for(row: Row, tasks: Mapping[Any, Row]) -> list[int]:
    """The tasks that a blocked one waits for."""
    if not row.get("blocked"):
        return []
    return [on for on in row["dependencies"] if on in tasks and tasks[on]["status"] != "completed"]


def diff(old: Tables, new: Tables) -> Change:
    """The change that turns `old` into `new`; empty if nothing changed."""
    change: Change = {}
    for name in {**old, **new}:
        before, after = old.get(name, {}), new.get(name, {})
        changed = [row for key, row in after.items() if before.get(key) != row]
        removed = [key for key in before if key not in after]
        if changed or removed:
            change[name] = {"set": changed, "removed": removed}
    return change


def apply(old: Tables, change: Change) -> dict[str, dict[Any, Row]]:
    """`old` with a change applied. The page does this itself; here it is the contract, for tests."""
    tables = {name: dict(rows) for name, rows in old.items()}
    for name, part in change.items():
        table = tables.setdefault(name, {})
        for key in part["removed"]:
            table.pop(key, None)
        table.update(by_id(part["set"]))
    return tables
