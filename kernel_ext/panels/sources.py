"""The source of each table of a panel: an operation, which declares the events after which it is read again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
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
from workbench.present.declared import rows_of, what_refreshes

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
    """One table: what an operation lists.

    Args:
        op: the operation, which declares what refreshes it.
        key: the field with the id of a row.
        limit: the size of a page.
        most: only so many rows, those that are listed first; None: to the last page.
        row: makes a row of an item; those without one are left out.
        reader: reads the table, if that is not all.
    """

    op: str
    key: str = "id"
    limit: int | None = None
    most: int | None = None
    row: Callable[[Mapping[str, Any]], Row | None] = dict
    reader: Read | None = None

    @cached_property
    def nouns(self) -> frozenset[str]:
        """The nouns of the events after which it is read again."""
        return frozenset(what_refreshes(self.op))

    async def read(self, call: Call) -> Mapping[Any, Row]:
        """The whole table."""
        if self.reader is not None:
            return await self.reader(call)
        if self.most is not None:
            items = (await call(self.op, limit=self.most))[rows_of(self.op)]
        else:
            items = await pages(call, self.op, **({} if self.limit is None else {"limit": self.limit}))
        rows = ((item[self.key], self.row(item)) for item in items)
        return by_id(row | {"id": key} for key, row in rows if row is not None)


async def pages(call: Call, op: str, **arguments: Any) -> list[dict[str, Any]]:
    """All items that an operation lists, to its last page."""
    items: list[dict[str, Any]] = []
    while True:
        page = await call(op, **arguments)
        items += page[rows_of(op)]
        if page.get("next_cursor") is None:
            return items
        arguments["cursor"] = page["next_cursor"]


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
    tasks = await pages(call, "list_tasks", limit=1_000)
    return task_rows(tasks, (await call("get_task_graph"))["dependencies"])


async def _servers(call: Call) -> Mapping[Any, Row]:
    """The MCP servers by name, and with the empty id what is wrong with their file."""
    found = await call("list_tool_servers")
    problem = [{"id": "", "error": {"message": found["problem"]}}] if found["problem"] else []
    return by_id([*(server | {"id": server["name"]} for server in found["servers"]), *problem])


async def _conflicts(call: Call) -> Mapping[Any, Row]:
    return conflict_rows(await call("list_conflicts"))


async def _personalities(call: Call, names: Collection[str] | None = None) -> Mapping[Any, Row]:
    """The latest version of each personality, and this project's own that no network has received yet.

    Args:
        names: only of these; None: of all.
    """
    chosen = {} if names is None else {"names": sorted(names)}
    found = await pages(call, "list_personalities", limit=500, **chosen)
    unpublished = (await call("list_personalities", limit=1))["unpublished"]
    wanted = [name for name in unpublished if names is None or name in names]
    own = [unpublished_row(await call("get_own_personality", name=name)) for name in wanted]
    return by_id([*(row | {"id": row["name"]} for row in found), *own])


async def _network(call: Call) -> Mapping[Any, Row]:
    """One row: this project's node, and the edges that it knows."""
    return by_id([await call("get_network") | {"id": "network"}])


SOURCES: Mapping[str, PanelSource] = {
    "approvals": PanelSource("list_approvals", limit=500),
    "personas": PanelSource("get_personas"),
    "agents": PanelSource("list_agents", key="agent_id", limit=500, row=agent_row),
    "projects": PanelSource("list_projects", limit=500),
    "sessions": PanelSource("list_sessions", limit=500),
    "teams": PanelSource("list_teams", limit=500),
    "rules": PanelSource("list_admission_rules", key="name"),
    "tools": PanelSource("list_agent_tools"),
    "processes": PanelSource("get_managed_agents", key="agent_id", row=process_row),
    "untrusted": PanelSource("list_untrusted_files", key="file"),
    "worktrees": PanelSource("get_worktree_status", key="name", row=worktree_row),
    "catalogue": PanelSource("list_tools", key="name", row=tool_row),
    "permissions": PanelSource("list_tool_permissions"),
    "peers": PanelSource("list_peers", key="rid"),
    "saved_views": PanelSource("list_saved_views"),
    "change_requests": PanelSource("get_requested_changes"),
    "closed": PanelSource("list_closed_worktrees", limit=200),
    "conflicts": PanelSource("list_conflicts", reader=_conflicts),
    "conversations": PanelSource("list_conversations", most=CONVERSATIONS),
    "network": PanelSource("get_network", reader=_network),
    "personalities": PanelSource("list_personalities", reader=_personalities),
    "servers": PanelSource("list_tool_servers", reader=_servers),
    "allowlist": PanelSource("list_allowlist", reader=_allowlist),
    "definitions": PanelSource("agent_list", reader=_definitions),
    "tasks": PanelSource("list_tasks", reader=read_tasks),
    "unattended": PanelSource("get_unattended_work", reader=_unattended),
    "holds": PanelSource("list_holds", key="scope"),
}
UNSENT: Mapping[str, PanelSource] = {"runs": PanelSource("list_runs", most=RUNS)}
"""Tables that the page reads by itself, page by page. Here are their first rows, for where the panel is not live."""

SLOW = (
    *("worktrees", "change_requests", "conflicts", "processes", "definitions"),
    *("catalogue", "permissions", "servers", "personalities"),
)
"""Tables that need git, the operating system or many files, or that other nodes fill; the others do not wait for them.

If one cannot be read, its row with the empty id holds the error: `{"id": "", "error": …}`.
"""


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

EVENT_KINDS = sorted(
    {f"{noun}.*" for source in (*SOURCES.values(), *UNSENT.values()) for noun in source.nouns - {CLOCK}}
    | {"answer.*", "turn.*", "notification.*"}
)
"""The events that may change a table, or what the page reads by itself: answers in conversations, and what the person
is told. Calls of tools have `tool.*`, as permissions have."""


def stale_tables(nouns: Collection[str]) -> list[str]:
    """The tables that events about these nouns may have changed."""
    return [name for name, source in SOURCES.items() if not source.nouns.isdisjoint(nouns)]


def concerns_unsent(subjects: Iterable[str]) -> bool:
    """Whether events about these subjects may have changed a table of `UNSENT`."""
    return any(subject.partition(":")[0] in source.nouns for source in UNSENT.values() for subject in subjects)


def changed_rows(table: str, nouns: Collection[str], subjects: Collection[str]) -> set[str] | None:
    """The ids of the rows of a table that events about these subjects may have changed; None: it may be any.

    Args:
        nouns: those of the subjects, and `CLOCK` if time has passed.
    """
    single = SINGLE_ROWS.get(table)
    if single is None or not single.nouns.issuperset(SOURCES[table].nouns.intersection(nouns)):
        return None
    split = (subject.partition(":") for subject in subjects)
    return {about.partition("/")[0] for noun, _, about in split if noun in single.nouns}
