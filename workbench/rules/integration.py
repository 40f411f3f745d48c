"""The life of a worktree, and what is to be done next with one whose integration was approved (spec 3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from workbench.errors import Conflict


class WorktreeState(StrEnum):
    """How a worktree stands."""

    ACTIVE = "active"
    INTEGRATING = "integrating"
    INTEGRATED = "integrated"
    DISCARDED = "discarded"


class Action(StrEnum):
    """What can be done to a worktree."""

    CREATE = "create"
    APPROVE = "approve"
    SEND_BACK = "send_back"
    FINISH = "finish"
    DISCARD = "discard"


class GateState(StrEnum):
    """How one gate of an integration stands."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"


class Verdict(StrEnum):
    """What all gates together say."""

    OPEN = "open"
    PASSED = "passed"
    FAILED = "failed"


class Next(StrEnum):
    """What is to be done with an approved integration."""

    VOID = "void"
    CHECK = "check"
    ASK = "ask"
    MERGE = "merge"


OPEN = frozenset({WorktreeState.ACTIVE, WorktreeState.INTEGRATING})
"""States in which a worktree has its directory."""

TRANSITIONS: dict[tuple[WorktreeState, Action], WorktreeState] = {
    (WorktreeState.ACTIVE, Action.APPROVE): WorktreeState.INTEGRATING,
    (WorktreeState.ACTIVE, Action.DISCARD): WorktreeState.DISCARDED,
    (WorktreeState.INTEGRATING, Action.SEND_BACK): WorktreeState.ACTIVE,
    (WorktreeState.INTEGRATING, Action.FINISH): WorktreeState.INTEGRATED,
    (WorktreeState.INTEGRATED, Action.CREATE): WorktreeState.ACTIVE,
    (WorktreeState.DISCARDED, Action.CREATE): WorktreeState.ACTIVE,
}
"""A name that is free again may be used for another worktree."""

_NOT_THERE_TO_CHANGE = frozenset({WorktreeState.INTEGRATED, WorktreeState.DISCARDED})


def step(name: str, state: str, action: Action) -> WorktreeState:
    """The state of the worktree `name` after `action`.

    Raises:
        Conflict: ``WORKTREE_EXISTS``, ``WORKTREE_CLOSED``.
    """
    after = TRANSITIONS.get((WorktreeState(state), action))
    if after is not None:
        return after
    if action is Action.CREATE:
        raise Conflict("WORKTREE_EXISTS", f"There is a worktree {name!r} already. Choose another name.")
    advice = "Create another." if state in _NOT_THERE_TO_CHANGE else "Wait until that is decided."
    raise Conflict("WORKTREE_CLOSED", f"The worktree {name} is {state}. {advice}", status=str(state))


def verdict(gates: Iterable[str]) -> Verdict:
    """What the gates say together; without any they have passed."""
    states = [GateState(gate) for gate in gates]
    if any(state in (GateState.WAITING, GateState.RUNNING) for state in states):
        return Verdict.OPEN
    failed = any(state is not GateState.PASSED for state in states)
    return Verdict.FAILED if failed else Verdict.PASSED


def next_step(*, source_moved: bool, target_moved: bool, gates: Iterable[str], despite_gates: bool) -> Next:
    """What is to be done with an integration that a person has approved.

    Args:
        source_moved: the branch is not at the commit that was shown.
        target_moved: the target is not at the commit that the gates ran against.
        despite_gates: the person wants it whatever the gates say.
    """
    states = list(gates)
    if source_moved:
        return Next.VOID
    if despite_gates or not states:
        return Next.MERGE
    found = verdict(states)
    if target_moved or found is Verdict.OPEN:
        return Next.CHECK
    return Next.MERGE if found is Verdict.PASSED else Next.ASK
