"""The states of a worktree, and the next step of an approved integration (spec 3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from workbench.errors import Conflict


class WorktreeState(StrEnum):
    """The states of a worktree."""

    ACTIVE = "active"
    INTEGRATING = "integrating"
    INTEGRATED = "integrated"
    DISCARDED = "discarded"


class Action(StrEnum):
    """The actions that change the state of a worktree."""

    CREATE = "create"
    APPROVE = "approve"
    SEND_BACK = "send_back"
    FINISH = "finish"
    DISCARD = "discard"


class GateState(StrEnum):
    """The states of a gate."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"


class Verdict(StrEnum):
    """The combined result of all gates; open while any of them has not ended."""

    OPEN = "open"
    PASSED = "passed"
    FAILED = "failed"


class Next(StrEnum):
    """The next step of an approved integration: end the approval, run the gates, ask again, or merge."""

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
"""The name of a closed worktree may be used again."""

_CLOSED = frozenset({WorktreeState.INTEGRATED, WorktreeState.DISCARDED})


def step(name: str, state: str, action: Action) -> WorktreeState:
    """The state of the worktree `name` after `action`.

    Raises:
        Conflict: ``WORKTREE_EXISTS``, ``WORKTREE_CLOSED``.
    """
    after = TRANSITIONS.get((WorktreeState(state), action))
    if after is not None:
        return after
    if action is Action.CREATE:
        raise Conflict("WORKTREE_EXISTS", f"The worktree {name!r} already exists. Choose another name.")
    raise not_now(name, state)


def not_now(name: str, state: str) -> Conflict:
    """The error for what a worktree does not permit in its state."""
    advice = "Create another one." if state in _CLOSED else "Wait until it is integrated or sent back."
    return Conflict("WORKTREE_CLOSED", f"The worktree {name} is {state}. {advice}", status=str(state))


def verdict(gates: Iterable[str]) -> Verdict:
    """The combined result of the gates; passed if there are none."""
    states = [GateState(gate) for gate in gates]
    if any(state in (GateState.WAITING, GateState.RUNNING) for state in states):
        return Verdict.OPEN
    failed = any(state is not GateState.PASSED for state in states)
    return Verdict.FAILED if failed else Verdict.PASSED


def next_step(*, source_moved: bool, target_moved: bool, gates: Iterable[str], despite_gates: bool) -> Next:
    """The next step of an integration that the operator has approved.

    Args:
        source_moved: the branch is no longer at the commit that was shown.
        target_moved: the target is no longer at the commit that the gates ran against.
        despite_gates: merge even if gates failed or have not run.
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
