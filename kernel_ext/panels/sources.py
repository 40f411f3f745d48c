"""The source of each table of a panel: an operation, and the events after which it is read again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel_ext.panels.rows import (
    Row,
    agent_row,
    by_id,
    conflict_rows,
    definition_row,
    process_row,
    task_rows,
    tool_row,
    unpublished_row,
    worktree_row,
)

Call = Callable[..., Awaitable[dict[str, Any]]]
"""Runs an operation by name."""
Read = Callable[[Call], Coroutine[Any, Any, Mapping[Any, Row]]]
"""Reads a table."""
ReadSome = Callable[[Call, Collection[str]], Coroutine[Any, Any, Mapping[Any, Row]]]
"""Reads the rows of a table that have these ids, as far as there are such."""

CONVERSATIONS = 200
"""The most conversations in the table; `list_conversations` searches all of them."""
RUNS = 51
"""The most runs in the table: one more than is shown of it, so that there being more is known."""
MOST_SINGLE = 100
"""If more rows than this have changed, the whole table is read."""
CLOCK = "clock"
"""Represents time among the nouns of events: some values, such as when an agent was last active, change without one."""


@dataclass(frozen=True)
class PanelSource:
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


async def _definitions(call: Call) -> Mapping[Any, Row]:
    """The definitions by path, and a row with the reason for each that cannot be read."""
    found = await call("agent_list")
    problems = ({"id": problem, "problem": problem} for problem in found["problems"])
    return by_id([*map(definition_row, found["agents"]), *problems])


async def _unattended(call: Call) -> Mapping[Any, Row]:
    """One row while no agent is left for open tasks, and one that has ended could do them."""
    found = await call("get_unattended_work")
    return by_id([found | {"id": "open"}] if found["restartable"] else [])


async def read_tasks(call: Call) -> Mapping[Any, Row]:
    """All tasks, with their dependencies."""
    tasks = await pages(call, "list_tasks", "tasks", {"limit": 1_000})
    return task_rows(tasks, (await call("get_task_graph"))["dependencies"])


async def _servers(call: Call) -> Mapping[Any, Row]:
    """The MCP servers by name, and with the empty id what is wrong with their file."""
    found = await call("list_tool_servers")
    problem = [{"id": "", "error": {"message": found["problem"]}}] if found["problem"] else []
    return by_id([*(server | {"id": server["name"]} for server in found["servers"]), *problem])


async def _conversations(call: Call) -> Mapping[Any, Row]:
    """The conversations that were continued last."""
    return by_id((await call("list_conversations", limit=CONVERSATIONS))["conversations"])


async def _conflicts(call: Call) -> Mapping[Any, Row]:
    return conflict_rows(await call("list_conflicts"))


_LISTED: dict[str, PanelSource] = {
    "approvals": PanelSource(
        "list_approvals", "approvals", frozenset({"approval", "worktree"}), arguments={"limit": 500}
    ),
    "personas": PanelSource("get_personas", "personas", frozenset({"persona"})),
    "agents": PanelSource(
        "list_agents",
        "agents",
        frozenset({"agent", "session", "team", "project", CLOCK}),
        key="agent_id",
        arguments={"limit": 500},
        row=agent_row,
    ),
    "projects": PanelSource("list_projects", "projects", frozenset({"project", "session"}), arguments={"limit": 500}),
    "sessions": PanelSource(
        "list_sessions",
        "sessions",
        frozenset({"project", "session", "team", "agent", "context"}),
        arguments={"limit": 500},
    ),
    "teams": PanelSource(
        "list_teams", "teams", frozenset({"project", "session", "team", "agent"}), arguments={"limit": 500}
    ),
    "rules": PanelSource("list_admission_rules", "rules", frozenset({"rule"}), key="name"),
    "tools": PanelSource("list_agent_tools", "agent_tools", frozenset({"agent_tool"})),
    "processes": PanelSource("get_managed_agents", "agents", frozenset({"agent"}), key="agent_id", row=process_row),
    "untrusted": PanelSource("list_untrusted_files", "files", frozenset({CLOCK}), key="file"),
    "worktrees": PanelSource(
        "get_worktree_status",
        "worktrees",
        frozenset({"worktree", "approval", CLOCK}),
        key="name",
        row=worktree_row,
    ),
    "catalogue": PanelSource(
        "list_tools",
        "tools",
        frozenset({"tool_host", "tool_server", "personality", "peer", "network", CLOCK}),
        key="name",
        row=tool_row,
    ),
    "permissions": PanelSource("list_tool_permissions", "permissions", frozenset({"tool", CLOCK}), key="id"),
    "peers": PanelSource(
        "list_peers", "peers", frozenset({"peer", "edge", "network", "personality", CLOCK}), key="rid"
    ),
    "saved_views": PanelSource("list_saved_views", "views", frozenset({"saved_view"})),
    "change_requests": PanelSource("get_requested_changes", "requests", frozenset({"worktree", "approval", CLOCK})),
    "closed": PanelSource("list_closed_worktrees", "worktrees", frozenset({"worktree"}), arguments={"limit": 200}),
}


async def _personalities(call: Call, names: Collection[str] | None = None) -> Mapping[Any, Row]:
    """The latest version of each personality, and this project's own that no network has received yet.

    Args:
        names: only of these; None: of all.
    """
    chosen = {} if names is None else {"names": sorted(names)}
    found = await pages(call, "list_personalities", "personalities", {"limit": 500} | chosen)
    unpublished = (await call("list_personalities", limit=1))["unpublished"]
    wanted = [name for name in unpublished if names is None or name in names]
    own = [unpublished_row(await call("get_own_personality", name=name)) for name in wanted]
    return by_id([*(row | {"id": row["name"]} for row in found), *own])


async def _network(call: Call) -> Mapping[Any, Row]:
    """One row: this project's node, and the edges that it knows."""
    return by_id([await call("get_network") | {"id": "network"}])


READERS: Mapping[str, Read] = {
    **{name: source.read for name, source in _LISTED.items()},
    "conflicts": _conflicts,
    "conversations": _conversations,
    "network": _network,
    "personalities": _personalities,
    "servers": _servers,
    "allowlist": _allowlist,
    "definitions": _definitions,
    "tasks": read_tasks,
    "unattended": _unattended,
}
"""How each table is read."""


async def _runs(call: Call) -> Mapping[Any, Row]:
    """The newest runs."""
    return by_id((await call("list_runs", limit=RUNS))["runs"])


UNSENT: Mapping[str, Read] = {"runs": _runs}
"""Tables that the page reads by itself, page by page. Here are their first rows, for where the panel is not live."""
_UNSENT_NOUNS = ("run:", "sweep:")

SLOW = (
    *("worktrees", "change_requests", "conflicts", "processes", "definitions"),
    *("catalogue", "permissions", "servers", "personalities"),
)
"""Tables that need git, the operating system or many files, or that other nodes fill; the others do not wait for them.

If one cannot be read, its row with the empty id holds the error: `{"id": "", "error": …}`.
"""

_OTHER_KINDS = frozenset({"answer.*", "turn.*", "run.*", "sweep.*"})
"""Events that change no table, but what the page reads by itself: answers in conversations, runs and sweeps. Calls of
tools have `tool.*`, as permissions have."""

_NOUNS: Mapping[str, Collection[str]] = {
    **{name: source.nouns for name, source in _LISTED.items()},
    "conflicts": {"worktree"},
    "conversations": {"conversation"},
    "network": {"network", "peer", "edge", "personality", CLOCK},
    "personalities": {"personality", "profile", "peer", "network", CLOCK},
    "servers": {"tool_server", "approval", CLOCK},
    "allowlist": {"allowlist"},
    "definitions": {"definition", CLOCK},
    "tasks": {"task"},
    "unattended": {"task", "agent"},
}


@dataclass(frozen=True)
class SingleRows:
    """How rows of a table are read that events alone have changed.

    `nouns`: those of the events that change no other row than their own, whose id stands in the subject: "noun:id/…".
    """

    nouns: frozenset[str]
    read: ReadSome


SINGLE_ROWS: Mapping[str, SingleRows] = {
    "personalities": SingleRows(frozenset({"personality", "profile"}), _personalities),
}
"""The tables of `SLOW` of which single rows can be read."""

EVENT_KINDS = sorted({f"{noun}.*" for nouns in _NOUNS.values() for noun in nouns} - {f"{CLOCK}.*"} | _OTHER_KINDS)
"""The events that may change a table."""


def stale_tables(nouns: Collection[str]) -> list[str]:
    """The tables that events about these nouns may have changed."""
    return [name for name, of_table in _NOUNS.items() if not set(of_table).isdisjoint(nouns)]


def concerns_unsent(subjects: Iterable[str]) -> bool:
    """Whether events about these subjects may have changed a table of `UNSENT`."""
    return any(subject.startswith(_UNSENT_NOUNS) for subject in subjects)


def changed_rows(table: str, nouns: Collection[str], subjects: Collection[str]) -> set[str] | None:
    """The ids of the rows of a table that events about these subjects may have changed; None: it may be any.

    Args:
        nouns: those of the subjects, and `CLOCK` if time has passed.
    """
    single = SINGLE_ROWS.get(table)
    if single is None or not single.nouns.issuperset(set(nouns).intersection(_NOUNS[table])):
        return None
    split = (subject.partition(":") for subject in subjects)
    return {about.partition("/")[0] for noun, _, about in split if noun in single.nouns}
