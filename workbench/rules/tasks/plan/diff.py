"""Compares the new text of a plan with its current tasks: the changes, and what forbids them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.model import Json, TaskState, Wire
from workbench.rules.secrets.executed import with_masks
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.plan.model import PlannedTask, meaning

SHOWN = 40
"""Characters of a value that the readable form shows."""


class FieldChange(Wire):
    """The change of one field of a task."""

    field: str
    before: Json
    after: Json


class PlanDiff(Wire):
    """The names of added, removed and changed tasks; `text` is the readable form, empty if nothing changes.

    `retried` are those of the changed tasks that had failed.
    """

    added: list[str] = []
    removed: list[str] = []
    changed: dict[str, list[FieldChange]] = {}
    retried: list[str] = []
    text: str = ""


def compare(old: Sequence[PlannedTask], new: Sequence[PlannedTask], failed: Collection[str] = ()) -> PlanDiff:
    """The changes from the old tasks to the new ones, by name, in the order they are written; secrets are masked.

    Args:
        failed: the names of old tasks that have failed; a change retries them.
    """
    before = {task.name: task for task in old}
    after = {task.name: task for task in new}
    added = [task for name, task in after.items() if name not in before]
    removed = [task for name, task in before.items() if name not in after]
    changes = {name: _changes(before[name], task) for name, task in after.items() if name in before}
    changed = {name: found for name, found in changes.items() if found}
    lines = [f"+ {task.name}: {task.title}" for task in added]
    lines += [f"- {task.name}: {task.title}" for task in removed]
    retried = [name for name in changed if name in failed]
    lines += [
        f"~ {name}: {'; '.join([*map(_readable, found), *(['retried'] if name in retried else [])])}"
        for name, found in changed.items()
    ]
    return PlanDiff(
        added=[task.name for task in added],
        removed=[task.name for task in removed],
        changed={name: [_shown(change) for change in found] for name, found in changed.items()},
        retried=retried,
        text=with_masks("\n".join(lines)),
    )


def _shown(change: FieldChange) -> FieldChange:
    return FieldChange(field=change.field, before=with_masks(change.before), after=with_masks(change.after))


def obstacles(diff: PlanDiff, states: Mapping[str, TaskState], lines: Mapping[str, int]) -> list[dict[str, Any]]:
    """Why a diff cannot be applied: only pending and failed tasks can be changed, and only pending or dead removed.

    Args:
        states: the states of the current tasks, by name.
        lines: the lines of the tasks in the new text, by name.
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
    """New dependencies with `on_failure=cancel` on tasks that have failed or were cancelled: they would never be met.

    Args:
        tasks: the tasks of the text.
        states, lines: as for `obstacles`.
    """
    relinked = {*diff.added} | {name for name, changes in diff.changed.items() if _LINKS & {c.field for c in changes}}
    return [
        {
            "line": lines.get(task.name),
            "task": task.name,
            "depends_on": other,
            "reason": f"{task.name!r} comes after {other!r}, which is {states[other]}, with on_failure=cancel",
        }
        for task in tasks
        if task.name in relinked
        for other in dict.fromkeys(task.after)
        if other in states and other not in diff.retried and lifecycle.never_opens(task.on_failure, states[other])
    ]


_LINKS = {"after", "on_failure"}
_MAY_CHANGE = frozenset({TaskState.PENDING, TaskState.FAILED})
_MAY_GO = frozenset({TaskState.PENDING}) | lifecycle.DEAD


def _instead(state: TaskState, changes: Sequence[FieldChange] | None) -> str:
    """What to do instead of changing a task, or of removing it (if `changes` is None)."""
    if changes is None:
        return "it stays in the plan" if state == TaskState.COMPLETED else "cancel it before it is removed"
    fields = ", ".join(change.field for change in changes)
    return f"retry it before {fields} can change" if state in lifecycle.DEAD else f"{fields} cannot change any more"


def _changes(before: PlannedTask, after: PlannedTask) -> list[FieldChange]:
    old, new = meaning(before), meaning(after)
    changes = ((key, old.get(key), new.get(key)) for key in {**new, **old})  # what is not said has no key
    return [FieldChange(field=key, before=was, after=now) for key, was, now in changes if _differ(was, now)]


def _differ(one: Any, other: Any) -> bool:
    """Whether two values differ as JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


def _readable(change: FieldChange) -> str:
    return f"{change.field} {_short(change.before)} → {_short(change.after)}"


def _short(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) or not value.isprintable() else value
    text = text or '""'
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
