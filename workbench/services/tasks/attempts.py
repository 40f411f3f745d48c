"""Attempts: those that end without success, and those that a supervisor makes.

After an attempt without success its task becomes claimable again, waits for a retry, or fails. A supervisor proves
itself by a key of the attempt, which its command does not get. The end that the command asks for takes effect when the
command has ended. What an attempt does to a worktree is dealt with in `workbench.services.attempts`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import from_json, to_json

from workbench.confinement.told import Translation
from workbench.errors import Conflict
from workbench.model import Int64, Micros, TaskState, Wire
from workbench.rules import access
from workbench.rules.failures import FailureKind
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.check import Evidence
from workbench.services import holds
from workbench.services.holds import AttemptFailure
from workbench.services.spending import budgets
from workbench.services.tasks import dependencies
from workbench.services.tasks.rows import end_attempt, reserve
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.trust.known_secrets import KnownSecrets

SQL = beside(__file__)

EVER = 2**63 - 1

Count = Annotated[Int64 | None, Field(ge=0, description="Tokens.")]
Key = Annotated[str, Field(min_length=32, max_length=200, description="The supervisor's own key of the attempt.")]


class ToldUsage(Wire):
    """What the program of an attempt says that it has used; null: it does not say. `input_tokens` includes
    `cached_tokens`."""

    input_tokens: Count = None
    cached_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Annotated[float | None, Field(ge=0, le=1e9, description="In US dollars.")] = None


class AttemptEnding(Wire):
    """How an attempt is to end.

    `artifacts` are for a completed one, the next three for a failed one. Only its supervisor tells `failure`, how the
    agent's program failed, `until`, when its provider allows more, and `usage`, and that the end `is_of_program`: the
    command has not asked for it. `evidence` tells that a completed task is done.
    """

    outcome: Literal["completed", "failed", "released"]
    result_data: Any = None
    artifacts: tuple[str, ...] = ()
    reason: str = ""
    retryable: bool = True
    error_class: str | None = None
    failure: FailureKind | None = None
    until: Micros | None = None
    usage: ToldUsage | None = None
    is_of_program: bool = False
    evidence: Evidence = Evidence.SAID

    def masked(self, secrets: KnownSecrets) -> AttemptEnding:
        """This ending without secrets: programs and models wrote it."""
        return self.model_copy(
            update={
                "result_data": secrets.masked(self.result_data),
                "artifacts": tuple(secrets.masked(list(self.artifacts))),
                "reason": secrets.masked(self.reason),
                "error_class": secrets.masked(self.error_class),
            }
        )

    def told(self, translation: Translation) -> AttemptEnding:
        """This ending with the paths outside of the box in which a command told it."""
        return self.model_copy(
            update={
                "result_data": translation.data(self.result_data),
                "artifacts": tuple(map(translation.text, self.artifacts)),
                "reason": translation.text(self.reason),
            }
        )

    def with_request(self, request: AttemptEnding | None) -> AttemptEnding:
        """This ending, as the supervisor reports it, with what its command has reported about the same ending."""
        if request is None or request.outcome != self.outcome:
            return self
        told = {"failure": self.failure, "until": self.until, "usage": self.usage, "evidence": self.evidence}
        artifacts = tuple(dict.fromkeys((*request.artifacts, *self.artifacts)))
        result = self.result_data if request.result_data is None else request.result_data
        return request.model_copy(update={"artifacts": artifacts, "result_data": result, **told})


def held_by(tx: Reader, agent: str) -> list[Row]:
    """The tasks that an agent (`agent_uid`) holds, those in progress first."""
    return tx.all(SQL.held_by, agent=agent)


def release_all(tx: Tx, agent: str, reason: str) -> None:
    """Release every task an agent holds (its process ended, or its admission was withdrawn), but for those that it has
    completed and that are being checked."""
    for row in held_by(tx, agent):
        if not row["is_checked"]:
            put_back(tx, row, "released", reason)


def unreserve(tx: Tx, agent: str, reason: str) -> None:
    """Lift the reservations for an agent that will not return, so that others may claim the tasks."""
    for row in tx.all(SQL.reserved_for, agent=agent):
        reserve(tx, row["id"], None)
        data = {"assigned_agent_id": None, "reason": reason}
        tx.emit("task.reassigned", f"task:{row['id']}", session=row["session_id"], **data)


def put_back(tx: Tx, row: Row, outcome: str, reason: str) -> None:
    """Make a held task claimable again at once, without using up a retry."""
    tx.run(SQL.put_back, task_id=row["id"], not_before=None, retries=0, error=None)
    end_attempt(tx, row["id"], outcome, reason or None)
    tx.emit("task.released", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"], reason=reason)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    Args:
        kind: how the program of the agent failed, if its output tells that.
        until: when its provider allows more, in microseconds UTC.
        is_of_program: its supervisor says so, and not the agent, about a program that is not the task's own command.
    """

    outcome: Literal["failed", "expired"]
    error: str
    error_class: str | None = None
    retryable: bool = True
    kind: FailureKind | None = None
    until: int | None = None
    is_of_program: bool = False


def after_failure(tx: Tx, settings: Settings, row: Row, failure: Failure, jitter: float) -> None:
    """End a failed attempt: its task is retried after a pause, or fails.

    Args:
        jitter: uniform in [0, 1); varies the length of the pause.
    """
    end_attempt(tx, row["id"], failure.outcome, failure.error, failure.error_class)
    never = lifecycle.is_never_retried(failure.error_class, json.loads(row["no_retry"]))
    agent = row["assigned_agent_id"]
    if budgets.is_used_up(tx, row["id"], agent):  # it got no answers, and goes on when the budget is raised
        _defer(tx, settings, row, failure, tx.now)
        budgets.follow_task(tx, row["id"], agent)
        return
    if failure.is_of_program and not never and (until := _consequences(tx, settings, row, failure)) is not None:
        _defer(tx, settings, row, failure, until)
        return
    data = {"attempt": row["attempt"], "error": failure.error[:500], "error_class": failure.error_class}
    subject, session = f"task:{row['id']}", row["session_id"]
    retryable = failure.retryable and not never
    if lifecycle.after_failure(row["retry_count"], row["max_retries"], retryable) is TaskState.PENDING:
        wait = lifecycle.backoff(row["retry_count"], settings.retry_base_seconds, settings.retry_cap_seconds, jitter)
        tx.run(SQL.put_back, task_id=row["id"], not_before=tx.now + wait, retries=1, error=failure.error)
        kind = "task.retried" if failure.outcome == "failed" else "task.expired"
        tx.emit(kind, subject, session=session, **data, wait_us=wait)
        budgets.follow_task(tx, row["id"], agent)  # it may have been the last attempt of its budget
    else:
        tx.run(SQL.give_up, task_id=row["id"], error=failure.error, now=tx.now)
        tx.emit("task.failed", subject, session=session, **data)
        dependencies.ended_badly(tx, row["id"])


def _consequences(tx: Tx, settings: Settings, row: Row, failure: Failure) -> int | None:
    """See `holds.note_failure`."""
    message, agent = failure.error, row["assigned_agent_id"]
    return holds.note_failure(
        tx, settings, AttemptFailure(agent, row["id"], row["attempt"], failure.kind, message, failure.until)
    )


def _defer(tx: Tx, settings: Settings, row: Row, failure: Failure, until: int) -> None:
    """Make a task wait, without using up a retry: not it has failed, but what its agent works with. It does not wait if
    agents may fall back to other profiles, which could do it at once."""
    not_before = until if until > tx.now and not settings.agent_fallback else None
    tx.run(SQL.put_back, task_id=row["id"], not_before=not_before, retries=0, error=failure.error)
    data = {"attempt": row["attempt"], "error": failure.error[:500], "error_class": failure.error_class}
    tx.emit("task.deferred", f"task:{row['id']}", session=row["session_id"], **data, until=not_before)


def enlist(tx: Tx, row: Row, key: str) -> None:
    """Make an attempt a supervised one.

    Args:
        row: the task, held by the caller.

    Raises:
        Conflict: ``LEASE_LOST``: another supervisor makes it.
    """
    values = {"task_id": row["id"], "attempt": row["attempt"], "agent": row["assigned_agent_id"]}
    tx.run(SQL.add_work, values, key_hash=access.token_hash(key))
    require_supervisor(tx, row["id"], row["attempt"], key)


def find_work(tx: Reader, task_id: int, attempt: int) -> Row | None:
    """The work of a supervised attempt; None if it is not supervised."""
    return tx.one(SQL.get_work, task_id=task_id, attempt=attempt)


def require_supervisor(tx: Reader, task_id: int, attempt: int, key: str) -> Row:
    """The work of an attempt that the caller supervises.

    Raises:
        Conflict: ``LEASE_LOST``.
    """
    work = find_work(tx, task_id, attempt)
    if work is None or not access.same_token(access.token_hash(key), work["key_hash"]):
        raise Conflict(
            "LEASE_LOST", f"This worker does not make attempt {attempt} at task {task_id}. Stop working on it."
        )
    return work


def is_elsewhere(tx: Reader, agent: str | None) -> bool:
    """Whether an agent (`agent_uid`) works on a machine without a clone, in a copy of its worktree."""
    return tx.one(SQL.is_elsewhere, agent=agent) is not None


def open_in(tx: Reader, worktree: str) -> list[Row]:
    """The attempts that have begun in a worktree and whose work is not yet put away."""
    return tx.all(SQL.open_in, worktree=worktree)


def ended(tx: Reader, machine: str | None, tried_before: int) -> list[Row]:
    """The attempts on a machine, or all (None), that have ended and whose work is not yet put away."""
    return tx.all(SQL.ended_work, machine=machine, tried_before=tried_before)


def not_put_away(tx: Reader) -> list[Row]:
    """The attempts that have ended and whose work could not be put away; each says why."""
    return [work for work in ended(tx, None, EVER) if work["problem"]]


def wait(tx: Tx, row: Row, reason: str) -> None:
    """Record what an attempt waits for before it begins."""
    if tx.run(SQL.wait, task_id=row["id"], attempt=row["attempt"], reason=reason):
        data = {"attempt": row["attempt"], "waits_for": reason}
        tx.emit("task.waiting", f"task:{row['id']}", session=row["session_id"], **data)


def begin(tx: Tx, row: Row, worktree: str | None, commit: str | None) -> None:
    """Record that an attempt begins, and at which commit."""
    tx.run(SQL.open_work, task_id=row["id"], attempt=row["attempt"], worktree=worktree, commit=commit)


def new_token(tx: Tx, row: Row) -> str:
    """A new token for the command of a supervised attempt, valid until the attempt ends; an earlier one is not."""
    token = access.new_token("wba")
    tx.run(SQL.set_token, task_id=row["id"], attempt=row["attempt"], token_hash=access.token_hash(token))
    return token


def request_end(tx: Tx, row: Row, ending: AttemptEnding) -> None:
    """Record how the command of a supervised attempt asks it to end; the last request counts."""
    tx.run(SQL.request_end, task_id=row["id"], attempt=row["attempt"], ending=to_json(ending).decode())
    data = {"attempt": row["attempt"], "outcome": ending.outcome}
    tx.emit("task.finishing", f"task:{row['id']}", session=row["session_id"], **data)


def requested_end(work: Row) -> AttemptEnding | None:
    """How the command of an attempt has asked it to end, if it has."""
    return AttemptEnding.model_validate(from_json(work["requested_end"])) if work["requested_end"] else None


def keep(tx: Tx, work: Row, commit: str, commits: int, files: int, bytes_: int) -> None:
    """Record the commit that keeps an attempt's work."""
    counts = {"commits": commits, "files": files, "bytes": bytes_}
    tx.run(SQL.keep_work, counts, task_id=work["task_id"], attempt=work["attempt"], commit=commit)


def failed_to_keep(tx: Tx, work: Row, problem: str) -> None:
    """Record why the work of an attempt could not be put away; it is tried again."""
    tx.run(SQL.failed_to_keep, task_id=work["task_id"], attempt=work["attempt"], problem=problem, now=tx.now)


def close(tx: Tx, task_id: int, attempt: int, problem: str | None = None) -> bool:
    """Record that an attempt is over: its work is put away, and another may begin there."""
    return bool(tx.run(SQL.close_work, task_id=task_id, attempt=attempt, problem=problem, now=tx.now))


def last_machine(tx: Reader, task_id: int) -> str | None:
    """The machine on which a task was attempted last; None: it was not."""
    row = tx.one(SQL.last_machine, task_id=task_id)
    return row["machine"] if row else None


def all_kept(tx: Reader, machine: str | None) -> list[Row]:
    """The attempts on a machine, or all (None), whose work is kept, oldest first."""
    return tx.all(SQL.kept, machine=machine)


def forget(tx: Tx, task_id: int, attempt: int) -> None:
    """Record that the work of an attempt is no longer kept."""
    if tx.run(SQL.forget, task_id=task_id, attempt=attempt):
        tx.emit("task.work_pruned", f"task:{task_id}", attempt=attempt)
