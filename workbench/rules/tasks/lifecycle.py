"""The lifecycle of a task (spec 3, plus cancelled): state transitions, dependencies, and retries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from workbench.errors import Conflict, Hint
from workbench.model import SECOND, OnFailure, TaskState


class TaskAction(StrEnum):
    """The actions that change the state of a task."""

    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    EXPIRE = "expire"
    CANCEL = "cancel"
    RETRY = "retry"
    REOPEN = "reopen"
    REASSIGN = "reassign"


OPEN = frozenset({TaskState.PENDING, TaskState.CLAIMED, TaskState.IN_PROGRESS})
HELD = frozenset({TaskState.CLAIMED, TaskState.IN_PROGRESS})
DEAD = frozenset({TaskState.FAILED, TaskState.CANCELLED})
"""Ended without a result; the operator or a planner may retry them."""

SHOWN = 12
"""How many tasks a message names; the details name all."""

TREE_DEPTH = 50
"""Levels of subtasks; JSON parsers refuse much deeper nesting."""

TRANSITIONS: dict[tuple[TaskState, TaskAction], TaskState] = {
    (TaskState.PENDING, TaskAction.CLAIM): TaskState.CLAIMED,
    (TaskState.PENDING, TaskAction.CANCEL): TaskState.CANCELLED,
    (TaskState.CLAIMED, TaskAction.START): TaskState.IN_PROGRESS,
    (TaskState.IN_PROGRESS, TaskAction.START): TaskState.IN_PROGRESS,
    **{(held, TaskAction.COMPLETE): TaskState.COMPLETED for held in HELD},
    **{(held, TaskAction.FAIL): TaskState.FAILED for held in HELD},
    **{(held, TaskAction.RELEASE): TaskState.PENDING for held in HELD},
    **{(held, TaskAction.EXPIRE): TaskState.FAILED for held in HELD},
    **{(held, TaskAction.CANCEL): TaskState.CANCELLED for held in HELD},
    **{(state, TaskAction.REASSIGN): TaskState.PENDING for state in OPEN},
    **{(dead, TaskAction.RETRY): TaskState.PENDING for dead in DEAD},
    (TaskState.COMPLETED, TaskAction.REOPEN): TaskState.PENDING,
}
"""While a retry is left, FAIL and EXPIRE lead to pending instead: see `after_failure`."""


def step(state: TaskState, action: TaskAction) -> TaskState:
    """The state after `action`.

    Raises:
        Conflict: ``WRONG_STATE``.
    """
    try:
        return TRANSITIONS[state, action]
    except KeyError:
        from_states = " or ".join(sorted(before for before, possible in TRANSITIONS if possible is action))
        text = f"The task is {state}. Only one that is {from_states} can be {_PAST[action]}."
        raise Conflict("WRONG_STATE", text, _NEXT.get((state, action)), status=str(state)) from None


_PAST = {
    TaskAction.CLAIM: "claimed",
    TaskAction.START: "started",
    TaskAction.COMPLETE: "completed",
    TaskAction.FAIL: "failed",
    TaskAction.RELEASE: "released",
    TaskAction.EXPIRE: "expired",
    TaskAction.CANCEL: "cancelled",
    TaskAction.RETRY: "retried",
    TaskAction.REASSIGN: "reassigned",
    TaskAction.REOPEN: "reopened",
}
_NEXT = {
    **{(dead, TaskAction.REOPEN): Hint("retry_task", "{} makes it pending again.") for dead in DEAD},
    **{(held, TaskAction.RETRY): Hint("cancel_task", "{} ends its attempt; then retry it.") for held in HELD},
    (TaskState.COMPLETED, TaskAction.RETRY): Hint("reopen_task", "{} makes it pending again."),
}


def never_opens(policy: OnFailure, dependency: TaskState) -> bool:
    """Whether a task with this policy would wait for ever for a dependency in this state.

    With `on_failure=cancel`, a task is cancelled when a dependency fails or is cancelled; if that happened before, it
    would never be.
    """
    return policy == OnFailure.CANCEL and dependency in DEAD


def require_alive(policy: OnFailure, dependencies: Mapping[int, TaskState]) -> None:
    """Refuse dependencies (states by task id) for which a task with this policy would wait for ever.

    Raises:
        Conflict: ``DEPENDENCY_DEAD`` with `details.dead`, their ids.
    """
    dead = sorted(task_id for task_id, state in dependencies.items() if never_opens(policy, state))
    if dead:
        listed = ", ".join(f"{task_id} ({dependencies[task_id]})" for task_id in dead[:SHOWN])
        more = f" and {len(dead) - SHOWN:,} more" if len(dead) > SHOWN else ""
        raise Conflict(
            "DEPENDENCY_DEAD",
            f"on_failure=cancel, but these dependencies have already ended without a result: {listed}{more}. "
            "Retry them first, leave them out, or choose on_failure=block (wait until they are retried) or ignore.",
            dead=dead,
        )


def is_never_retried(error_class: str | None, no_retry: Collection[str]) -> bool:
    """Whether `no_retry` lists this error class, with or without its module.

    Case is ignored; ``ValueError`` also matches ``json.ValueError``.
    """
    if error_class is None:
        return False
    name = error_class.lower()
    return any(name == listed.lower() or name.endswith("." + listed.lower()) for listed in no_retry)


def after_failure(retry_count: int, max_retries: int, retryable: bool) -> TaskState:
    """The state of a task after a failed or expired attempt: pending while a retry is left, else failed."""
    left = retryable and retry_count < max_retries
    return TaskState.PENDING if left else TaskState.FAILED


def backoff(retry_count: int, base: float, cap: float, jitter: float) -> int:
    """Microseconds to wait before the next attempt: exponential, with up to a quarter of jitter.

    Args:
        retry_count: retries before this one.
        base, cap: seconds.
        jitter: uniform in [0, 1).
    """
    seconds = min(cap, base * 2.0 ** min(retry_count, 32))
    return int(seconds * (1 + jitter / 4) * SECOND)


def last_day_over(now: int) -> str:
    """The last day that is over at a time (microseconds UTC), where this computer is, as YYYY-MM-DD."""
    return (datetime.fromtimestamp(now // SECOND).date() - timedelta(days=1)).isoformat()


def is_overdue(state: TaskState, due: str | None, now: int) -> bool:
    """Whether a task is open and the day by which it was due is over."""
    return due is not None and state in OPEN and due <= last_day_over(now)
