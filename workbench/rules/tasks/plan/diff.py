"""What a new text of a plan would change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.model import TaskState, Wire
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.plan.model import PlannedTask, meaning

SHOWN = 40
"""Characters of a value in the readable form."""


class Change(Wire):
    """One thing that a task is to say otherwise."""

    field: str
    before: Any
    after: Any


class PlanDiff(Wire):
    """Names of tasks to be added, removed and changed; `text` is the same for people, empty if there is nothing."""

    added: list[str] = []
    removed: list[str] = []
    changed: dict[str, list[Change]] = {}
    text: str = ""


def compare(old: Sequence[PlannedTask], new: Sequence[PlannedTask]) -> PlanDiff:
    """What makes the new tasks of the old ones, by their names and in the order they are written."""
    before = {task.name: task for task in old}
    after = {task.name: task for task in new}
    added = [task for name, task in after.items() if name not in before]
    removed = [task for name, task in before.items() if name not in after]
    changes = {name: _changes(before[name], task) for name, task in after.items() if name in before}
    changed = {name: found for name, found in changes.items() if found}
    lines = [f"+ {task.name}: {task.title}" for task in added]
    lines += [f"- {task.name}: {task.title}" for task in removed]
    lines += [f"~ {name}: {'; '.join(map(_told, found))}" for name, found in changed.items()]
    return PlanDiff(
        added=[task.name for task in added],
        removed=[task.name for task in removed],
        changed=changed,
        text="\n".join(lines),
    )


def obstacles(diff: PlanDiff, states: Mapping[str, TaskState], lines: Mapping[str, int]) -> list[dict[str, Any]]:
    """Why a diff cannot be applied: what has begun stays as it is, and what is done stays.

    Args:
        states: of the tasks there are, by name.
        lines: where the new text speaks of a task; a task that it is silent about has none.
    """
    found = [
        {
            "line": lines.get(name),
            "task": name,
            "reason": f"{name!r} is {states[name]}; {_instead(states[name], changes)}",
        }
        for name, changes in [*diff.changed.items(), *((name, None) for name in diff.removed)]
        if states[name] not in (_MAY_CHANGE if changes else _MAY_GO)
    ]
    return sorted(found, key=lambda one: (one["line"] or 0, one["task"]))


def dead_ends(
    diff: PlanDiff, tasks: Sequence[PlannedTask], states: Mapping[str, TaskState], lines: Mapping[str, int]
) -> list[dict[str, Any]]:
    """What would from now on wait for a dead task that it is to be cancelled with, and so wait for ever.

    Args:
        tasks: as the text has them.
        states, lines: as of `obstacles`.
    """
    concerned = {*diff.added} | {name for name, changes in diff.changed.items() if _LINKS & {c.field for c in changes}}
    return [
        {
            "line": lines.get(task.name),
            "task": task.name,
            "depends_on": other,
            "reason": f"{task.name!r} comes after {other!r}, which is {states[other]}, and is to be cancelled with it",
        }
        for task in tasks
        if task.name in concerned
        for other in dict.fromkeys(task.after)
        if other in states and lifecycle.never_opens(task.on_failure, states[other])
    ]


_LINKS = {"after", "on_failure"}
_MAY_CHANGE = frozenset({TaskState.PENDING})
_MAY_GO = _MAY_CHANGE | lifecycle.DEAD


def _instead(state: TaskState, changes: Sequence[Change] | None) -> str:
    """What keeps a task from being changed, or from being removed if there are no changes."""
    if changes is None:
        return "it stays in the plan" if state == TaskState.COMPLETED else "cancel it before it is removed"
    fields = ", ".join(change.field for change in changes)
    return f"retry it before {fields} can change" if state in lifecycle.DEAD else f"{fields} cannot change any more"


def _changes(before: PlannedTask, after: PlannedTask) -> list[Change]:
    old, new = meaning(before), meaning(after)
    return [Change(field=key, before=old[key], after=new[key]) for key in new if _differ(old[key], new[key])]


def _differ(one: Any, other: Any) -> bool:
    """Whether two values differ as JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


def _told(change: Change) -> str:
    return f"{change.field} {_short(change.before)} → {_short(change.after)}"


def _short(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) or not value.isprintable() else value
    text = text or '""'
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
