"""The rows of tasks: reading them, who may see and change them, and converting them to answers.

Other services' queries of tasks are here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from workbench.errors import Hint, NotFound, Refused
from workbench.model import SECOND, Level, TaskState
from workbench.ops import Caller
from workbench.rules.tasks import lifecycle
from workbench.services.access import permissions
from workbench.services.resources import leases
from workbench.services.spending import spent
from workbench.services.tasks.task import Attempt, AttemptCheck, KeptWork, TaskInfo, TaskStatus, TaskSummary
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import Query, beside

SQL = beside(__file__)


def require_row(tx: Reader, task_id: int) -> Row:
    """All columns of a task and its status.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return _require(tx, SQL.get, task_id)


def require_line(tx: Reader, task_id: int) -> Row:
    """Fewer columns: those of a summary, those that the holder needs, and `awaited`.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return _require(tx, SQL.get_line, task_id)


def _require(tx: Reader, query: Query, task_id: int) -> Row:
    row = tx.one(query, id=task_id)
    if row is None:
        raise _no_task(task_id)
    return row


def readable_row(tx: Reader, caller: Caller, task_id: int) -> Row:
    """Like `visible_row`, for callers whose tool may read tasks.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    permissions.check(tx, caller, "read", "tasks")
    return visible_row(tx, caller, task_id)


def readable_rows(tx: Reader, caller: Caller, task_ids: Iterable[int]) -> list[Row]:
    """Like `readable_row`, for several tasks; those that the caller does not see are left out.

    Raises:
        Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    permissions.check(tx, caller, "read", "tasks")
    rows = (tx.one(SQL.get, id=task_id) for task_id in task_ids)
    return [row for row in rows if row is not None and _is_visible(caller, row)]


def visible_row(tx: Reader, caller: Caller, task_id: int) -> Row:
    """Like `require_row`, for a task that the caller sees: one of its session, or of none. The operator sees all.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    row = tx.one(SQL.get, id=task_id)
    if row is None or not _is_visible(caller, row):
        raise _no_task(task_id, caller)
    return row


def _is_visible(caller: Caller, row: Row) -> bool:
    return caller.level is Level.OPERATOR or row["session_id"] in (None, caller.session)


def require_own_row(tx: Reader, caller: Caller, task_id: int) -> Row:
    """The row of a task that the caller may change; the operator may change all.

    See `is_own` for an agent's own tasks.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``FORBIDDEN``.
    """
    row = visible_row(tx, caller, task_id)
    if may_change(tx, caller, task_id):
        return row
    raise Refused(
        "FORBIDDEN",
        f"Task {task_id} belongs to {row['created_by']}. You may change the tasks that you or the agents you spawned "
        "created, those you hold, and the subtasks of all these.",
        owner=row["created_by"],
    )


def may_change(tx: Reader, caller: Caller, task_id: int) -> bool:
    """Whether the caller may change a task: the operator all, an agent its own (see `is_own`)."""
    return caller.level is Level.OPERATOR or is_own(tx, caller, task_id)


def is_own(tx: Reader, caller: Caller, task_id: int) -> bool:
    """Whether a task, or one above it, was created by an agent or by those it spawned, or is held by the agent."""
    return tx.one(SQL.is_own, task_id=task_id, agent=caller.agent) is not None


def is_own_name(tx: Reader, caller: Caller, name: str) -> bool:
    """Whether a name (`created_by`) is or was that of an agent, or of one that it spawned."""
    return tx.one(SQL.is_own_name, agent=caller.agent, name=name) is not None


def task_scope(tx: Reader, caller: Caller) -> dict[str, Any]:
    """The rule of `readable_row` as parameters of queries."""
    permissions.check(tx, caller, "read", "tasks")
    return {"everything": int(caller.level is Level.OPERATOR), "mine": caller.session}


def waits_of(tx: Reader, task_id: int) -> list[Row]:
    """The tasks that a task depends on, with their states, ordered by id."""
    return tx.all(SQL.dependencies, task_id=task_id)


def reserve(tx: Tx, task_id: int, agent: str | None) -> None:
    """Reserve a task for an agent (`agent_uid`); None lifts the reservation."""
    tx.run(SQL.reserve, task_id=task_id, agent=agent)


def end_attempt(tx: Tx, task_id: int, outcome: str, error: str | None, error_class: str | None = None) -> None:
    """Record the outcome of the current attempt, if there is one; the token of its command ends with it."""
    if command := tx.one(SQL.attempt_with_token, task_id=task_id):
        tx.emit("agent.token_ended", f"agent:{command['agent_id']}", task_id=task_id, attempt=command["attempt"])
    spent.end(tx, task_id)
    values = {"task_id": task_id, "outcome": outcome, "error": error, "error_class": error_class}
    tx.run(SQL.end_attempt, values, now=tx.now)


def _no_task(task_id: int, caller: Caller | None = None) -> NotFound:
    """The error for a task that does not exist, or that the caller does not see: the same for both."""
    where = ""
    if caller is not None and caller.level is not Level.OPERATOR:
        where = (
            " in your session, nor outside of sessions"
            if caller.session
            else " outside of sessions, and you are in none"
        )
    return NotFound("TASK_NOT_FOUND", f"There is no task {task_id}{where}.", Hint("list_tasks", "{} lists the tasks."))


def require_task(tx: Reader, task_id: int) -> TaskInfo:
    """A task in full.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return task_of(tx, require_row(tx, task_id))


def require_task_line(tx: Reader, task_id: int) -> TaskSummary:
    """The summary of a task.

    Raises:
        NotFound: ``TASK_NOT_FOUND``.
    """
    return line_of(tx, require_line(tx, task_id))


def task_lines(tx: Reader, ids: Sequence[int]) -> list[TaskSummary]:
    """The summaries of tasks, by one query, in the order of `ids`; ids that do not exist are left out."""
    if not ids:
        return []
    rows = {row["id"]: row for row in tx.all(SQL.get_lines, ids=to_json(ids).decode())}
    return [line_of(tx, rows[task_id]) for task_id in ids if task_id in rows]


def task_of(tx: Reader, row: Row) -> TaskInfo:
    """A task in full, from its row."""
    task_id = row["id"]
    waits = waits_of(tx, task_id) if row["waits"] else []
    fields = {
        **line_fields(tx.now, row),
        "description": row["description"],
        "run": from_json(row["run"]) if row["run"] else None,
        "check": from_json(row["check_stated"]) if row["check_stated"] else None,
        "done_when": row["done_when"],
        "needs": from_json(row["needs"]) if row["needs"] else None,
        "waits_for": _waits_for(tx, row),
        "context_ref": row["context_ref"],
        "metadata": from_json(row["metadata"]),
        "dependencies": [w["depends_on"] for w in waits],
        "blocked_by": list(blockers(tx, row)),
        "created_by": row["created_by"],
        "created_at": row["created_at"],
        "claimed_at": row["claimed_at"],
        "started_at": row["started_at"],
        "completed_at": row["completed_at"],
        "lease_expires_at": row["lease_expires_at"],
        "max_retries": row["max_retries"],
        "lease_seconds": row["lease_us"] / SECOND,
        "reserved_for": row["reserved_name"],
        "on_failure": row["on_failure"],
        "no_retry": from_json(row["no_retry"]),
        "result_data": from_json(row["result_data"]) if row["result_data"] else None,
        "artifacts": from_json(row["artifacts"]) if row["artifacts"] else [],
        "attempts": _attempts(tx, row),
        "approval_id": row["approval_id"] if row["status"] in lifecycle.OPEN else None,
    }
    return TaskInfo.model_validate(fields)


def _attempts(tx: Reader, row: Row) -> list[Attempt]:
    """The attempts of a task. While the first one runs, unsupervised, unchecked and by an agent without a definition,
    its data comes from the row, without a query."""
    is_plain = not row["supervised"] and not row["has_checks"] and row["holder_definition"] is None
    if row["attempt"] > 1 or not is_plain or row["status"] not in lifecycle.HELD:
        return [_attempt(row["id"], attempt) for attempt in tx.all(SQL.attempts, task_id=row["id"])]
    columns = ("attempt", "claimed_at", "started_at", "leased")
    return [_attempt(row["id"], {"agent_id": row["holder"], **{name: row[name] for name in columns}})]


def _attempt(task_id: int, row: Row) -> Attempt:
    request = row.get("requested_end") if row.get("ended_at") is None else None
    finishing = from_json(request)["outcome"] if request else None
    plain = {name: row.get(name) for name in Attempt.model_fields}
    include = from_json(row["include"]) if row.get("include") else None
    leased = from_json(row["leased"]) if row.get("leased") else None
    parts = {"finishing": finishing, "include": include, "kept": _kept_work(task_id, row), "check": _check(row)}
    parts |= {"leased": leased}
    return Attempt.model_validate(plain | parts)


def _waits_for(tx: Reader, row: Row) -> str | None:
    """What a task that is ready needs and cannot have now."""
    is_ready = row["status"] == TaskState.PENDING and not row["unmet"]
    return leases.waits_for(tx, None, row["id"]) if is_ready else None


def _kept_work(task_id: int, row: Row) -> KeptWork | None:
    if not row.get("kept_commit") or row["state"] != "over":
        return None
    counts = {name: row[name] for name in ("commits", "files", "bytes")}
    return KeptWork(ref=attempt_ref(task_id, row["attempt"]), commit=row["kept_commit"], **counts)


def _check(row: Row) -> AttemptCheck | None:
    if row.get("check_state") is None:
        return None
    values = {name: row[f"check_{name}"] for name in AttemptCheck.model_fields}
    return AttemptCheck.model_validate(values | {"metrics": from_json(row["check_metrics"] or "null")})


def attempt_ref(task_id: int, attempt: int) -> str:
    """The reference that keeps the work of an attempt, in the user's repository."""
    return f"refs/workbench/attempts/{task_id}/{attempt}"


def line_of(tx: Reader, row: Row) -> TaskSummary:
    """The summary of a task, from its row."""
    return TaskSummary.model_validate(line_fields(tx.now, row))


def line_fields(now: int, row: Row) -> dict[str, Any]:
    """The fields of `TaskSummary` from a row."""
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
        "due": row["due"],
        "overdue": lifecycle.is_overdue(row["status"], row["due"], now),
        "evidence": row["evidence"],
    }


def status_of(tx: Reader, row: Row) -> TaskStatus:
    """The status of a task, from its row."""
    return TaskStatus(
        id=row["id"],
        status=row["status"],
        progress=row["progress"],
        attempt=row["attempt"],
        assigned_agent_id=row["holder"],
        lease_expires_at=row["lease_expires_at"],
        blocked_by=list(blockers(tx, row)),
        error_message=row["error_message"],
    )


def blockers(tx: Reader, row: Row) -> dict[int, TaskState]:
    """The dependencies that an open task still waits for, its own and those of the tasks above it, and their states."""
    if row["status"] not in lifecycle.OPEN or not row["unmet"]:
        return {}
    return {one["depends_on"]: TaskState(one["status"]) for one in tx.all(SQL.blockers, task_id=row["id"])}


def recount(tx: Tx, task_id: int) -> None:
    """Count again what a task and those below it wait for."""
    tx.run(SQL.recount, task_id=task_id)
