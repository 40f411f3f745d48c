"""Creating tasks, one or many at once, and the checks that every new task must pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused
from workbench.model import SECOND, GrantedAccess, Level, OnFailure, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.ops.parameters import PersonaId
from workbench.rules import access
from workbench.rules.secrets.executed import with_masks
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import TREE_DEPTH
from workbench.services.access.personas import require_persona
from workbench.services.agents.rows import require_agent
from workbench.services.resources import leases
from workbench.services.spaces.sessions import require_session
from workbench.services.tasks import approval, checks
from workbench.services.tasks.rows import recount, require_line, require_task, visible_row
from workbench.services.tasks.task import (
    Check,
    ContextRef,
    Dependencies,
    Description,
    Done,
    Due,
    LeaseSeconds,
    Metadata,
    Needed,
    NewlyCreated,
    NewTask,
    NoRetry,
    Parent,
    Place,
    Policy,
    Priority,
    Reserved,
    Retries,
    Run,
    SessionRef,
    TaskToCreate,
    Title,
    bounded_json,
    warnings_of,
)
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class TasksMade(Wire):
    """The ids of the new tasks, in the order given. `note` says who can do those that have no command.

    `warnings` are about secrets in them, which stay in them.
    """

    task_ids: list[int]
    note: str | None
    warnings: list[str]


@op(allow=Level.PLANNER)
async def create_task(
    ctx: Ctx,
    title: Title,
    persona_id: PersonaId,
    description: Description = "",
    priority: Priority = 500,
    dependencies: Dependencies = [],
    parent_task_id: Parent = None,
    target_worktree: Place = None,
    assigned_agent_id: Reserved = None,
    run: Run = None,
    check: Check = None,
    done_when: Done = None,
    needs: Needed = None,
    max_retries: Retries = None,
    lease_seconds: LeaseSeconds = None,
    context_ref: ContextRef = None,
    metadata: Metadata = {},
    session_id: SessionRef = None,
    on_failure: Policy = OnFailure.BLOCK,
    no_retry: NoRetry = [],
    due: Due = None,
) -> NewlyCreated:
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
        check=check,
        done_when=done_when,
        needs=needs,
        max_retries=max_retries,
        lease_seconds=lease_seconds,
        context_ref=context_ref,
        metadata=metadata,
        session_id=session_id,
        on_failure=on_failure,
        no_retry=no_retry,
        due=due,
    )
    return await ctx.write(lambda tx: newly_created(tx, ctx, add_task(tx, ctx, new), new))


@op(allow=Level.PLANNER, tool=False)
async def create_tasks(
    ctx: Ctx,
    tasks: Annotated[list[NewTask], Field(min_length=1, max_length=10_000, description="As for create_task.")],
) -> TasksMade:
    """Create many tasks in one transaction, all or none. A dependency -n refers to the n-th task of the list."""

    def change(tx: Tx) -> TasksMade:
        ids: list[int] = []
        for new in tasks:
            dependencies = [_resolve(ids, on) for on in new.dependencies]
            ids.append(add_task(tx, ctx, new.model_copy(update={"dependencies": dependencies})))
        without = [task_id for task_id, new in zip(ids, tasks, strict=True) if not new.run]
        warnings = [
            warning for task_id, new in zip(ids, tasks, strict=True) for warning in warnings_of(new, str(task_id))
        ]
        waiting = approval.note_on_waiting(approval.ask_first(tx, ctx, ids))
        note = joined(note_on_missing(without), note_on_needs(tx, ids), waiting)
        return TasksMade(task_ids=ids, note=note, warnings=warnings)

    return await ctx.write(change)


def newly_created(tx: Tx, ctx: Ctx, task_id: int, new: NewTask) -> NewlyCreated:
    """A task that was just created: with notes on who can do it and what it waits for, and warnings about secrets."""
    waiting = approval.note_on_waiting(approval.ask_first(tx, ctx, [task_id]))
    task = require_task(tx, task_id)
    missing = note_on_missing([task_id] if task.run is None else [])
    note = joined(missing, parent_that_is_over(tx, task.parent_task_id), note_on_needs(tx, [task_id]), waiting)
    return NewlyCreated.model_construct(**dict(task), note=note, warnings=warnings_of(new))


def parent_that_is_over(tx: Reader, parent: int | None) -> str | None:
    """What to say of an open subtask whose parent has ended; None if there is no such parent."""
    status = None if parent is None else require_line(tx, parent)["status"]
    return None if status is None or status in lifecycle.OPEN else f"Its parent, task {parent}, is {status}."


def _resolve(ids: Sequence[int], dependency: int) -> int:
    if dependency > 0:
        return dependency
    if not 1 <= -dependency <= len(ids):
        raise BadInput(
            "BAD_DEPENDENCY", f"The dependency {dependency} does not refer to an earlier task in the list.", problems=[]
        )
    return ids[-dependency - 1]


def add_task(tx: Tx, ctx: Ctx, new: NewTask, *, within: Row | None = None) -> int:
    """Add a task in the caller's transaction and return its id. A subtask (of `within`) inherits the session.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``, ``TASK_NOT_FOUND``, ``AGENT_NOT_FOUND``, ``SESSION_NOT_FOUND``.
        BadInput: ``BAD_WORKTREE_NAME``, ``TOO_LARGE``, ``TOO_DEEP``, ``NO_CHECK``.
        Refused: ``FORBIDDEN`` (another session).
        Conflict: ``OTHER_SESSION`` or ``NOT_ADMITTED`` (the agent it is reserved for), ``DEPENDENCY_DEAD`` (with
            `on_failure=cancel`).
    """
    settings = ctx.settings
    persona = require_persona(tx, new.persona_id)
    session = session_for(tx, ctx.caller, new.session_id) if within is None else within["session_id"]
    if new.target_worktree:
        access.check_worktree_name(new.target_worktree)
    if new.parent_task_id is not None:
        _require_parent(tx, ctx.caller, new.parent_task_id)
    reserved = reservable(tx, new.assigned_agent_id, session) if new.assigned_agent_id else None
    states = {other: TaskState(visible_row(tx, ctx.caller, other)["status"]) for other in set(new.dependencies)}
    lifecycle.require_alive(new.on_failure, states)
    checks.require_terms(tx, persona.id, new.done_when, new.check)
    retries = settings.max_retries if new.max_retries is None else new.max_retries
    row = tx.one(
        SQL.add,
        title=new.title,
        description=new.description,
        persona_id=persona.id,
        parent_id=new.parent_task_id,
        worktree=new.target_worktree,
        plan=new.plan if isinstance(new, TaskToCreate) else None,
        name=new.name if isinstance(new, TaskToCreate) else None,
        session_id=session,
        on_failure=new.on_failure,
        no_retry=json.dumps(new.no_retry),
        due=new.due,
        run=json.dumps(new.run) if new.run else None,
        check=json.dumps(new.check) if new.check else None,
        done_when=new.done_when,
        context_ref=new.context_ref,
        metadata=bounded_json(new.metadata, settings),
        max_retries=retries,
        lease_us=round((new.lease_seconds or persona.lease_seconds or settings.lease_seconds) * SECOND),
        by=tx.actor,
        now=tx.now,
    )
    assert row is not None
    task_id = int(row["id"])
    tx.run(
        SQL.add_status,
        task_id=task_id,
        persona_id=persona.id,
        worktree=new.target_worktree or "",
        session=session or "",
        priority=new.priority,
        reserved_for=reserved,
        needs=leases.stored(new.needs),
    )
    tx.many(SQL.add_dependency, [{"task_id": task_id, "on": on} for on in sorted(set(new.dependencies))])
    may_wait = bool(states) or new.parent_task_id is not None
    if may_wait:
        recount(tx, task_id)
    is_ready = not (may_wait and require_line(tx, task_id)["unmet"])
    data = {"title": with_masks(new.title), "persona_id": persona.id, "ready": is_ready}
    tx.emit("task.created", f"task:{task_id}", session=session, **data)
    return task_id


def session_for(tx: Reader, caller: Caller, ref: str | None) -> str | None:
    """The session of a new task: the one named by `ref`, else the caller's own.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another session).
    """
    if ref is None and caller.agent is None:
        ref = caller.session
    session = caller.session if ref is None else str(require_session(tx, ref)["id"])
    if caller.agent is not None and session != caller.session:
        raise Refused("FORBIDDEN", f"{caller.name} is in another session. Leave the session out.")
    return session


def reservable(tx: Reader, agent_id: str, session: str | None) -> str:
    """The `agent_uid` of an agent for which a task of this session (None: any) may be reserved.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``OTHER_SESSION``, ``NOT_ADMITTED``.
    """
    agent = require_agent(tx, agent_id)
    if agent["registration_status"] in access.TURNED_AWAY:
        status = agent["registration_status"]
        raise Conflict("NOT_ADMITTED", f"{agent_id} was {status} and can never claim the task.", status=status)
    if agent["tool"] == GrantedAccess.READ:
        raise Conflict("NOT_ADMITTED", f"{agent_id} may only read and can never claim the task.", status="read only")
    if session not in (None, agent["session_id"]):
        raise Conflict("OTHER_SESSION", f"{agent_id} is not in the task's session and can never claim it.")
    return str(agent["id"])


def _require_parent(tx: Reader, caller: Caller, task_id: int) -> None:
    visible_row(tx, caller, task_id)
    depth = tx.one(SQL.depth, task_id=task_id)
    if depth and depth["n"] >= TREE_DEPTH:
        raise BadInput("TOO_DEEP", f"Task {task_id} has {TREE_DEPTH - 1} tasks above it. Make the new one its sibling.")


LISTED = 5
"""The most ids that a note lists."""


def note_on_missing(ids: Sequence[int]) -> str | None:
    """A note for the creator of tasks without a command; None if there are none."""
    if not ids:
        return None
    what = "has no command (run): only an LLM agent or a person can do it"
    if len(ids) > 1:
        what = "have no command (run): only an LLM agent or a person can do them"
    return f"{named_tasks(ids)} {what}."


def joined(*parts: str | None) -> str | None:
    """Notes as one; None if there are none."""
    return " ".join(filter(None, parts)) or None


def note_on_needs(tx: Reader, ids: Sequence[int]) -> str | None:
    """A note for the creator of tasks that need what the project does not have; None if there are none."""
    absent = {task_id: found for task_id in ids if (found := leases.absent(tx, task_id))}
    if not absent:
        return None
    waits = "waits" if len(absent) == 1 else "wait"
    return (
        f"NEEDS_UNMET: {named_tasks(list(absent))} {waits} for what is not there: {next(iter(absent.values()))}. "
        'Say what there is in [resources] of the settings (`gpus = "all"` lends the GPUs of this machine), which count '
        "in a project once you trust them, or change what it needs."
    )


def named_tasks(ids: Sequence[int]) -> str:
    """Tasks as the subject of a sentence: their ids, but for those beyond the first few."""
    more = len(ids) - LISTED
    listed = ", ".join(map(str, ids[:LISTED])) + (f" and {more:,} more" if more > 0 else "")
    return f"{'Task' if len(ids) == 1 else 'Tasks'} {listed}"
