"""Imports tasks: those that have ended stay as they ended; all others become pending, and nobody holds them.

Nothing that waits for a person's approval, or was left out of one, is imported, nor what depends on it or is below it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import WorkbenchError
from workbench.model import SECOND, OnFailure, TaskState
from workbench.ops import Ctx
from workbench.rules import access
from workbench.rules.secrets.executed import with_masks
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import TREE_DEPTH
from workbench.rules.tasks.plan import find_cycle
from workbench.services.access.personas import require_persona
from workbench.services.resources import leases
from workbench.services.sharing import import_file
from workbench.services.sharing.import_file import TaskRow, micros
from workbench.services.tasks import checks
from workbench.services.tasks.creation import reservable
from workbench.services.tasks.rows import recount
from workbench.services.tasks.task import bounded_json
from workbench.store.base import Reader, Tx, Values
from workbench.store.queries import beside

SQL = beside(__file__)
MILLISECOND = 1_000
"""To which a file says a time."""

Problems = list[dict[str, Any]]
SessionOf = Callable[[TaskRow], str | None]


@dataclass(slots=True)
class AddedTasks:
    """The titles of the tasks that were added, how many were here, and what the user is to know."""

    added: list[str] = field(default_factory=list)
    present: int = 0
    remarks: list[str] = field(default_factory=list)


def add(tx: Tx, ctx: Ctx, rows: Sequence[TaskRow], session_of: SessionOf) -> AddedTasks:
    """Add the tasks of a file that are not here yet, in the caller's transaction.

    A task is known by its plan and its name, or else by when it was created and its title.

    Args:
        session_of: the id of the session that a row names.

    Raises:
        BadInput: ``IMPORT_INVALID``.
    """
    _require_fit(rows)
    undecided = _undecided(rows)
    ids = {number: task_id for number, task_id in _present(tx, rows) if number not in undecided}
    result = AddedTasks(present=len(ids))
    news = [number for number in range(len(rows)) if number not in ids and number not in undecided]
    strangers, problems = 0, []
    for number in news:
        row = rows[number]
        try:
            creator = _creator(tx, row)
            ids[number] = _add(tx, ctx, row, session_of(row), creator)
        except WorkbenchError as error:
            problems.append(import_file.problem(number + 1, error.code, error.message.rstrip(".")))
            continue
        strangers += row.created_by not in (None, creator)
        result.added.append(with_masks(row.title))
    if problems:
        raise import_file.invalid(problems)
    _relate(tx, rows, news, ids)
    for plan in sorted({row.plan for number in news if (row := rows[number]).plan is not None}):
        tx.run(SQL.add_plan, name=plan, by=tx.actor, now=tx.now)
    result.remarks = list(_remarks(rows, news, ids, strangers, len(undecided)))
    return result


def _remarks(
    rows: Sequence[TaskRow], news: Sequence[int], ids: Mapping[int, int], strangers: int, undecided: int
) -> Iterator[str]:
    renumbered = sum(rows[number].id not in (None, ids[number]) for number in news)
    put_back = sum(rows[number].status in lifecycle.HELD for number in news)
    for sentence, count in (
        ("Tasks that have another id here: {:,}.", renumbered),
        ("Tasks that were being done, and are pending here: {:,}.", put_back),
        ("Tasks whose creator is not here, and are yours: {:,}.", strangers),
        ("Tasks that no person has approved, or that depend on such, and are left out: {:,}.", undecided),
    ):
        if count:
            yield sentence.format(count)


def _require_fit(rows: Sequence[TaskRow]) -> None:
    """Refuse rows that refer to none of the file, are named twice, or wait for each other.

    Raises:
        BadInput: ``IMPORT_INVALID``.
    """
    problems: Problems = []
    first: dict[Any, int] = {}
    for number, row in enumerate(rows, 1):
        for name, key in (("id", row.id), ("name", (row.plan, row.name) if row.plan else None)):
            if key is not None and first.setdefault((name, key), number) != number:
                problems.append(import_file.problem(number, name, f"row {first[name, key]} has the same"))
        if row.plan is not None and row.name is None:
            problems.append(import_file.problem(number, "name", "a task of a plan has a name"))
    for number, row in enumerate(rows, 1):
        for name, other in (("parent_task_id", row.parent_task_id), *(("dependencies", on) for on in row.dependencies)):
            if other is not None and ("id", other) not in first:
                problems.append(import_file.problem(number, name, f"no row of the file has the id {other}"))
    if not problems:
        problems = _circles(rows)
    if problems:
        raise import_file.invalid(problems)


def _circles(rows: Sequence[TaskRow]) -> Problems:
    """Tasks that are parts of each other, or wait for each other: also as a subtask waits for what its parent does."""
    number_of = {str(row.id): number for number, row in enumerate(rows, 1)}
    above = {str(row.id): str(row.parent_task_id) for row in rows if row.parent_task_id is not None}
    if cycle := find_cycle({name: [parent] for name, parent in above.items()}):
        reason = f"the tasks are parts of each other: {' → '.join(cycle)}"
        return [import_file.problem(number_of[cycle[0]], "parent_task_id", reason)]
    chains: dict[str, list[str]] = {}
    for name in number_of:
        chain = [name]
        while chain[-1] in above and len(chain) <= TREE_DEPTH:
            chain.append(above[chain[-1]])
        if len(chain) > TREE_DEPTH:
            reason = f"it has more than {TREE_DEPTH - 1} tasks above it"
            return [import_file.problem(number_of[name], "parent_task_id", reason)]
        chains[name] = chain
    after = {str(row.id): [str(on) for on in row.dependencies] for row in rows}
    waits = {
        name: [
            *after[name],
            *(on for over in chain[1:] for on in after[over] if over not in chains[on]),
        ]
        for name, chain in chains.items()
    }
    if cycle := find_cycle(waits):
        reason = f"the tasks would wait for each other: {' → '.join(cycle)}"
        return [import_file.problem(number_of[cycle[0]], "dependencies", reason)]
    return []


def _undecided(rows: Sequence[TaskRow]) -> set[int]:
    """The rows that are left out: what no person has approved, what is below it, and what cannot begin without it."""
    following: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        needs_all = row.status in lifecycle.OPEN and row.on_failure is not OnFailure.IGNORE
        for other in (row.parent_task_id, *(row.dependencies if needs_all else ())):
            if other is not None:
                following.setdefault(other, []).append(number)
    waiting = deque(number for number, row in enumerate(rows) if not row.approved)
    found: set[int] = set()
    while waiting:
        number = waiting.popleft()
        if number not in found:
            found.add(number)
            of = rows[number].id
            waiting.extend(following.get(of, ()) if of is not None else ())
    return found


def _present(tx: Reader, rows: Sequence[TaskRow]) -> Iterator[tuple[int, int]]:
    """The rows that are here already, with the ids of their tasks: of equal ones, as many as there are here."""
    candidates: dict[int, dict[str, deque[int]]] = {}
    for number, row in enumerate(rows):
        if row.plan is not None:
            if found := tx.one(SQL.of_plan, plan=row.plan, name=row.name):
                yield number, found["id"]
        elif row.created_at is not None:
            start = micros(row.created_at, 0) // MILLISECOND * MILLISECOND
            if start not in candidates:
                candidates[start] = _created_at(tx, start)
            if left := candidates[start].get(with_masks(row.title)):
                yield number, left.popleft()


def _created_at(tx: Reader, start: int) -> dict[str, deque[int]]:
    """The ids of the tasks that were created within a millisecond, by title."""
    found: dict[str, deque[int]] = {}
    for task in tx.all(SQL.created_between, start=start, until=start + MILLISECOND):
        found.setdefault(with_masks(task["title"]), deque()).append(task["id"])
    return found


def _creator(tx: Tx, row: TaskRow) -> str:
    """The agent that created a task, if this project has it; else whoever imports the task."""
    agent = tx.one(SQL.agent, agent_id=row.created_by)
    return str(agent["assigned_agent_id"]) if agent else tx.actor


def _add(tx: Tx, ctx: Ctx, row: TaskRow, session: str | None, creator: str) -> int:
    """Add a task without what it waits for and is part of.

    Raises:
        WorkbenchError: as `creation.add_task`.
    """
    settings, is_over = ctx.settings, row.status not in lifecycle.OPEN
    persona = require_persona(tx, row.persona_id)
    if row.target_worktree:
        access.check_worktree_name(row.target_worktree)
    if not is_over:
        checks.require_terms(tx, persona.id, row.done_when, row.check)
    values = row.model_dump(include={"title", "description", "plan", "name", "target_worktree", "context_ref", "due"})
    added = tx.one(
        SQL.add,
        values,
        persona_id=persona.id,
        run=json.dumps(row.run) if row.run else None,
        check=json.dumps(row.check) if row.check else None,
        done_when=row.done_when,
        metadata=bounded_json(row.metadata, settings),
        max_retries=settings.max_retries if row.max_retries is None else row.max_retries,
        lease_us=round((row.lease_seconds or persona.lease_seconds or settings.lease_seconds) * SECOND),
        session=session,
        on_failure=row.on_failure,
        no_retry=json.dumps(row.no_retry),
        created_by=creator,
        created_at=micros(row.created_at, tx.now),
    )
    assert added is not None
    task_id = int(added["id"])
    standing = _ended(tx, ctx, row) if is_over else _pending(tx, row, session)
    tx.run(
        SQL.add_status,
        standing,
        task_id=task_id,
        persona_id=persona.id,
        worktree=row.target_worktree or "",
        session=session or "",
        priority=row.priority,
        retry_count=row.retry_count,
        error_message=row.error_message,
        needs=leases.stored(row.needs),
    )
    data = {"title": with_masks(row.title), "persona_id": persona.id, "status": standing["status"]}
    tx.emit("task.imported", f"task:{task_id}", session=session, **data)
    return task_id


_NO_END: Values = dict.fromkeys(
    ("assigned_agent_id", "not_before", "started_at", "completed_at", "result_data", "artifacts", "evidence")
)


def _pending(tx: Tx, row: TaskRow, session: str | None) -> dict[str, Any]:
    """The state of an open task: as after the end of everybody who worked on it."""
    rests = None if row.not_before is None else micros(row.not_before, tx.now)
    return {
        **_NO_END,
        "status": TaskState.PENDING,
        "progress": 0,
        "reserved_for": reservable(tx, row.reserved_for, session) if row.reserved_for else None,
        "not_before": rests if rests is not None and rests > tx.now else None,
    }


def _ended(tx: Tx, ctx: Ctx, row: TaskRow) -> dict[str, Any]:
    """The state of a task that has ended."""
    began = None if row.started_at is None else micros(row.started_at, tx.now)
    uids = {name: tx.one(SQL.agent, agent_id=getattr(row, name)) for name in ("assigned_agent_id", "reserved_for")}
    is_done = row.status is TaskState.COMPLETED
    return {
        **_NO_END,
        **{name: agent and agent["id"] for name, agent in uids.items()},
        "status": row.status,
        "progress": row.progress,
        "started_at": began,
        "completed_at": micros(row.completed_at, tx.now),
        "result_data": None if row.result_data is None else bounded_json(row.result_data, ctx.settings),
        "artifacts": bounded_json(row.artifacts, ctx.settings) if row.artifacts else None,
        "evidence": row.evidence if is_done else None,
    }


def _relate(tx: Tx, rows: Sequence[TaskRow], news: Sequence[int], ids: Mapping[int, int]) -> None:
    """Make new tasks parts of others, and wait for others.

    Raises:
        BadInput: ``IMPORT_INVALID``.
    """
    here = {row.id: ids[number] for number, row in enumerate(rows) if number in ids}
    status = {row.id: row.status for row in rows}
    problems: Problems = []
    for number in news:
        row, task_id = rows[number], ids[number]
        if row.parent_task_id is not None:
            tx.run(SQL.set_parent, id=task_id, parent=here[row.parent_task_id])
        others = sorted({here[on] for on in row.dependencies if on in here})
        tx.many(SQL.add_dependency, [{"task_id": task_id, "on": on} for on in others])
        if row.status in lifecycle.OPEN:
            try:
                lifecycle.require_alive(row.on_failure, {here[on]: status[on] for on in row.dependencies if on in here})
            except WorkbenchError as error:
                problems.append(import_file.problem(number + 1, error.code, error.message.rstrip(".")))
    if problems:
        raise import_file.invalid(problems)
    for number in news:
        if rows[number].status in lifecycle.OPEN and (rows[number].dependencies or rows[number].parent_task_id):
            recount(tx, ids[number])
