"""Tasks that an agent proposes and a person approves: their order as a tree, their limits, and what is left out with
what. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.rules.budgets import LIMITS


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed task. `after`: the ids of the tasks that it waits for; `ignores`: they may fail."""

    id: int
    name: str | None
    parent: int | None
    after: Sequence[int]
    ignores: bool


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """What tasks may spend together, by the names of limits. `unlimited`: how many of them have no budget at all."""

    amounts: Mapping[str, float | None]
    unlimited: int


def limit_of(
    tasks: Iterable[tuple[Hashable, Hashable | None, Mapping[str, Any] | None]], whole: Mapping[str, Any] | None
) -> SpendingLimit:
    """What tasks, each with its key, the key of its parent and its budget, may spend together.

    The budget of a task is that of its subtasks as well.

    Args:
        whole: the budget of all together; None: there is none.
    """
    stated = {key: (parent, budget or {}) for key, parent, budget in tasks}
    sums: dict[str, float | None] = {name: (whole or {}).get(name) for name in LIMITS}
    open_ = [name for name in LIMITS if sums[name] is None]
    unlimited = 0
    for parent, budget in stated.values():
        above: set[str] = set()
        while parent in stated:
            parent, other = stated[parent]
            above |= other.keys()
        for name in open_:
            if name in budget and name not in above:
                sums[name] = (sums[name] or 0) + budget[name]
        unlimited += not (whole or budget or above)
    return SpendingLimit(sums, unlimited)


def left_with(without: Collection[int], tasks: Sequence[Proposed]) -> set[int]:
    """The ids of the tasks that are left out with others: what is below them, and what depends on them."""
    following: dict[int, list[int]] = {}
    for task in tasks:
        for other in (*([] if task.ignores else task.after), *([] if task.parent is None else [task.parent])):
            following.setdefault(other, []).append(task.id)
    out, waiting = {*without}, [*without]
    while waiting:
        new = [one for one in following.get(waiting.pop(), ()) if one not in out]
        out.update(new)
        waiting.extend(new)
    return out - {*without}


def in_tree(tasks: Sequence[Proposed]) -> list[tuple[Proposed, int]]:
    """The tasks, each followed by its subtasks, with their depths; otherwise by id."""
    known = {task.id for task in tasks}
    below: dict[int | None, list[Proposed]] = {}
    for task in sorted(tasks, key=lambda task: -task.id):
        below.setdefault(task.parent if task.parent in known else None, []).append(task)
    waiting = [(task, 0) for task in below.get(None, ())]
    found: list[tuple[Proposed, int]] = []
    while waiting:
        task, depth = waiting.pop()
        found.append((task, depth))
        waiting.extend((one, depth + 1) for one in below.get(task.id, ()))
    return found
