"""The source of each table of a panel: an operation, and the events after which it is read again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel_ext.panels.rows import Row, agent_row, by_id, conflict_rows, process_row, task_rows, worktree_row

Call = Callable[..., Awaitable[dict[str, Any]]]
"""Runs an operation by name."""
Read = Callable[[Call], Coroutine[Any, Any, Mapping[Any, Row]]]
"""Reads a table."""

CLOCK = "clock"
"""Represents time among the nouns of events: some values, such as when an agent was last active, change without one."""


@dataclass(frozen=True)
class Source:
    """One table: the operation that lists it, read to its last page.

    `nouns` are the nouns of the events after which it is read again; `key` is the field with the id of a row. Items for
    which `row` returns None are left out.
    """

    op: str
    name: str
    nouns: frozenset[str]
    key: str = "id"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    row: Callable[[Mapping[str, Any]], Row | None] = dict

    async def read(self, call: Call) -> Mapping[Any, Row]:
        """The whole table."""
        found = await pages(call, self.op, self.name, self.arguments)
        rows = ((item[self.key], self.row(item)) for item in found)
        return by_id(row | {"id": key} for key, row in rows if row is not None)


async def pages(call: Call, op: str, name: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All items that an operation lists in a field, to its last page."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = dict(arguments)
    while True:
        page = await call(op, **more)
        found += page[name]
        if page.get("next_cursor") is None:
            return found
        more["cursor"] = page["next_cursor"]


async def _allowlist(call: Call) -> Mapping[Any, Row]:
    found = await call("list_allowlist")
    return by_id({"id": one, "fixed": one in found["fixed"]} for one in found["ids"])


async def _unattended(call: Call) -> Mapping[Any, Row]:
    """One row while no agent is left for open tasks, and one that has ended could do them."""
    found = await call("get_unattended_work")
    return by_id([found | {"id": "open"}] if found["restartable"] else [])


async def read_tasks(call: Call) -> Mapping[Any, Row]:
    """All tasks, with their dependencies."""
    tasks = await pages(call, "list_tasks", "tasks", {"limit": 1_000})
    return task_rows(tasks, (await call("get_task_graph"))["dependencies"])


async def _conflicts(call: Call) -> Mapping[Any, Row]:
    return conflict_rows(await call("list_conflicts"))


_LISTED: dict[str, Source] = {
    "approvals": Source("list_approvals", "approvals", frozenset({"approval", "worktree"}), arguments={"limit": 500}),
    "personas": Source("get_personas", "personas", frozenset({"persona"})),
    "agents": Source(
        "list_agents",
        "agents",
        frozenset({"agent", "session", "team", "project", CLOCK}),
        key="agent_id",
        arguments={"limit": 500},
        row=agent_row,
    ),
    "projects": Source("list_projects", "projects", frozenset({"project", "session"}), arguments={"limit": 500}),
    "sessions": Source(
        "list_sessions",
        "sessions",
        frozenset({"project", "session", "team", "agent", "context"}),
        arguments={"limit": 500},
    ),
    "teams": Source(
        "list_teams", "teams", frozenset({"project", "session", "team", "agent"}), arguments={"limit": 500}
    ),
    "rules": Source("list_admission_rules", "rules", frozenset({"rule"}), key="name"),
    "tools": Source("list_agent_tools", "agent_tools", frozenset({"agent_tool"})),
    "processes": Source("get_managed_agents", "agents", frozenset({"agent"}), key="agent_id", row=process_row),
    "untrusted": Source("list_untrusted_files", "files", frozenset({CLOCK}), key="file"),
    "worktrees": Source(
        "get_worktree_status",
        "worktrees",
        frozenset({"worktree", "approval", CLOCK}),
        key="name",
        row=worktree_row,
    ),
    "closed": Source("list_closed_worktrees", "worktrees", frozenset({"worktree"}), arguments={"limit": 200}),
}

READERS: Mapping[str, Read] = {
    **{name: source.read for name, source in _LISTED.items()},
    "conflicts": _conflicts,
    "allowlist": _allowlist,
    "tasks": read_tasks,
    "unattended": _unattended,
}
"""How each table is read."""

SLOW = ("worktrees", "conflicts", "processes")
"""Tables that need git or the operating system; the others do not wait for them.

If one cannot be read, its row with the empty id holds the error: `{"id": "", "error": …}`.
"""

_NOUNS: Mapping[str, Collection[str]] = {
    **{name: source.nouns for name, source in _LISTED.items()},
    "conflicts": {"worktree"},
    "allowlist": {"allowlist"},
    "tasks": {"task"},
    "unattended": {"task", "agent"},
}

EVENT_KINDS = sorted({f"{noun}.*" for nouns in _NOUNS.values() for noun in nouns} - {f"{CLOCK}.*"})
"""The events that may change a table."""


def stale_tables(nouns: Collection[str]) -> list[str]:
    """The tables that events about these nouns may have changed."""
    return [name for name, of_table in _NOUNS.items() if not set(of_table).isdisjoint(nouns)]
