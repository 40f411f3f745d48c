"""The life of a task (spec 3, task lifecycle, plus cancelled): who may go where, and when to try again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from workbench.errors import Conflict
from workbench.model import SECOND, OnFailure, TaskState


class Action(StrEnum):
    """What can be done to a task."""

    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    EXPIRE = "expire"
    CANCEL = "cancel"
    RETRY = "retry"
    REASSIGN = "reassign"


OPEN = frozenset({TaskState.PENDING, TaskState.CLAIMED, TaskState.IN_PROGRESS})
HELD = frozenset({TaskState.CLAIMED, TaskState.IN_PROGRESS})
DEAD = frozenset({TaskState.FAILED, TaskState.CANCELLED})
"""Ended without a result; a person or planner may have them tried again."""

SHOWN = 12
"""Tasks that a message names; the details name all."""

TREE_DEPTH = 50
"""Levels of subtasks; JSON that nests much deeper is refused by its readers."""

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
    **{(state, Action.REASSIGN): TaskState.PENDING for state in OPEN},
    **{(dead, Action.RETRY): TaskState.PENDING for dead in DEAD},
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


def is_met(policy: OnFailure, dependency: TaskState) -> bool:
    """Whether a task of this policy need not wait for a dependency in this state any more."""
    return dependency == TaskState.COMPLETED or (policy == OnFailure.IGNORE and dependency in DEAD)


def never_opens(policy: OnFailure, dependency: TaskState) -> bool:
    """Whether a task of this policy must not begin to wait for a dependency in this state.

    It is to be cancelled when the dependency dies: of one that is dead already it would never be told.
    """
    return policy == OnFailure.CANCEL and dependency in DEAD


def require_alive(policy: OnFailure, dependencies: Mapping[int, TaskState]) -> None:
    """Refuse dependencies, by the ids of their tasks, that have died before a task was to be cancelled with them.

    Raises:
        Conflict: ``DEPENDENCY_DEAD`` with `details.dead`, their ids.
    """
    dead = sorted(task_id for task_id, state in dependencies.items() if never_opens(policy, state))
    if dead:
        listed = ", ".join(f"{task_id} ({dependencies[task_id]})" for task_id in dead[:SHOWN])
        more = f" and {len(dead) - SHOWN:,} more" if len(dead) > SHOWN else ""
        raise Conflict(
            "DEPENDENCY_DEAD",
            f"on_failure=cancel, but these dependencies have ended without a result already: {listed}{more}. "
            "Retry them first, leave them out, or choose on_failure=block (wait until they are retried) or ignore.",
            dead=dead,
        )


def is_never_retried(error_class: str | None, no_retry: Collection[str]) -> bool:
    """Whether a task is not to be tried again after an error of this class, or of a module or family it is in.

    Classes are compared without case; ``ValueError`` also stands for ``json.ValueError``.
    """
    if error_class is None:
        return False
    name = error_class.lower()
    return any(name == listed.lower() or name.endswith("." + listed.lower()) for listed in no_retry)


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
