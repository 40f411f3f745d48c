"""The board: the tasks that the caller sees, as a list, as counts, as a graph and as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from workbench.model import LARGEST_INT, Int64, Level, ShownState, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules.tasks import lifecycle
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor
from workbench.services.tasks.rows import line_fields, line_of, task_scope
from workbench.services.tasks.task import TaskSummary
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

Order = Literal["id", "newest", "priority"]


class TaskList(Wire):
    """Tasks in the requested order. `next_cursor` is null on the last page."""

    tasks: list[TaskSummary]
    next_cursor: str | None


class TaskCounts(Wire):
    """The number of tasks in each state; states without tasks are left out. Of the pending ones, `blocked` cannot be
    claimed: they wait for others.
    """

    counts: dict[TaskState, int]
    blocked: int


class TaskGraph(Wire):
    """The edges between tasks, as pairs of ids: `[task, dependency]` and `[task, parent]`."""

    dependencies: list[tuple[int, int]]
    parents: list[tuple[int, int]]


class TaskNode(TaskSummary):
    """A task in the tree, with its subtasks, its dependencies, and counts of the tasks below it."""

    dependencies: list[int]
    children: list[TaskNode]
    open_below: int
    completed_below: int


class TaskTree(Wire):
    """The tasks as a tree, with counts by state."""

    tasks: list[TaskNode]
    counts: dict[TaskState, int]


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Filters for tasks.

    Attributes:
        since: only those created, claimed, started or ended after it (microseconds UTC).
        blocked: 1: only those that wait for dependencies.
    """

    status: TaskState | None = None
    persona_id: str | None = None
    agent: str | None = None
    session: str | None = None
    worktree: str | None = None
    parent: int | None = None
    plan: str | None = None
    since: int | None = None
    blocked: int = 0


@op(allow=Level.READ, reads=True)
async def list_tasks(
    ctx: Ctx,
    status: Annotated[
        ShownState | None, Field(description="Only tasks in this state; blocked: pending ones that wait for others.")
    ] = None,
    persona_id: Annotated[str | None, Field(description="Only tasks for this persona.")] = None,
    assigned_agent_id: Annotated[str | None, Field(description="The agent that holds it, or held it last.")] = None,
    session_id: Annotated[str | None, Field(description="The id of its session.")] = None,
    worktree: Annotated[str | None, Field(description="Only tasks of this worktree.")] = None,
    parent_task_id: Annotated[Int64 | None, Field(description="Only the direct subtasks of this task.")] = None,
    plan: Annotated[str | None, Field(description="Only tasks of this plan.")] = None,
    sort: Annotated[Order, Field(description="Oldest, newest or most urgent first.")] = "id",
    limit: Annotated[int, Field(ge=1, le=1_000, description="At most this many; the rest follows with cursor.")] = 100,
    cursor: Cursor = None,
) -> TaskList:
    """List tasks, filtered and sorted."""
    blocked = int(status == "blocked")
    state = TaskState.PENDING if blocked else TaskState(status) if status else None
    wanted = TaskFilter(
        state, persona_id, assigned_agent_id, session_id, worktree, parent_task_id, plan, blocked=blocked
    )
    return await ctx.read(lambda tx: page(tx, ctx.caller, wanted, limit, cursor, sort))


def page(
    tx: Reader, caller: Caller, wanted: TaskFilter, limit: int, cursor: str | None, sort: Order = "id"
) -> TaskList:
    """One page of the tasks that the caller sees.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    query, columns, start = _ORDERS[sort]
    after = paging.decode(cursor, *(int for _ in columns)) if cursor else start
    key = dict(zip(("after_id", "after_priority"), reversed(after), strict=False))
    persona = wanted.persona_id.lower() if wanted.persona_id else None
    values = task_scope(tx, caller) | asdict(wanted) | {"persona_id": persona} | key
    rows = tx.all(query, values, limit=limit + 1)
    shown, following = paging.cut(rows, limit, *columns)
    return TaskList(tasks=[line_of(row) for row in shown], next_cursor=following)


_ORDERS = {
    "id": (SQL.list, ("id",), (0,)),
    "newest": (SQL.list_newest, ("id",), (LARGEST_INT,)),
    "priority": (SQL.list_urgent, ("priority", "id"), (LARGEST_INT, 0)),
}


@op(allow=Level.READ, reads=True, tool=False)
async def count_tasks(ctx: Ctx) -> TaskCounts:
    """Count the tasks by state."""
    rows = await ctx.read(lambda tx: tx.all(SQL.counts, task_scope(tx, ctx.caller)))
    blocked = sum(int(row["blocked"]) for row in rows)
    return TaskCounts(counts={row["status"]: row["n"] for row in rows}, blocked=blocked)


@op(allow=Level.READ, reads=True, tool=False)
async def get_task_graph(
    ctx: Ctx, plan: Annotated[str | None, Field(description="Only tasks of this plan.")] = None
) -> TaskGraph:
    """Get the edges between tasks: `[task, dependency]` and `[task, parent]`."""

    def query(tx: Reader) -> TaskGraph:
        wanted = task_scope(tx, ctx.caller) | {"plan": plan}
        return TaskGraph(
            dependencies=[(row["task_id"], row["depends_on"]) for row in tx.all(SQL.edges, wanted)],
            parents=[(row["id"], row["parent_id"]) for row in tx.all(SQL.parents, wanted)],
        )

    return await ctx.read(query)


@op(allow=Level.READ, reads=True)
async def get_task_tree(
    ctx: Ctx,
    filter_status: Annotated[
        TaskState | None, Field(description="Only those in this state, and their parents.")
    ] = None,
    filter_persona: Annotated[str | None, Field(description="Only those for this persona, and their parents.")] = None,
) -> TaskTree:
    """Get the tasks as a tree with counts; a filter keeps the matching tasks and their ancestors."""

    def query(tx: Reader) -> tuple[list[Row], list[Row]]:
        scope = task_scope(tx, ctx.caller) | {"plan": None}
        return tx.all(SQL.tree, scope), tx.all(SQL.edges, scope)

    rows, edges = await ctx.read(query)
    waits: dict[int, list[int]] = {}
    for edge in edges:
        waits.setdefault(edge["task_id"], []).append(edge["depends_on"])
    persona = filter_persona.lower() if filter_persona else None
    below: dict[int | None, list[Row]] = {}
    counts: dict[TaskState, int] = {}
    visible = {row["id"] for row in rows}
    for row in rows:
        below.setdefault(row["parent_id"] if row["parent_id"] in visible else None, []).append(row)
        counts[TaskState(row["status"])] = counts.get(TaskState(row["status"]), 0) + 1

    def wanted(node: TaskNode) -> bool:
        fits = filter_status in (None, node.status) and persona in (None, node.persona_id)
        return fits or bool(node.children)

    def nodes(parent: int | None) -> list[TaskNode]:
        made = [_node(row, nodes(row["id"]), waits.get(row["id"], [])) for row in below.get(parent, ())]
        return [node for node in made if wanted(node)]

    return TaskTree(tasks=nodes(None), counts=counts)


def _node(row: Row, children: Sequence[TaskNode], dependencies: list[int]) -> TaskNode:
    return TaskNode(
        **line_fields(row),
        dependencies=dependencies,
        children=list(children),
        open_below=sum((c.status in lifecycle.OPEN) + c.open_below for c in children),
        completed_below=sum((c.status == TaskState.COMPLETED) + c.completed_below for c in children),
    )
