"""Why an agent cannot claim a task now: every reason, as a code and as words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from workbench.model import TaskState, iso
from workbench.rules.tasks.lifecycle import DEAD, HELD, SHOWN


class ClaimReason(StrEnum):
    """The codes of reasons."""

    HELD = "held"
    ENDED = "ended"
    RESERVED = "reserved"
    PERSONA = "persona"
    WORKTREE = "worktree"
    COMMAND = "command"
    DEPENDENCY = "dependency"
    DEPENDENCY_FAILED = "dependency_failed"
    BACKOFF = "backoff"
    SESSION = "session"
    HOLD = "hold"
    BUDGET = "budget"
    APPROVAL = "approval"
    RESOURCES = "resources"


@dataclass(frozen=True, slots=True)
class Claimant:
    """The agent that wants a task. `commands_only`: it can do only tasks that have a command. `deleted_session`: the
    name of its session, if that is deleted. `held`: why it claims nothing for now, in words.
    """

    uid: str
    persona: str | None
    worktree: str | None
    commands_only: bool = False
    deleted_session: str | None = None
    held: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimCandidate:
    """The task: who holds it, whom it is for, and what it waits for (states of unmet dependencies by task id).

    `reserved_for` is an agent's internal id and `reserved_name` its public one; `not_before` is in microseconds UTC.
    `unaffordable` says which budget is used up, `lacks` what it waits for that it needs; `approval` is the approval
    that it waits for.
    """

    status: TaskState
    holder: str | None
    persona: str
    worktree: str | None
    reserved_for: str | None
    reserved_name: str | None
    waits: Mapping[int, TaskState]
    not_before: int | None
    has_command: bool = True
    unaffordable: str | None = None
    approval: int | None = None
    lacks: str | None = None


def obstacles(task: ClaimCandidate, claimant: Claimant) -> dict[ClaimReason, str]:
    """The reasons why an agent cannot claim a task now, in words; empty if it can."""
    if task.status in HELD:
        return {ClaimReason.HELD: f"it is {task.status}, held by {task.holder}"}
    if task.status is not TaskState.PENDING:
        return {ClaimReason.ENDED: f"it is {task.status}"}
    return _unfit(task, claimant) | _not_ready(task) | _held(claimant)


def _held(claimant: Claimant) -> dict[ClaimReason, str]:
    return {} if claimant.held is None else {ClaimReason.HOLD: f"you claim nothing {claimant.held}"}


def _unfit(task: ClaimCandidate, claimant: Claimant) -> dict[ClaimReason, str]:
    if claimant.deleted_session is not None:
        return {ClaimReason.SESSION: f"your session {claimant.deleted_session!r} is deleted"}
    return _for_another(task, claimant) | _without_command(task, claimant)


def _without_command(task: ClaimCandidate, claimant: Claimant) -> dict[ClaimReason, str]:
    if task.has_command or not claimant.commands_only:
        return {}
    return {ClaimReason.COMMAND: "it has no command; only an LLM agent or a person can do it"}


def _for_another(task: ClaimCandidate, claimant: Claimant) -> dict[ClaimReason, str]:
    if task.reserved_for is not None:
        other = task.reserved_for != claimant.uid
        return {ClaimReason.RESERVED: f"it is reserved for {task.reserved_name}"} if other else {}
    found = {}
    if task.persona != claimant.persona:
        yours = f"yours is {claimant.persona}" if claimant.persona else "you have none"
        found[ClaimReason.PERSONA] = f"it is for the persona {task.persona}, and {yours}"
    if task.worktree not in (None, claimant.worktree):
        yours = f"yours is {claimant.worktree}" if claimant.worktree else "you have none"
        found[ClaimReason.WORKTREE] = f"it is for the worktree {task.worktree}, and {yours}"
    return found


def _not_ready(task: ClaimCandidate) -> dict[ClaimReason, str]:
    found = {}
    if failed := [f"{task_id} ({state})" for task_id, state in task.waits.items() if state in DEAD]:
        found[ClaimReason.DEPENDENCY_FAILED] = (
            f"it depends on {_listed(failed)}, which a planner or the operator has to retry first"
        )
    if open_ := [str(task_id) for task_id, state in task.waits.items() if state not in DEAD]:
        found[ClaimReason.DEPENDENCY] = f"it waits for {_listed(open_)}"
    if task.approval is not None:
        found[ClaimReason.APPROVAL] = f"it waits for a person's decision (approval {task.approval})"
    if task.unaffordable is not None:
        found[ClaimReason.BUDGET] = task.unaffordable
    if task.lacks is not None:
        found[ClaimReason.RESOURCES] = f"it waits for {task.lacks}"
    if task.not_before is not None:
        found[ClaimReason.BACKOFF] = f"its next attempt may begin at {iso(task.not_before)}"
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
