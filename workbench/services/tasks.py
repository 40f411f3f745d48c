"""Tasks: what there is to do, in what order, and how it stands (spec 3). Doing it is in `leases`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound
from workbench.model import SECOND, Level, Micros, TaskState, Wire
from workbench.ops import Ctx, op
from workbench.rules import access, lifecycle
from workbench.services.personas import require_persona
from workbench.services.registration import require_agent
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
TREE_DEPTH = 50
"""Levels of subtasks; JSON that nests much deeper is refused by its readers."""

Run = Annotated[
    str | list[str] | None,
    Field(description="Command of the task: a string for /bin/sh -c or a list, run in the worktree."),
]
Title = Annotated[str, Field(min_length=1, max_length=200)]
Description = Annotated[str, Field(max_length=100_000)]
Priority = Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher goes first.")]
Dependencies = Annotated[list[int], Field(max_length=1_000, description="Ids of tasks that come first.")]
Reserved = Annotated[str | None, Field(description="Reserve it for this agent.")]
Retries = Annotated[int | None, Field(ge=0, le=100)]
LeaseSeconds = Annotated[float | None, Field(gt=0, le=86_400)]
ContextRef = Annotated[str | None, Field(max_length=1_000)]


class NewTask(Wire):
    """A task to be."""

    title: Title
    description: Description = ""
    persona_id: str
    priority: Priority = 500
    dependencies: Dependencies = []
    parent_task_id: int | None = None
    target_worktree: str | None = None
    assigned_agent_id: Reserved = None
    run: Run = None
    max_retries: Retries = None
    lease_seconds: LeaseSeconds = None
    context_ref: ContextRef = None
    metadata: dict[str, Any] = {}
    plan: str | None = None
    name: str | None = None


class Attempt(Wire):
    """One claim of a task, and how it ended."""

    attempt: int
    agent_id: str
    claimed_at: Micros
    started_at: Micros | None
    ended_at: Micros | None
    outcome: str | None
    error_message: str | None


class TaskLine(Wire):
    """A task in a list."""

    id: int
    title: str
    status: TaskState
    persona_id: str
    priority: int
    worktree: str | None
    plan: str | None
    name: str | None
    parent_task_id: int | None
    assigned_agent_id: str | None
    progress: int
    attempt: int
    blocked: bool


class Task(TaskLine):
    """A task with everything about it."""

    description: str
    run: str | list[str] | None
    context_ref: str | None
    metadata: dict[str, Any]
    dependencies: list[int]
    blocked_by: list[int]
    created_by: str
    created_at: Micros
    claimed_at: Micros | None
    started_at: Micros | None
    completed_at: Micros | None
    lease_expires_at: Micros | None
    not_before: Micros | None
    retry_count: int
    max_retries: int
    result_data: Any
    artifacts: list[str]
    error_message: str | None
    attempts: list[Attempt]


class TaskList(Wire):
    """Tasks by id; read on after `next_cursor`, which is null at the end."""

    tasks: list[TaskLine]
    next_cursor: int | None


class TaskNode(TaskLine):
    """A task in the tree: its own state, what lies under it, and what it waits for."""

    dependencies: list[int]
    children: list[TaskNode]
    open_below: int
    completed_below: int


class TaskTree(Wire):
    """The tasks as a tree, with counts by state."""

    tasks: list[TaskNode]
    counts: dict[TaskState, int]


class LogLine(Wire):
    """What an agent said about a task."""

    id: int
    task_id: int
    agent_id: str
    level: str
    message: str
    logged_at: Micros


class TaskLog(Wire):
    """Log lines, oldest first."""

    lines: list[LogLine]


@op(allow=Level.PLANNER)
async def create_task(
    ctx: Ctx,
    title: Title,
    persona_id: str,
    description: Description = "",
    priority: Priority = 500,
    dependencies: Dependencies = [],
    parent_task_id: int | None = None,
    target_worktree: str | None = None,
    assigned_agent_id: Reserved = None,
    run: Run = None,
    max_retries: Retries = None,
    lease_seconds: LeaseSeconds = None,
    context_ref: ContextRef = None,
    metadata: dict[str, Any] = {},
) -> Task:
    """Create a task. It is claimable once the tasks it depends on are completed."""
    new = NewTask(
        title=title,
        description=description,
        persona_id=persona_id,
        priority=priority,
        dependencies=dependencies,
        parent_task_id=parent_task_id,
        target_worktree=target_worktree,
        assigned_agent_id=assigned_agent_id,
        run=run,
        max_retries=max_retries,
        lease_seconds=lease_seconds,
        context_ref=context_ref,
        metadata=metadata,
    )
    return await ctx.write(lambda tx: require_task(tx, add(tx, ctx.settings, new)))


def add(tx: Tx, settings: Settings, new: NewTask) -> int:
    """Add a task in the caller's transaction; its id.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``, ``TASK_NOT_FOUND``, ``AGENT_NOT_FOUND``.
        BadInput: ``BAD_WORKTREE_NAME``, ``TOO_LARGE``, ``TOO_DEEP``.
    """
    persona = require_persona(tx, new.persona_id)
    if new.target_worktree:
        access.check_worktree_name(new.target_worktree)
    if new.parent_task_id is not None:
        _require_parent(tx, new.parent_task_id)
    reserved = require_agent(tx, new.assigned_agent_id)["id"] if new.assigned_agent_id else None
    unmet = sum(require_row(tx, other)["status"] != TaskState.COMPLETED for other in set(new.dependencies))
    retries = settings.max_retries if new.max_retries is None else new.max_retries
    made = tx.one(
        SQL.add,
        title=new.title,
        description=new.description,
        persona_id=persona.id,
        parent_id=new.parent_task_id,
        worktree=new.target_worktree,
        plan=new.plan,
        name=new.name,
        run=None if new.run is None else json.dumps(new.run),
        context_ref=new.context_ref,
        metadata=bounded_json(new.metadata, settings),
        max_retries=retries,
        lease_us=int((new.lease_seconds or settings.lease_seconds) * SECOND),
        by=tx.actor,
        now=tx.now,
    )
    assert made is not None
    task_id = int(made["id"])
    tx.run(
        SQL.add_status,
        task_id=task_id,
        persona_id=persona.id,
        worktree=new.target_worktree or "",
        priority=new.priority,
        unmet=unmet,
        reserved_for=reserved,
    )
    tx.many(SQL.add_dependency, [{"task_id": task_id, "on": on} for on in sorted(set(new.dependencies))])
    tx.emit("task.created", f"task:{task_id}", title=new.title, persona_id=persona.id, ready=unmet == 0)
    return task_id


@op(allow=Level.READ, reads=True)
async def get_task(ctx: Ctx, task_id: int) -> Task:
    """One task with everything about it: text, state, dependencies, attempts, result, artifacts."""
    return await ctx.read(lambda tx: require_task(tx, task_id))


@op(allow=Level.READ, reads=True)
async def list_tasks(
    ctx: Ctx,
    status: TaskState | None = None,
    persona_id: str | None = None,
    worktree: str | None = None,
    plan: str | None = None,
    cursor: Annotated[int, Field(ge=0, description="Read on after this id.")] = 0,
    limit: Annotated[int, Field(ge=1, le=500)] = 100,
) -> TaskList:
    """Tasks by id, filtered."""
    values = {"status": status, "persona_id": persona_id, "worktree": worktree, "plan": plan}
    rows = await ctx.read(lambda tx: tx.all(SQL.list, values | {"cursor": cursor, "limit": limit}))
    lines = [TaskLine(**line_of(row)) for row in rows]
    return TaskList(tasks=lines, next_cursor=lines[-1].id if len(lines) == limit else None)


@op(allow=Level.READ, reads=True)
async def get_task_tree(
    ctx: Ctx,
    filter_status: TaskState | None = None,
    filter_persona: str | None = None,
) -> TaskTree:
    """The tasks as a tree with roll-ups; a filter keeps matching tasks and what leads to them."""
    rows, edges = await ctx.read(lambda tx: (tx.all(SQL.tree), tx.all(SQL.edges)))
    waits: dict[int, list[int]] = {}
    for edge in edges:
        waits.setdefault(edge["task_id"], []).append(edge["depends_on"])
    below: dict[int | None, list[Row]] = {}
    counts: dict[TaskState, int] = {}
    for row in rows:
        below.setdefault(row["parent_id"], []).append(row)
        counts[TaskState(row["status"])] = counts.get(TaskState(row["status"]), 0) + 1

    def wanted(node: TaskNode) -> bool:
        fits = filter_status in (None, node.status) and filter_persona in (None, node.persona_id)
        return fits or bool(node.children)

    def nodes(parent: int | None) -> list[TaskNode]:
        made = [_node(row, nodes(row["id"]), waits.get(row["id"], [])) for row in below.get(parent, ())]
        return [node for node in made if wanted(node)]

    return TaskTree(tasks=nodes(None), counts=counts)


@op(allow=Level.READ, reads=True)
async def get_task_logs(
    ctx: Ctx,
    task_id: int,
    cursor: Annotated[int, Field(ge=0, description="Read on after this line's id.")] = 0,
    limit: Annotated[int, Field(ge=1, le=500)] = 200,
) -> TaskLog:
    """What was reported while the task was worked on, oldest first."""

    def question(tx: Reader) -> list[Row]:
        require_row(tx, task_id)
        return tx.all(SQL.logs, task_id=task_id, cursor=cursor, limit=limit)

    return TaskLog(lines=[LogLine(**row) for row in await ctx.read(question)])


@op(allow=Level.PLANNER, destructive=True)
async def cancel_task(ctx: Ctx, task_id: int, reason: Annotated[str, Field(max_length=1_000)] = "") -> Task:
    """Cancel a task and everything under it that is not finished; who holds one loses it."""

    def change(tx: Tx) -> Task:
        lifecycle.step(require_row(tx, task_id)["status"], lifecycle.Action.CANCEL)
        for row in tx.all(SQL.subtree_open, task_id=task_id):
            tx.run(SQL.cancel, task_id=row["id"], reason=reason or None, now=tx.now)
            tx.run(SQL.end_attempt, task_id=row["id"], outcome="cancelled", error=reason or None, now=tx.now)
            tx.emit("task.cancelled", f"task:{row['id']}", reason=reason)
        return require_task(tx, task_id)

    return await ctx.write(change)


def require_row(tx: Reader, task_id: int) -> Row:
    """A task's columns, what it is and how it stands.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    row = tx.one(SQL.get, id=task_id)
    if row is None:
        raise NotFound("TASK_NOT_FOUND", f"There is no task {task_id}. list_tasks names them.")
    return row


def _require_parent(tx: Reader, task_id: int) -> None:
    require_row(tx, task_id)
    depth = tx.one(SQL.depth, task_id=task_id)
    if depth and depth["n"] >= TREE_DEPTH:
        raise BadInput("TOO_DEEP", f"Task {task_id} has {TREE_DEPTH - 1} tasks above it. Make this one its sibling.")


def require_task(tx: Reader, task_id: int) -> Task:
    """A task with everything about it.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    row = require_row(tx, task_id)
    waits = tx.all(SQL.dependencies, task_id=task_id)
    return Task(
        **line_of(row),
        description=row["description"],
        run=json.loads(row["run"]) if row["run"] else None,
        context_ref=row["context_ref"],
        metadata=json.loads(row["metadata"]),
        dependencies=[w["depends_on"] for w in waits],
        blocked_by=[w["depends_on"] for w in waits if w["status"] != TaskState.COMPLETED],
        created_by=row["created_by"],
        created_at=row["created_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        lease_expires_at=row["lease_expires_at"],
        not_before=row["not_before"],
        retry_count=row["retry_count"],
        max_retries=row["max_retries"],
        result_data=json.loads(row["result_data"]) if row["result_data"] else None,
        artifacts=json.loads(row["artifacts"]) if row["artifacts"] else [],
        error_message=row["error_message"],
        attempts=[Attempt(**a) for a in tx.all(SQL.attempts, task_id=task_id)],
    )


def line_of(row: Row) -> dict[str, Any]:
    """The fields of `TaskLine` from a row."""
    return {
        "id": row["id"],
        "title": row["title"],
        "status": row["status"],
        "persona_id": row["persona_id"],
        "priority": row["priority"],
        "worktree": row["worktree"] or None,
        "plan": row["plan"],
        "name": row["name"],
        "parent_task_id": row["parent_id"],
        "assigned_agent_id": row["holder"],
        "progress": row["progress"],
        "attempt": row["attempt"],
        "blocked": row["status"] == TaskState.PENDING and row["unmet"] > 0,
    }


def bounded_json(value: Any, settings: Settings) -> str:
    """JSON text of a value from outside.

    Raises:
        BadInput: ``TOO_LARGE``.
    """
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (ValueError, RecursionError) as error:
        raise BadInput("INVALID_ARGUMENTS", f"The data is not JSON: {error}.", problems=[]) from None
    if size > settings.max_result_bytes:
        raise BadInput(
            "TOO_LARGE",
            f"The data has {size:,} bytes of JSON; at most {settings.max_result_bytes:,} are kept. "
            "Put it into a file and name that as an artifact.",
        )
    return text


def _node(row: Row, children: Sequence[TaskNode], dependencies: list[int]) -> TaskNode:
    return TaskNode(
        **line_of(row),
        dependencies=dependencies,
        children=list(children),
        open_below=sum((c.status in lifecycle.OPEN) + c.open_below for c in children),
        completed_below=sum((c.status == TaskState.COMPLETED) + c.completed_below for c in children),
    )


def not_claimable(tx: Reader, row: Row) -> Conflict:
    """Why a task cannot be claimed now, as an error."""
    blockers = [
        w["depends_on"] for w in tx.all(SQL.dependencies, task_id=row["id"]) if w["status"] != TaskState.COMPLETED
    ]
    if row["status"] != TaskState.PENDING:
        why = f"it is {row['status']}"
    elif blockers:
        why = f"it waits for {', '.join(map(str, blockers))}"
    elif row["not_before"]:
        why = "its next attempt waits for the backoff to end"
    else:
        why = "it is for another persona, worktree or agent"
    return Conflict(
        "TASK_NOT_CLAIMABLE",
        f"Task {row['id']} cannot be claimed: {why}.",
        status=row["status"],
        blocked_by=blockers,
    )
