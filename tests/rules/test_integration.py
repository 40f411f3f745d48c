"""The life of a worktree as a table, and what an approved integration needs next."""

from __future__ import annotations

from itertools import product

import pytest

from tests.given import refused
from workbench.rules.integration import (
    OPEN,
    GateState,
    Next,
    Verdict,
    WorktreeAction,
    WorktreeState,
    next_step,
    step,
    verdict,
)

LIFE = """
             create   approve      send_back  finish      discard
active       -        integrating  -          -           discarded
integrating  -        -            active     integrated  -
integrated   active   -            -          -           -
discarded    active   -            -          -           -
"""
ACTIONS, *ROWS = [line.split() for line in LIFE.strip().splitlines()]
STEPS = {(row[0], action): after for row in ROWS for action, after in zip(ACTIONS, row[1:], strict=True)}


def test_the_table_of_transitions_has_every_state_and_action() -> None:
    assert set(STEPS) == set(product(WorktreeState, WorktreeAction))


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after != "-"])
@pytest.mark.parametrize("kind", [WorktreeState, str])
def test_a_worktree_goes_where_the_table_says(kind: type, state: str, action: str) -> None:
    assert step("lab", kind(state), WorktreeAction(action)) == STEPS[state, action]


@pytest.mark.parametrize(("state", "action"), [key for key, after in STEPS.items() if after == "-"])
def test_a_transition_outside_the_table_is_refused(state: str, action: str) -> None:
    error = refused(
        "WORKTREE_EXISTS" if action == "create" else "WORKTREE_CLOSED", step, "lab", state, WorktreeAction(action)
    )
    assert action == "create" or state in error.message


def test_open_worktrees_are_those_whose_name_is_taken() -> None:
    assert {state for state in WorktreeState if STEPS[state, "create"] == "-"} == OPEN


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ([], Verdict.PASSED),
        (["passed"], Verdict.PASSED),
        (["passed", "failed"], Verdict.FAILED),
        (["timeout"], Verdict.FAILED),
        (["passed", "waiting"], Verdict.OPEN),
        (["failed", "running"], Verdict.OPEN),
    ],
)
def test_the_verdict_of_several_gates_is_one(gates: list[str], said: Verdict) -> None:
    assert verdict(gates) is said


def test_every_state_of_a_gate_settles_it_or_leaves_it_open() -> None:
    assert {state for state in GateState if verdict([state]) is Verdict.OPEN} == {"waiting", "running"}


@pytest.mark.parametrize(
    ("source_moved", "target_moved", "gates", "despite", "next_"),
    [
        # A later commit voids the approval, whatever else holds.
        *[(True, moved, gates, d, Next.VOID) for moved, gates, d in product((0, 1), ([], ["passed"]), (0, 1))],
        # Without gates, or despite them, the newest target is merged into.
        *[(False, moved, [], d, Next.MERGE) for moved, d in product((0, 1), (0, 1))],
        *[(False, m, g, True, Next.MERGE) for m, g in product((0, 1), (["failed"], ["running"], ["passed"]))],
        # What has passed is merged as it was gated; a target that moved is gated anew.
        (False, False, ["passed", "passed"], False, Next.MERGE),
        *[(False, True, [state], False, Next.CHECK) for state in GateState],
        *[(False, False, [state], False, Next.CHECK) for state in ("waiting", "running")],
        # What has failed is asked again.
        *[(False, False, [state], False, Next.ASK) for state in ("failed", "timeout")],
        (False, False, ["passed", "failed"], False, Next.ASK),
    ],
)
def test_an_approved_integration_is_voided_gated_asked_again_or_merged(
    source_moved: bool, target_moved: bool, gates: list[str], despite: bool, next_: Next
) -> None:
    moved = {"source_moved": source_moved, "target_moved": target_moved}
    assert next_step(**moved, gates=gates, despite_gates=despite) is next_
