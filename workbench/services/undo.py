"""Undo, for a moment, of what a person has just done, as long as nobody can have acted on it.

An undo is a change of its own, with an event that names the one it undoes; what was recorded stays recorded. It is
refused if anything else has happened to the same subject, and for changes of which others have been told: a rejected
registration or call, a lost lease, a merge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound
from workbench.model import SECOND, FeedEvent, Level, TaskState, Wire
from workbench.ops import Ctx, op
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals, saved_views
from workbench.services.agents.changes import restore_place
from workbench.services.agents.rows import agent_by_uid, require_agent
from workbench.services.integration import proposal
from workbench.services.runs import tagging
from workbench.services.runs.run import find as find_run
from workbench.services.tasks import changes, dependencies
from workbench.services.tasks.rows import require_line
from workbench.services.worktrees.rows import KIND, require_worktree_for
from workbench.store.base import Reader, Row, Tx
from workbench.store.feed import event
from workbench.store.queries import beside

SQL = beside(__file__)

UNDO_SECONDS = 15
"""How long a change can be undone: the ten seconds of the panel, and time for the request."""


_PLACE = {"session_id", "team_id"}


class Undone(Wire):
    """What was undone: the event of the change, and what it was about."""

    event_id: int
    kind: str
    subject: str


@op(allow=Level.OPERATOR, tool=False)
async def undo(
    ctx: Ctx,
    subject: Annotated[str, Field(max_length=200, description="What was changed, as task:7.")],
    kind: Annotated[str, Field(max_length=100, description="The kind of the event of the change: task.cancelled.")],
) -> Undone:
    """Undo what you did a moment ago, if nothing has happened to it since.

    This is possible for task.prioritised, task.reassigned and task.cancelled (of tasks that no agent held),
    approval.rejected (of an integration), agent.updated (of its session and team), run.archived and saved_view.deleted.
    """
    handler = _HANDLERS.get(kind)
    if handler is None:
        known = ", ".join(sorted(_HANDLERS))
        raise BadInput("CANNOT_BE_UNDONE", f"{kind} cannot be undone. What can: {known}.", problems=[])

    def change(tx: Tx) -> Undone:
        done = _last_change(tx, subject, kind)
        handler(tx, ctx, done)
        return Undone(event_id=done.id, kind=done.kind, subject=done.subject)

    return await ctx.write(change)


def _stored_subject(tx: Reader, subject: str) -> str:
    """A subject as events name it: an agent by what never changes of it."""
    noun, _, agent_id = subject.partition(":")
    return f"agent:{require_agent(tx, agent_id)['id']}" if noun == "agent" else subject


def _last_change(tx: Tx, subject: str, kind: str) -> FeedEvent:
    """The newest event about something, which is the change to undo.

    Raises:
        NotFound: ``NOTHING_TO_UNDO``. Conflict: ``UNDO_REFUSED``, ``UNDO_TOO_LATE``.
    """
    found = _newest(tx, _stored_subject(tx, subject))
    if found is None:
        raise NotFound("NOTHING_TO_UNDO", f"Nothing has happened to {subject}.")
    if found.kind != kind or found.actor != tx.actor or "undoes" in found.data:
        raise _refused(f"{found.kind} has happened to {subject} since.")
    if tx.now - found.at > UNDO_SECONDS * SECOND:
        raise Conflict(
            "UNDO_TOO_LATE", f"It is more than {UNDO_SECONDS} seconds ago. Make another change instead.", event=found.id
        )
    return found


def _undo_priority(tx: Tx, _: Ctx, change: FeedEvent) -> None:
    changes.restore_priority(tx, _task(tx, change), change.data["before"], change.id)


def _undo_reassignment(tx: Tx, _: Ctx, change: FeedEvent) -> None:
    row = _task(tx, change)
    if change.data["held"]:
        raise _refused(f"The agent that worked on task {row['id']} has lost it.")
    changes.restore_reservation(tx, row, change.data["before"], change.id)


def _undo_cancellation(tx: Tx, _: Ctx, found: FeedEvent) -> None:
    """Restore a task and everything that was cancelled with it."""
    task_id = _number(found.subject)
    if found.data["cause"] != task_id:
        raise _refused(f"Task {task_id} was cancelled with task {found.data['cause']}. Undo that instead.")
    rows = tx.all(SQL.cancelled_with, first=found.id, at=found.at, actor=found.actor)
    together = [one for one in map(event, rows) if one.data["cause"] == task_id]
    for one in together:
        if one.data["before"]["status"] != TaskState.PENDING:
            raise _refused(f"The agent that worked on task {_number(one.subject)} has lost it.")
        if (newest := _newest(tx, one.subject)) is not None and newest.id != one.id:
            raise _refused(f"{newest.kind} has happened to {one.subject} since.")
    for one in together:
        dependencies.restore_cancelled(tx, _task(tx, one), one.data["before"], one.id)


def _undo_rejection(tx: Tx, _: Ctx, change: FeedEvent) -> None:
    """Ask again for an integration, unless its requester may have acted on the rejection."""
    approval = approvals.find(tx, _number(change.subject))
    if approval is None or approval.kind != KIND:
        raise _refused("Who asked was told at once. It has to ask again.")
    name = approval.payload["worktree"]
    require_worktree_for(tx, name, WorktreeAction.APPROVE)
    if approvals.open_question(tx, KIND, approval.subject):
        raise _refused(f"The integration of {name} was requested again.")
    newest = _newest(tx, approval.subject)
    if newest is not None and newest.id > change.id:
        raise _refused(f"{newest.kind} has happened to {name} since.")
    is_agent = approval.requester != change.actor
    if is_agent and tx.one(SQL.newest_of, actor=approval.requester, after=change.id):
        raise _refused(f"{approval.requester}, which asked for it, has done something since.")
    proposal.reopen(tx, approval, change.id)


def _undo_assignment(tx: Tx, _: Ctx, change: FeedEvent) -> None:
    """Move an agent back to its former session and team, unless it may have acted in the new ones."""
    if not change.data["changes"].keys() <= _PLACE:
        raise _refused("What an agent may do counts from its next message on.")
    agent = agent_by_uid(tx, change.subject.partition(":")[2])
    if tx.one(SQL.newest_of, actor=agent["assigned_agent_id"], after=change.id):
        raise _refused(f"{agent['assigned_agent_id']} has done something since.")
    restore_place(tx, agent, change.data["before"], change.id)


def _undo_archiving(tx: Tx, ctx: Ctx, change: FeedEvent) -> None:
    tagging.restore(tx, find_run(tx, ctx.caller, _number(change.subject)), undoes=change.id)


def _undo_deletion_of_view(tx: Tx, _: Ctx, change: FeedEvent) -> None:
    view = change.data
    saved_views.restore(tx, view["area"], view["name"], json.dumps(view["state"]), undoes=change.id)


_HANDLERS: dict[str, Callable[[Tx, Ctx, FeedEvent], None]] = {
    "task.prioritised": _undo_priority,
    "task.reassigned": _undo_reassignment,
    "task.cancelled": _undo_cancellation,
    "approval.rejected": _undo_rejection,
    "agent.updated": _undo_assignment,
    "run.archived": _undo_archiving,
    "saved_view.deleted": _undo_deletion_of_view,
}


def _newest(tx: Reader, subject: str) -> FeedEvent | None:
    row = tx.one(SQL.newest_about, subject=subject)
    return event(row) if row else None


def _task(tx: Reader, change: FeedEvent) -> Row:
    return require_line(tx, _number(change.subject))


def _number(subject: str) -> int:
    return int(subject.partition(":")[2])


def _refused(why: str) -> Conflict:
    return Conflict("UNDO_REFUSED", f"This cannot be undone any more. {why}")
