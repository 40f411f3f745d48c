"""The states of a worktree, and the next step of an approved integration (spec 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from workbench.errors import Conflict

NAMED = 5
"""How many tasks, gates and files a line names."""


class WorktreeState(StrEnum):
    """The states of a worktree."""

    ACTIVE = "active"
    INTEGRATING = "integrating"
    INTEGRATED = "integrated"
    DISCARDED = "discarded"


class WorktreeAction(StrEnum):
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

TRANSITIONS: dict[tuple[WorktreeState, WorktreeAction], WorktreeState] = {
    (WorktreeState.ACTIVE, WorktreeAction.APPROVE): WorktreeState.INTEGRATING,
    (WorktreeState.ACTIVE, WorktreeAction.DISCARD): WorktreeState.DISCARDED,
    (WorktreeState.INTEGRATING, WorktreeAction.SEND_BACK): WorktreeState.ACTIVE,
    (WorktreeState.INTEGRATING, WorktreeAction.FINISH): WorktreeState.INTEGRATED,
    (WorktreeState.INTEGRATED, WorktreeAction.CREATE): WorktreeState.ACTIVE,
    (WorktreeState.DISCARDED, WorktreeAction.CREATE): WorktreeState.ACTIVE,
}
"""The name of a closed worktree may be used again."""

_CLOSED = frozenset({WorktreeState.INTEGRATED, WorktreeState.DISCARDED})


def step(name: str, state: str, action: WorktreeAction) -> WorktreeState:
    """The state of the worktree `name` after `action`.

    Raises:
        Conflict: ``WORKTREE_EXISTS``, ``WORKTREE_CLOSED``.
    """
    after = TRANSITIONS.get((WorktreeState(state), action))
    if after is not None:
        return after
    if action is WorktreeAction.CREATE:
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


def with_lines(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an approval shows, with `decides`: the lines that every shell shows before a merge."""
    lines = [_tasks_line(payload), _gates_line(payload), _checks_line(payload), _files_line(payload)]
    return {**payload, "decides": list(filter(None, lines))}


def _tasks_line(payload: Mapping[str, Any]) -> str:
    completed, failed, still_open = (payload.get(f"{name}_tasks", 0) for name in ("completed", "failed", "open"))
    parts = [
        completed and f"{completed} completed",
        failed and f"{failed} failed for good ({named(payload['failed_task_ids'], failed)})",
        still_open and f"{still_open} open ({named(payload['open_task_ids'], still_open)})",
    ]
    return f"Tasks: {', '.join(filter(None, parts)) or 'none in this worktree'}."


def _gates_line(payload: Mapping[str, Any]) -> str:
    gates, unused = payload.get("gates", ()), payload.get("unused_gates", ())
    words = {GateState.TIMEOUT: "timed out", GateState.WAITING: "not run yet"}
    found: dict[str, list[str]] = {}
    for gate in gates:
        found.setdefault(gate["state"], []).append(gate["command"])
    parts = [
        f"{len(commands)} {words.get(GateState(state), state)}"
        + (f" ({named(commands)})" if state != GateState.PASSED else "")
        for state, commands in found.items()
    ]
    if not gates:
        parts = ["none ran, because it conflicts" if payload["conflicts"] else "none ran"]
    if not gates and not unused and not payload["conflicts"]:
        parts = ["none are set"]
    if unused:
        parts.append(f"set, but not used: {named(unused)} (`workbench trust` shows what is not trusted)")
    return f"Gates: {'; '.join(parts)}."


def _checks_line(payload: Mapping[str, Any]) -> str:
    target, made, changed = payload["target"], payload.get("makes_conflict", ()), payload.get("changed", ())
    conflicts = payload["conflicts"]
    parts = [
        f"conflicts with {target} in {named(conflicts)}" if conflicts else f"no conflicts with {target}",
        made and f"approving it will make {named([one['worktree'] for one in made])} conflict",
        f"protected parts have changed: {named(changed)}" if changed else "protected parts are unchanged",
    ]
    return f"Checks: {'; '.join(filter(None, parts))}."


def _files_line(payload: Mapping[str, Any]) -> str:
    """The files that rarely belong into a commit; empty without any."""
    large, binary = payload.get("large", 0), payload.get("binary", 0)
    sizes = [f"{file['path']} {file['bytes'] / 1e6:,.1f} MB" for file in payload.get("large_files", ())]
    parts = [
        large and f"{large:,} large ({named(sizes, large)})",
        binary and f"{binary:,} binary ({named(payload['binary_files'], binary)})",
    ]
    return f"Files: {'; '.join(filter(None, parts))}." if large or binary else ""


def named(items: Sequence[Any], total: int = 0) -> str:
    """The first few, and how many more there are of `total`, by default of all."""
    more = (total or len(items)) - NAMED
    return ", ".join(map(str, items[:NAMED])) + (f" and {more:,} more" if more > 0 else "")
