"""Graphs of task names: topological order and cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from workbench.rules.tasks.plan.model import Plan, PlannedTask


def in_order(plan: Plan) -> list[PlannedTask]:
    """The tasks in an order in which each comes after its dependencies, otherwise as written."""
    place = {task.name: at for at, task in enumerate(plan.tasks)}
    order = TopologicalSorter({task.name: [on for on in task.after if on in place] for task in plan.tasks})
    order.prepare()
    names: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready(), key=place.__getitem__)
        names.extend(ready)
        order.done(*ready)
    return [plan.tasks[place[name]] for name in names]


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle in a graph of `node -> dependencies`, with the first node repeated at the end; None if there is none."""
    finished: set[str] = set()
    for start in edges:
        if start in finished:
            continue
        path, on_path = [start], {start}
        stack = [iter(edges[start])]
        while stack:
            following = next((n for n in stack[-1] if n in edges and n not in finished), None)
            if following is None:
                stack.pop()
                done = path.pop()
                on_path.discard(done)
                finished.add(done)
            elif following in on_path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                on_path.add(following)
                stack.append(iter(edges[following]))
    return None
