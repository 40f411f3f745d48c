"""The board: the tasks that the caller sees, as a list, as counts, as a graph and as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import LARGEST_INT, Day, Int64, Level, ShownState, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules.naming import like_pattern
from workbench.rules.tasks import lifecycle
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor
from workbench.services.access.personas import require_persona
from workbench.services.agents.rows import no_agent
from workbench.services.tasks.rows import line_fields, line_of, task_scope, visible_row
from workbench.services.tasks.task import TaskSummary
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

Order = Literal["id", "newest", "priority", "due"]


class TaskList(Wire):
    """Tasks in the requested order. `next_cursor` is null on the last page."""

    tasks: list[TaskSummary]
    next_cursor: str | None


class TaskCounts(Wire):
    """The number of tasks in each state; states without tasks are left out. Of the pending ones, `blocked` cannot be
    claimed: they wait for others. Of these, `stuck` never can unless one that failed or was cancelled is retried.
    """

    counts: dict[TaskState, int]
    blocked: int
    stuck: int


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
        search: only those whose title, description or name contains it.
        due: only open ones that are due on this day or before.
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
    search: str | None = None
    due: str | None = None


@op(allow=Level.READ, reads=True, command="tasks", refreshed_by="task")
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
    search: Annotated[
        str | None, Field(max_length=200, description="Part of a title, a description or a name.")
    ] = None,
    due: Annotated[
        Day | Literal["overdue"] | None, Field(description="Only open ones, due by this day or overdue.")
    ] = None,
    sort: Annotated[Order, Field(description="Oldest, newest, most urgent or first due first.")] = "id",
    limit: Annotated[int, Field(ge=1, le=1_000, description="At most this many; the rest follows with cursor.")] = 100,
    cursor: Cursor = None,
) -> TaskList:
    """List tasks, filtered and sorted. A filter for what does not exist is refused."""
    blocked = int(status == "blocked")
    state = TaskState.PENDING if blocked else TaskState(status) if status else None
    filters = TaskFilter(
        state,
        persona_id,
        assigned_agent_id,
        session_id,
        worktree,
        parent_task_id,
        plan,
        blocked=blocked,
        search=search,
    )

    def question(tx: Reader) -> TaskList:
        require_known(tx, ctx.caller, filters)
        until = lifecycle.last_day_over(tx.now) if due == "overdue" else due
        return page(tx, ctx.caller, replace(filters, due=until), limit, cursor, sort)

    return await ctx.read(question)


def require_known(tx: Reader, caller: Caller, filters: TaskFilter) -> None:
    """Refuse a filter for what does not exist. An agent is not told which agents, sessions and worktrees there are.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``, ``AGENT_NOT_FOUND``, ``SESSION_NOT_FOUND``, ``WORKTREE_NOT_FOUND``,
            ``TASK_NOT_FOUND``, ``PLAN_NOT_FOUND``.
    """
    if filters.persona_id:
        require_persona(tx, filters.persona_id)
    if filters.parent is not None:
        visible_row(tx, caller, filters.parent)
    if filters.plan is not None and not tx.one(SQL.plan, name=filters.plan):
        raise no_plan(filters.plan)
    if caller.level is not Level.OPERATOR:
        return
    if filters.agent is not None and not tx.one(SQL.agent, name=filters.agent):
        raise no_agent(filters.agent)
    if filters.session is not None and not tx.one(SQL.session, id=filters.session):
        raise NotFound("SESSION_NOT_FOUND", f"There is no session {filters.session!r}.", Hint("list_sessions"))
    if filters.worktree is not None and not tx.one(SQL.worktree, name=filters.worktree):
        hint = Hint("get_worktree_status")
        raise NotFound("WORKTREE_NOT_FOUND", f"No worktree and no task is {filters.worktree!r}.", hint)


def no_plan(name: str) -> NotFound:
    """The error for a plan that does not exist."""
    return NotFound("PLAN_NOT_FOUND", f"There is no plan {name!r}.", Hint("list_plans", "{} lists the plans."))


def page(
    tx: Reader, caller: Caller, filters: TaskFilter, limit: int, cursor: str | None, sort: Order = "id"
) -> TaskList:
    """One page of the tasks that the caller sees.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    query, columns, start = _ORDERS[sort]
    after = paging.decode(cursor, *map(type, start)) if cursor else start
    key = {f"after_{column}": value for column, value in zip(columns, after, strict=True)}
    persona = filters.persona_id.lower() if filters.persona_id else None
    fields = asdict(filters) | {"persona_id": persona, "search": like_pattern(filters.search)}
    values = task_scope(tx, caller) | fields | key
    rows = tx.all(query, values, limit=limit + 1)
    page_rows, following = paging.cut(rows, limit, *columns)
    return TaskList(tasks=[line_of(tx, row) for row in page_rows], next_cursor=following)


_ORDERS = {
    "id": (SQL.list, ("id",), (0,)),
    "newest": (SQL.list_newest, ("id",), (LARGEST_INT,)),
    "priority": (SQL.list_urgent, ("priority", "id"), (LARGEST_INT, 0)),
    "due": (SQL.list_due, ("due_or_last", "id"), ("", 0)),
}


@op(allow=Level.READ, reads=True, tool=False)
async def count_tasks(ctx: Ctx) -> TaskCounts:
    """Count the tasks by state."""

    def question(tx: Reader) -> TaskCounts:
        scope = task_scope(tx, ctx.caller)
        rows, stuck = tx.all(SQL.counts, scope), tx.one(SQL.stuck, scope)
        blocked = sum(int(row["blocked"]) for row in rows)
        counts = {row["status"]: row["n"] for row in rows}
        return TaskCounts(counts=counts, blocked=blocked, stuck=stuck["n"] if stuck else 0)

    return await ctx.read(question)


@op(allow=Level.READ, reads=True, tool=False, command="graph")
async def get_task_graph(
    ctx: Ctx, plan: Annotated[str | None, Field(description="Only tasks of this plan.")] = None
) -> TaskGraph:
    """Get the edges between tasks: `[task, dependency]` and `[task, parent]`."""

    def query(tx: Reader) -> TaskGraph:
        scope = task_scope(tx, ctx.caller) | {"plan": plan}
        require_known(tx, ctx.caller, TaskFilter(plan=plan))
        return TaskGraph(
            dependencies=[(row["task_id"], row["depends_on"]) for row in tx.all(SQL.edges, scope)],
            parents=[(row["id"], row["parent_id"]) for row in tx.all(SQL.parents, scope)],
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

    def query(tx: Reader) -> tuple[list[Row], list[Row], int]:
        scope = task_scope(tx, ctx.caller) | {"plan": None}
        return tx.all(SQL.tree, scope), tx.all(SQL.edges, scope), tx.now

    rows, edges, now = await ctx.read(query)
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

    def is_kept(node: TaskNode) -> bool:
        fits = filter_status in (None, node.status) and persona in (None, node.persona_id)
        return fits or bool(node.children)

    def nodes(parent: int | None) -> list[TaskNode]:
        children = [_node(now, row, nodes(row["id"]), waits.get(row["id"], [])) for row in below.get(parent, ())]
        return [node for node in children if is_kept(node)]

    return TaskTree(tasks=nodes(None), counts=counts)


def _node(now: int, row: Row, children: Sequence[TaskNode], dependencies: list[int]) -> TaskNode:
    return TaskNode(
        **line_fields(now, row),
        dependencies=dependencies,
        children=list(children),
        open_below=sum((c.status in lifecycle.OPEN) + c.open_below for c in children),
        completed_below=sum((c.status == TaskState.COMPLETED) + c.completed_below for c in children),
    )
