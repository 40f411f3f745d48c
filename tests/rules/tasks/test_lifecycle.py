"""The life of a task, as a table, and the pause before another attempt."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.model import SECOND, OnFailure, TaskState
from workbench.rules.tasks.lifecycle import (
    DEAD,
    HELD,
    OPEN,
    Action,
    after_failure,
    backoff,
    is_met,
    is_never_retried,
    step,
)

LIFE = """
             claim    start        complete   fail    release  expire  cancel     retry    reassign
pending      claimed  -            -          -       -        -       cancelled  -        pending
claimed      -        in_progress  completed  failed  pending  failed  cancelled  -        pending
in_progress  -        in_progress  completed  failed  pending  failed  cancelled  -        pending
completed    -        -            -          -       -        -       -          -        -
failed       -        -            -          -       -        -       -          pending  -
cancelled    -        -            -          -       -        -       -          pending  -
"""
ACTIONS, *ROWS = [line.split() for line in LIFE.strip().splitlines()]
STEPS = {(row[0], action): after for row in ROWS for action, after in zip(ACTIONS, row[1:], strict=True)}


def test_the_table_above_speaks_of_every_state_and_action() -> None:
    assert set(STEPS) == set(product(TaskState, Action))


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after != "-"])
def test_a_task_goes_where_the_table_says(state: str, action: str) -> None:
    assert step(TaskState(state), Action(action)) == STEPS[state, action]


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after == "-"])
@pytest.mark.parametrize("kind", [TaskState, str])
def test_any_other_step_is_refused_also_for_a_state_as_the_store_has_it(kind: type, state: str, action: str) -> None:
    assert refused("WRONG_STATE", step, kind(state), Action(action)).details == {"status": state}


def test_open_tasks_are_those_that_can_still_be_cancelled_and_held_ones_those_that_can_be_finished() -> None:
    assert {state for state in TaskState if STEPS[state, "cancel"] != "-"} == OPEN
    assert {state for state in TaskState if STEPS[state, "complete"] != "-"} == HELD


def test_a_failure_leaves_a_task_pending_only_while_a_retry_is_left() -> None:
    left = [after_failure(count, 2, retryable=True) for count in range(3)]
    assert left == ["pending", "pending", "failed"]
    assert after_failure(0, 0, retryable=True) == after_failure(0, 2, retryable=False) == "failed"


@pytest.mark.parametrize("state", TaskState)
def test_only_a_policy_that_ignores_failures_goes_on_after_one(state: TaskState) -> None:
    expected = set(OnFailure) if state == TaskState.COMPLETED else {OnFailure.IGNORE} if state in DEAD else set()
    assert {policy for policy in OnFailure if is_met(policy, state)} == expected


def test_some_errors_are_never_retried() -> None:
    for error_class in ("ValueError", "valueerror", "numpy.linalg.ValueError"):
        assert is_never_retried(error_class, ["ValueError"])
    for error_class, listed in ((None, ["ValueError"]), ("ValueError", []), ("MyValueError", ["ValueError"])):
        assert not is_never_retried(error_class, listed)


def test_the_pause_doubles_up_to_its_cap() -> None:
    waits = [backoff(retry, 1.0, 10.0, 0.0) // SECOND for retry in range(6)]
    assert waits == [1, 2, 4, 8, 10, 10]


@given(
    retry=st.integers(0, 10**9),
    base=st.floats(0, 1e6),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_the_pause_never_shrinks_and_never_exceeds_its_cap_by_more_than_a_quarter(
    retry: int, base: float, cap: float, jitter: float
) -> None:
    wait = backoff(retry, base, cap, jitter)
    assert 0 <= wait <= cap * 1.25 * SECOND
    assert wait <= backoff(retry + 1, base, cap, jitter)
    assert backoff(retry, base, cap, 0.0) <= wait
