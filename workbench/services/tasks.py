"""Tasks: what there is to do, in what order, and how it stands (spec 3).

Doing it is in `leases`, what waits for what in `dependencies`, and changing one's mind in `steering`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound, Refused
from workbench.model import SECOND, Level, Micros, OnFailure, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules import access, lifecycle, paging
from workbench.rules.lifecycle import TREE_DEPTH
from workbench.rules.paging import Cursor
from workbench.services import agent_tools
from workbench.services.personas import require_persona
from workbench.services.registration import require_agent
from workbench.services.sessions import require_session
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import Query, beside

SQL = beside(__file__)

_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode

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
SessionRef = Annotated[
    str | None, Field(description="Only agents of this session may claim it (id or name); anybody's when null.")
]
Policy = Annotated[
    OnFailure, Field(description="When a dependency fails or is cancelled: stay blocked, be cancelled, or go on.")
]
NoRetry = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]],
    Field(max_length=50, description="Classes of errors after which it is not tried again, such as ValueError."),
]


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
    session_id: SessionRef = None
    on_failure: Policy = OnFailure.BLOCK
    no_retry: NoRetry = []


class PlannedTask(NewTask):
    """A task to be, as one of a plan."""

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
    error_class: str | None
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
    session_id: str | None
    assigned_agent_id: str | None
    progress: int
    attempt: int
    retry_count: int
    blocked: bool
    not_before: Micros | None
    error_message: str | None


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
    max_retries: int
    lease_seconds: float
    reserved_for: str | None
    on_failure: OnFailure
    no_retry: list[str]
    result_data: Any
    artifacts: list[str]
    attempts: list[Attempt]


class TaskStatus(Wire):
    """How a task stands, in few words."""

    id: int
    status: TaskState
    progress: int
    attempt: int
    assigned_agent_id: str | None
    lease_expires_at: Micros | None
    blocked_by: list[int]
    error_message: str | None


class TaskList(Wire):
    """Tasks in the order that was asked for; read on with `next_cursor`, which is null at the end."""

    tasks: list[TaskLine]
    next_cursor: str | None


class TaskCounts(Wire):
    """How many tasks are in which state; those that no task is in are left out."""

    counts: dict[TaskState, int]


class TasksMade(Wire):
    """The ids of new tasks, in the order they were given."""

    task_ids: list[int]


class TaskGraph(Wire):
    """Which tasks wait for which, and which are parts of which; pairs of ids."""

    dependencies: list[tuple[int, int]]
    parents: list[tuple[int, int]]


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
    """Log lines in the order that was asked for."""

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
    session_id: SessionRef = None,
    on_failure: Policy = OnFailure.BLOCK,
    no_retry: NoRetry = [],
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
        session_id=session_id,
        on_failure=on_failure,
        no_retry=no_retry,
    )
    return await ctx.write(lambda tx: require_task(tx, add(tx, ctx, new)))


@op(allow=Level.PLANNER, tool=False)
async def create_tasks(
    ctx: Ctx,
    tasks: Annotated[list[NewTask], Field(min_length=1, max_length=10_000, description="As of create_task.")],
) -> TasksMade:
    """Create many tasks in one transaction, all or none. A negative dependency -n is the n-th of the list."""

    def change(tx: Tx) -> TasksMade:
        made: list[int] = []
        for new in tasks:
            named = [_of_list(made, on) for on in new.dependencies]
            made.append(add(tx, ctx, new.model_copy(update={"dependencies": named})))
        return TasksMade(task_ids=made)

    return await ctx.write(change)


def _of_list(made: Sequence[int], dependency: int) -> int:
    if dependency > 0:
        return dependency
    if not 1 <= -dependency <= len(made):
        raise BadInput("BAD_DEPENDENCY", f"{dependency} is no task before this one in the list.", problems=[])
    return made[-dependency - 1]


def add(tx: Tx, ctx: Ctx, new: NewTask) -> int:
    """Add a task in the caller's transaction; its id.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``, ``TASK_NOT_FOUND``, ``AGENT_NOT_FOUND``, ``SESSION_NOT_FOUND``.
        BadInput: ``BAD_WORKTREE_NAME``, ``TOO_LARGE``, ``TOO_DEEP``. Refused: ``FORBIDDEN`` (another's session).
        Conflict: ``OTHER_SESSION`` (of the agent it is reserved for), ``DEPENDENCY_DEAD`` (before `on_failure=cancel`).
    """
    settings = ctx.settings
    persona = require_persona(tx, new.persona_id)
    session = session_for(tx, ctx.caller, new.session_id)
    if new.target_worktree:
        access.check_worktree_name(new.target_worktree)
    if new.parent_task_id is not None:
        _require_parent(tx, ctx.caller, new.parent_task_id)
    reserved = reservable(tx, new.assigned_agent_id, session) if new.assigned_agent_id else None
    states = {other: TaskState(seen(tx, ctx.caller, other)["status"]) for other in set(new.dependencies)}
    lifecycle.require_alive(new.on_failure, states)
    unmet = sum(not lifecycle.is_met(new.on_failure, state) for state in states.values())
    retries = settings.max_retries if new.max_retries is None else new.max_retries
    made = tx.one(
        SQL.add,
        title=new.title,
        description=new.description,
        persona_id=persona.id,
        parent_id=new.parent_task_id,
        worktree=new.target_worktree,
        plan=new.plan if isinstance(new, PlannedTask) else None,
        name=new.name if isinstance(new, PlannedTask) else None,
        session_id=session,
        on_failure=new.on_failure,
        no_retry=json.dumps(new.no_retry),
        run=None if new.run is None else json.dumps(new.run),
        context_ref=new.context_ref,
        metadata=bounded_json(new.metadata, settings),
        max_retries=retries,
        lease_us=round((new.lease_seconds or persona.lease_seconds or settings.lease_seconds) * SECOND),
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
        session=session or "",
        priority=new.priority,
        unmet=unmet,
        reserved_for=reserved,
    )
    tx.many(SQL.add_dependency, [{"task_id": task_id, "on": on} for on in sorted(set(new.dependencies))])
    told = {"title": new.title, "persona_id": persona.id, "ready": unmet == 0}
    tx.emit("task.created", f"task:{task_id}", session=session, **told)
    return task_id


def session_for(tx: Reader, caller: Caller, ref: str | None) -> str | None:
    """The session of a new task: the one that was named, else the planner's own.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another's session).
    """
    session = caller.session if ref is None else str(require_session(tx, ref)["id"])
    if caller.agent is not None and session != caller.session:
        raise Refused("FORBIDDEN", f"{caller.name} is in another session; leave the session out.")
    return session


@op(allow=Level.READ, reads=True)
async def get_task(ctx: Ctx, task_id: int) -> Task:
    """One task with everything about it: text, state, dependencies, attempts, result, artifacts."""
    return await ctx.read(lambda tx: task_of(tx, readable(tx, ctx.caller, task_id)))


@op(allow=Level.READ, reads=True, tool=False)
async def get_task_status(ctx: Ctx, task_id: int) -> TaskStatus:
    """How one task stands, and what it waits for."""
    return await ctx.read(lambda tx: _status(tx, readable(tx, ctx.caller, task_id)))


@op(allow=Level.READ, reads=True)
async def wait_for_task(
    ctx: Ctx,
    task_id: int,
    until: Annotated[Literal["ended", "changed"], Field(description="Its end, or whatever happens to it.")] = "ended",
    wait_seconds: Annotated[float, Field(ge=0, description="Answer after this long at the latest.")] = 30,
) -> TaskStatus:
    """Wait until a task has ended, or until anything happens to it; how it stands then."""
    deadline = asyncio.get_running_loop().time() + min(wait_seconds, ctx.settings.wait_limit_seconds)
    async with ctx.feed.subscribe("task.*") as events:
        state = await get_task_status(ctx, task_id)
        while state.status in lifecycle.OPEN:
            found = await events.within(deadline - asyncio.get_running_loop().time())
            if found is None:
                break
            if found.subject == f"task:{task_id}":
                state = await get_task_status(ctx, task_id)
                if until == "changed":
                    break
    return state


@op(allow=Level.READ, reads=True)
async def list_tasks(
    ctx: Ctx,
    status: TaskState | None = None,
    persona_id: str | None = None,
    assigned_agent_id: Annotated[str | None, Field(description="Who holds it, or held it last.")] = None,
    session_id: Annotated[str | None, Field(description="Id of its session.")] = None,
    worktree: str | None = None,
    parent_task_id: int | None = None,
    plan: str | None = None,
    sort: Annotated[
        Literal["id", "newest", "priority"], Field(description="Oldest, newest or most urgent first.")
    ] = "id",
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100,
    cursor: Cursor = None,
) -> TaskList:
    """Tasks, filtered and sorted."""
    wanted = {
        "status": status,
        "persona_id": persona_id.lower() if persona_id else None,
        "agent": assigned_agent_id,
        "session": session_id,
        "worktree": worktree,
        "parent": parent_task_id,
        "plan": plan,
    }
    query, columns, start = _ORDERS[sort]
    after = paging.decode(cursor, *(int for _ in columns)) if cursor else start
    key = dict(zip(("after_id", "after_priority"), reversed(after), strict=False))
    rows = await ctx.read(lambda tx: tx.all(query, _sight(tx, ctx.caller) | wanted | key, limit=limit + 1))
    shown, following = paging.cut(rows, limit, *columns)
    return TaskList(tasks=[TaskLine(**line_of(row)) for row in shown], next_cursor=following)


_LARGEST = 2**63 - 1
_ORDERS = {
    "id": (SQL.list, ("id",), (0,)),
    "newest": (SQL.list_newest, ("id",), (_LARGEST,)),
    "priority": (SQL.list_urgent, ("priority", "id"), (_LARGEST, 0)),
}


@op(allow=Level.READ, reads=True, tool=False)
async def count_tasks(ctx: Ctx) -> TaskCounts:
    """How many tasks there are, by state."""
    rows = await ctx.read(lambda tx: tx.all(SQL.counts, _sight(tx, ctx.caller)))
    return TaskCounts(counts={row["status"]: row["n"] for row in rows})


@op(allow=Level.READ, reads=True, tool=False)
async def get_task_graph(
    ctx: Ctx, plan: Annotated[str | None, Field(description="Only tasks of this plan.")] = None
) -> TaskGraph:
    """The edges between tasks: `[task, what it waits for]` and `[task, its parent]`."""

    def question(tx: Reader) -> TaskGraph:
        wanted = _sight(tx, ctx.caller) | {"plan": plan}
        return TaskGraph(
            dependencies=[(row["task_id"], row["depends_on"]) for row in tx.all(SQL.edges, wanted)],
            parents=[(row["id"], row["parent_id"]) for row in tx.all(SQL.parents, wanted)],
        )

    return await ctx.read(question)


@op(allow=Level.READ, reads=True)
async def get_task_tree(
    ctx: Ctx,
    filter_status: TaskState | None = None,
    filter_persona: str | None = None,
) -> TaskTree:
    """The tasks as a tree with roll-ups; a filter keeps matching tasks and what leads to them."""

    def question(tx: Reader) -> tuple[list[Row], list[Row]]:
        on_board = _sight(tx, ctx.caller) | {"plan": None}
        return tx.all(SQL.tree, on_board), tx.all(SQL.edges, on_board)

    rows, edges = await ctx.read(question)
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


@op(allow=Level.READ, reads=True)
async def get_task_logs(
    ctx: Ctx,
    task_id: int,
    cursor: Annotated[int, Field(ge=0, description="Read on after the line of this id, in the same order.")] = 0,
    limit: Annotated[int, Field(ge=1, le=500)] = 200,
    newest_first: Annotated[bool, Field(description="The end of the log, and backward from there.")] = False,
) -> TaskLog:
    """What was reported while the task was worked on, oldest first unless asked otherwise."""

    def question(tx: Reader) -> list[Row]:
        readable(tx, ctx.caller, task_id)
        if newest_first:
            return tx.all(SQL.logs_back, task_id=task_id, cursor=cursor or _LARGEST, limit=limit)
        return tx.all(SQL.logs, task_id=task_id, cursor=cursor, limit=limit)

    return TaskLog(lines=[LogLine(**row) for row in await ctx.read(question)])


def require_row(tx: Reader, task_id: int) -> Row:
    """A task's columns, what it is and how it stands.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return _found(tx, SQL.get, task_id)


def require_line(tx: Reader, task_id: int) -> Row:
    """Fewer columns: those of a list, what whoever holds it must know, and `awaited`.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return _found(tx, SQL.get_line, task_id)


def _found(tx: Reader, query: Query, task_id: int) -> Row:
    row = tx.one(query, id=task_id)
    if row is None:
        raise _no_task(task_id)
    return row


def _require_parent(tx: Reader, caller: Caller, task_id: int) -> None:
    seen(tx, caller, task_id)
    depth = tx.one(SQL.depth, task_id=task_id)
    if depth and depth["n"] >= TREE_DEPTH:
        raise BadInput("TOO_DEEP", f"Task {task_id} has {TREE_DEPTH - 1} tasks above it. Make this one its sibling.")


def readable(tx: Reader, caller: Caller, task_id: int) -> Row:
    """The same, for those whose tool may read tasks.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    agent_tools.check(tx, caller, "read", "tasks")
    return seen(tx, caller, task_id)


def seen(tx: Reader, caller: Caller, task_id: int) -> Row:
    """The same, of a task on the caller's board: its session's, or nobody's.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    row = require_row(tx, task_id)
    if caller.level is not Level.OPERATOR and row["session_id"] not in (None, caller.session):
        raise _no_task(task_id)
    return row


def reservable(tx: Reader, agent_id: str, session: str | None) -> str:
    """The internal id of an agent that a task of a session, or of none, may be reserved for.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``OTHER_SESSION``.
    """
    agent = require_agent(tx, agent_id)
    if session not in (None, agent["session_id"]):
        raise Conflict("OTHER_SESSION", f"{agent_id} is not in the task's session and could never claim it.")
    return str(agent["id"])


def _sight(tx: Reader, caller: Caller) -> dict[str, Any]:
    """The same as `readable`, as parameters of queries."""
    agent_tools.check(tx, caller, "read", "tasks")
    return {"everything": int(caller.level is Level.OPERATOR), "mine": caller.session}


def _no_task(task_id: int) -> NotFound:
    return NotFound("TASK_NOT_FOUND", f"There is no task {task_id}. list_tasks names them.")


def require_task(tx: Reader, task_id: int) -> Task:
    """A task with everything about it.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return task_of(tx, require_row(tx, task_id))


def blockers(tx: Reader, row: Row) -> list[int]:
    """The dependencies that a task still waits for."""
    return _unmet(row, tx.all(SQL.dependencies, task_id=row["id"]))


def _unmet(row: Row, waits: Sequence[Row]) -> list[int]:
    if row["status"] not in lifecycle.OPEN:
        return []
    return [w["depends_on"] for w in waits if not lifecycle.is_met(row["on_failure"], w["status"])]


def _status(tx: Reader, row: Row) -> TaskStatus:
    return TaskStatus(
        id=row["id"],
        status=row["status"],
        progress=row["progress"],
        attempt=row["attempt"],
        assigned_agent_id=row["holder"],
        lease_expires_at=row["lease_expires_at"],
        blocked_by=blockers(tx, row),
        error_message=row["error_message"],
    )


def task_of(tx: Reader, row: Row) -> Task:
    """A task with everything about it, from its row."""
    task_id = row["id"]
    waits = tx.all(SQL.dependencies, task_id=task_id)
    return Task(
        **line_of(row),
        description=row["description"],
        run=json.loads(row["run"]) if row["run"] else None,
        context_ref=row["context_ref"],
        metadata=json.loads(row["metadata"]),
        dependencies=[w["depends_on"] for w in waits],
        blocked_by=_unmet(row, waits),
        created_by=row["created_by"],
        created_at=row["created_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        lease_expires_at=row["lease_expires_at"],
        max_retries=row["max_retries"],
        lease_seconds=row["lease_us"] / SECOND,
        reserved_for=row["reserved_name"],
        on_failure=row["on_failure"],
        no_retry=json.loads(row["no_retry"]),
        result_data=json.loads(row["result_data"]) if row["result_data"] else None,
        artifacts=json.loads(row["artifacts"]) if row["artifacts"] else [],
        attempts=_attempts(tx, row),
    )


def _attempts(tx: Reader, row: Row) -> list[Attempt]:
    """All claims of a task; the row itself tells of the first one, as long as it is under way."""
    if row["attempt"] > 1 or row["status"] not in lifecycle.HELD:
        return [Attempt(**a) for a in tx.all(SQL.attempts, task_id=row["id"])]
    under_way = dict.fromkeys(("ended_at", "outcome", "error_class", "error_message"))
    first = {key: row[key] for key in ("attempt", "claimed_at", "started_at")}
    return [Attempt(agent_id=row["holder"], **first, **under_way)]


def require_task_line(tx: Reader, task_id: int) -> TaskLine:
    """A task in a list.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return TaskLine(**line_of(require_line(tx, task_id)))


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
        "session_id": row["session_id"],
        "assigned_agent_id": row["holder"],
        "progress": row["progress"],
        "attempt": row["attempt"],
        "retry_count": row["retry_count"],
        "blocked": row["status"] == TaskState.PENDING and row["unmet"] > 0,
        "not_before": row["not_before"],
        "error_message": row["error_message"],
    }


def bounded_json(value: Any, settings: Settings) -> str:
    """JSON text of a value from outside.

    Raises:
        BadInput: ``TOO_LARGE``.
    """
    try:
        text = _compact(value)
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
    waits = blockers(tx, row)
    if row["status"] != TaskState.PENDING:
        why = f"it is {row['status']}"
    elif waits:
        why = f"it waits for {', '.join(map(str, waits))}"
    elif row["not_before"]:
        why = "its next attempt waits for the backoff to end"
    else:
        why = "it is for another persona, worktree, session or agent"
    return Conflict(
        "TASK_NOT_CLAIMABLE",
        f"Task {row['id']} cannot be claimed: {why}.",
        status=row["status"],
        blocked_by=waits,
    )
