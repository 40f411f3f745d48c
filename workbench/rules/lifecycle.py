"""The life of a task (spec 3, task lifecycle, plus cancelled): who may go where, and when to try again."""

from __future__ import annotations

from enum import StrEnum

from workbench.errors import Conflict
from workbench.model import SECOND, TaskState


class Action(StrEnum):
    """What can be done to a task."""

    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    EXPIRE = "expire"
    CANCEL = "cancel"


OPEN = frozenset({TaskState.PENDING, TaskState.CLAIMED, TaskState.IN_PROGRESS})
HELD = frozenset({TaskState.CLAIMED, TaskState.IN_PROGRESS})

TRANSITIONS: dict[tuple[TaskState, Action], TaskState] = {
    (TaskState.PENDING, Action.CLAIM): TaskState.CLAIMED,
    (TaskState.PENDING, Action.CANCEL): TaskState.CANCELLED,
    (TaskState.CLAIMED, Action.START): TaskState.IN_PROGRESS,
    (TaskState.IN_PROGRESS, Action.START): TaskState.IN_PROGRESS,
    **{(held, Action.COMPLETE): TaskState.COMPLETED for held in HELD},
    **{(held, Action.FAIL): TaskState.FAILED for held in HELD},
    **{(held, Action.RELEASE): TaskState.PENDING for held in HELD},
    **{(held, Action.EXPIRE): TaskState.FAILED for held in HELD},
    **{(held, Action.CANCEL): TaskState.CANCELLED for held in HELD},
}
"""Fail and expire lead back to pending instead while a retry is left: see `after_failure`."""


def step(state: TaskState, action: Action) -> TaskState:
    """The state after `action`.

    Raises:
        Conflict: ``WRONG_STATE``.
    """
    try:
        return TRANSITIONS[state, action]
    except KeyError:
        raise Conflict(
            "WRONG_STATE", f"A task that is {state} cannot be told to {action}.", status=str(state)
        ) from None


def after_failure(retry_count: int, max_retries: int, retryable: bool) -> TaskState:
    """Where a failed or expired attempt leaves a task: pending while a retry is left, else failed."""
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
