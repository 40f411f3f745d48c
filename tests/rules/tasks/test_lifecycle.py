"""The life of a task as a table, the pause before another attempt, and why an agent cannot claim a task."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.model import SECOND, TaskState
from workbench.rules.tasks import artifacts
from workbench.rules.tasks.claiming import Claimant, ClaimCandidate, obstacles
from workbench.rules.tasks.lifecycle import (
    HELD,
    OPEN,
    TaskAction,
    after_failure,
    backoff,
    is_never_retried,
    step,
)
from workbench.services.tasks.creation import note_on_missing

LIFE = """
             claim    start        complete   fail    release  expire  cancel     retry    reassign  reopen
pending      claimed  -            -          -       -        -       cancelled  -        pending   -
claimed      -        in_progress  completed  failed  pending  failed  cancelled  -        pending   -
in_progress  -        in_progress  completed  failed  pending  failed  cancelled  -        pending   -
completed    -        -            -          -       -        -       -          -        -      pending
failed       -        -            -          -       -        -       -          pending  -      -
cancelled    -        -            -          -       -        -       -          pending  -      -
"""
ACTIONS, *ROWS = [line.split() for line in LIFE.strip().splitlines()]
STEPS = {(row[0], action): after for row in ROWS for action, after in zip(ACTIONS, row[1:], strict=True)}


def test_the_table_of_transitions_has_every_state_and_action() -> None:
    assert set(STEPS) == set(product(TaskState, TaskAction))


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after != "-"])
def test_a_task_goes_where_the_table_says(state: str, action: str) -> None:
    assert step(TaskState(state), TaskAction(action)) == STEPS[state, action]


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after == "-"])
@pytest.mark.parametrize("kind", [TaskState, str])
def test_a_transition_outside_the_table_is_refused_also_for_a_stored_state(kind: type, state: str, action: str) -> None:
    assert refused("WRONG_STATE", step, kind(state), TaskAction(action)).details == {"status": state}


def test_open_tasks_can_be_cancelled_and_held_ones_can_be_finished() -> None:
    assert {state for state in TaskState if STEPS[state, "cancel"] != "-"} == OPEN
    assert {state for state in TaskState if STEPS[state, "complete"] != "-"} == HELD


def test_a_failure_leaves_a_task_pending_only_while_a_retry_is_left() -> None:
    left = [after_failure(count, 2, retryable=True) for count in range(3)]
    assert left == ["pending", "pending", "failed"]
    assert after_failure(0, 0, retryable=True) == after_failure(0, 2, retryable=False) == "failed"


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


# Claims

ADA = Claimant("a1", "tester", "lab")
UNCLAIMED = ClaimCandidate(TaskState.PENDING, None, "tester", None, None, None, {}, None)
RETRY = "which a planner or the operator has to retry first"
NO_COMMAND = "it has no command; only an LLM agent or a person can do it"


@pytest.mark.parametrize(
    ("task", "who", "reasons"),
    [
        ({}, {}, {}),
        ({"worktree": "lab"}, {}, {}),
        ({"status": TaskState.CLAIMED, "holder": "bob"}, {}, {"held": "it is claimed, held by bob"}),
        ({"status": TaskState.IN_PROGRESS, "holder": "bob"}, {}, {"held": "it is in_progress, held by bob"}),
        ({"status": TaskState.COMPLETED, "persona": "poet"}, {}, {"ended": "it is completed"}),
        ({"persona": "poet"}, {}, {"persona": "it is for the persona poet, and yours is tester"}),
        ({"persona": "poet"}, {"persona": None}, {"persona": "it is for the persona poet, and you have none"}),
        ({"worktree": "hut"}, {}, {"worktree": "it is for the worktree hut, and yours is lab"}),
        ({"worktree": "hut"}, {"worktree": None}, {"worktree": "it is for the worktree hut, and you have none"}),
        ({"reserved_for": "a1", "persona": "poet", "worktree": "hut"}, {}, {}),
        ({"reserved_for": "b2", "reserved_name": "bob"}, {}, {"reserved": "it is reserved for bob"}),
        ({"has_command": False}, {}, {}),
        ({"has_command": True}, {"commands_only": True}, {}),
        ({"has_command": False}, {"commands_only": True}, {"command": NO_COMMAND}),
        ({"not_before": 0}, {}, {"backoff": "its next attempt may begin at 1970-01-01T00:00:00.000Z"}),
        ({"waits": {7: TaskState.PENDING, 8: TaskState.CLAIMED}}, {}, {"dependency": "it waits for 7, 8"}),
        (
            {"waits": {7: TaskState.FAILED, 8: TaskState.CANCELLED, 9: TaskState.PENDING}, "persona": "poet"},
            {},
            {
                "persona": "it is for the persona poet, and yours is tester",
                "dependency_failed": f"it depends on 7 (failed), 8 (cancelled), {RETRY}",
                "dependency": "it waits for 9",
            },
        ),
    ],
)
def test_every_reason_is_named_and_no_other(task: dict[str, Any], who: dict[str, Any], reasons: dict[str, str]) -> None:
    assert obstacles(replace(UNCLAIMED, **task), replace(ADA, **who)) == reasons


def test_only_some_of_many_dependencies_are_listed() -> None:
    for many, end in ((12, "11, 12"), (13, "12 and 1 more"), (1_013, "12 and 1,001 more")):
        waits = dict.fromkeys(range(1, many + 1), TaskState.PENDING)
        assert obstacles(replace(UNCLAIMED, waits=waits), ADA)["dependency"].endswith(f", {end}")


def test_tasks_without_a_command_are_noted() -> None:
    one, more = "only an LLM agent or a person can do it.", "only an LLM agent or a person can do them."
    assert note_on_missing([]) is None
    assert note_on_missing([7]) == f"Task 7 has no command (run): {one}"
    assert note_on_missing(range(1, 6)) == f"Tasks 1, 2, 3, 4, 5 have no command (run): {more}"
    assert note_on_missing(range(1, 7)) == f"Tasks 1, 2, 3, 4, 5 and 1 more have no command (run): {more}"


# Artifacts

ROOT = Path("/project")


def test_a_name_says_whether_it_is_a_file_a_commit_or_an_address() -> None:
    kinds = {"out/plot.png": "file", "C: notes": "file", "commit:1": "commit"}
    kinds |= {"https://example.org/a": "address", "s3://bucket/a": "address"}
    assert {name: artifacts.kind(name) for name in kinds} == kinds


def test_the_last_whole_commit_is_that_of_the_work() -> None:
    one, other = "a" * 40, "b" * 40
    assert artifacts.commit(["x", f"commit:{one}", f"commit:{other}", "commit:b", "commit:--all"]) == other
    assert artifacts.commit(["x", "commit:1"]) is None


def test_a_path_is_relative_to_the_directory() -> None:
    places = {"./a//b.txt": "a/b.txt", "/project/a": "a", "/elsewhere/a": None, "/project": None, ".": None}
    assert {name: artifacts.place(name, ROOT) for name in places} == places


@given(st.text(st.sampled_from("./ab\0") | st.characters(), max_size=20))
def test_no_name_leads_out_of_the_directory(name: str) -> None:
    place = artifacts.place(name, ROOT)
    if place is not None:
        path = PurePosixPath(place)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert path.parts
        assert "\0" not in place
