"""The graph of tasks: an SVG in a notebook, a table elsewhere. Dependencies are to the left of their dependents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.present.inert import as_html
from workbench.present.tables import StateCell, Table, plain

LIMIT = 200
"""The most tasks that are drawn."""
SWEEPS = 6
WIDTH, HEIGHT, ACROSS, DOWN = 190, 30, 56, 16
"""The size of a task's box, and the space beside and below it, in pixels."""
LANES = (0, 5, -5)
"""Where the edges of different tasks pass between two boxes: so many pixels below the middle of the space."""
LETTERS = 25

Place = tuple[int, float]
"""Column and row, from 0; rows may be fractional."""
NO_TASKS = "There are no tasks. Create some with a plan."


@dataclass(frozen=True)
class Graph:
    """Tasks as `list_tasks` returns them, and pairs of ids: a task, and one that it depends on.

    A pair may name a task that is not among the tasks; it is then mentioned, not drawn. `empty` is the text shown
    without tasks.
    """

    tasks: Sequence[Mapping[str, Any]]
    dependencies: Sequence[tuple[int, int]]
    empty: str = NO_TASKS

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs."""
        return {"tasks": self.tasks, "dependencies": self.dependencies}

    def text(self) -> str:
        """A table of the tasks, each after its dependencies."""
        at = {task["id"]: self._places[task["id"]] for task in self.tasks}
        ordered = sorted(self.tasks, key=lambda task: at[task["id"]])
        rows = [[task["id"], task["title"], _state(task), self._after(task["id"])] for task in ordered]
        return Table(["id", "title", "status", "after"], rows, self.empty).text()

    def html(self) -> str:
        """An SVG with a legend; texts are escaped."""
        if not self.tasks:
            return f"<p><em>{as_html(self.text())}</em></p>"
        columns, rows = (max(place[axis] for place in self._places.values()) + 1 for axis in (0, 1))
        width, height = columns * (WIDTH + ACROSS) - ACROSS + 2, rows * (HEIGHT + DOWN) + DOWN
        passed = routes(self._places, self._inner)
        drawn = "".join([*map(self._edge, self._inner, passed), *map(self._box, self.tasks)])
        return (
            f'<div style="overflow: auto; max-height: 640px"><svg role="img" aria-label="Graph of tasks" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="-1 -{DOWN} {width:.0f} {height:.0f}" '
            f'style="max-width: none" font-family="sans-serif" font-size="12">{drawn}</svg></div>'
            f"<p>{self._legend()}</p>"
        )

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    @cached_property
    def _inner(self) -> list[tuple[int, int]]:
        known = {task["id"] for task in self.tasks}
        return [(later, earlier) for later, earlier in self.dependencies if {later, earlier} <= known]

    @cached_property
    def _places(self) -> dict[int, Place]:
        return places([task["id"] for task in self.tasks], self._inner)

    @cached_property
    def _waits(self) -> dict[int, list[int]]:
        return _neighbours(self.dependencies)

    def _after(self, task_id: int) -> str:
        return ", ".join(map(str, self._waits.get(task_id, ())))

    def _legend(self) -> str:
        found = Counter(_state(task) for task in self.tasks)
        return " &nbsp; ".join(f"{state.html()} {number}" for state, number in found.items())

    def _edge(self, pair: tuple[int, int], passed: Sequence[Place]) -> str:
        (x2, y2), (x1, y1) = (_corner(self._places[task_id]) for task_id in pair)
        y, y2 = y1 + HEIGHT / 2, y2 + HEIGHT / 2
        line = f"M{x1 + WIDTH:.0f},{y:.1f}"
        for column, beside in passed:
            x = column * (WIDTH + ACROSS)
            line += f"{_bend(x, y, beside)} H{x + WIDTH:.0f}"
            y = beside
        tip = f"M{x2:.0f},{y2:.1f} l-7,-4 v8 z"
        return f'<path d="{line}{_bend(x2, y, y2)}" fill="none" stroke="#8a8f98"/><path d="{tip}" fill="#8a8f98"/>'

    def _box(self, task: Mapping[str, Any]) -> str:
        x, y = _corner(self._places[task["id"]])
        state, name = _state(task), f"{task['id']} {plain(task['title'])}"
        waits = f", after {self._after(task['id'])}" if task["id"] in self._waits else ""
        short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
        sign, colour = state.mark
        return (
            f'<svg x="{x:.0f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" overflow="hidden">'
            f"<title>{as_html(f'{name}: {state}{waits}')}</title>"
            f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="5" fill="{colour}" fill-opacity="0.1" '
            f'stroke="{colour}"/><text x="9" y="19" fill="{colour}">{sign}</text>'
            f'<text x="25" y="19" fill="currentColor">{as_html(short)}</text></svg>'
        )


def _state(task: Mapping[str, Any]) -> StateCell:
    return StateCell.of(task["status"], task["blocked"])


def _corner(place: Place) -> tuple[float, float]:
    return place[0] * (WIDTH + ACROSS), place[1] * (HEIGHT + DOWN)


def _bend(x: float, y1: float, y2: float) -> str:
    """From one height to another, in the space left of x."""
    middle = x - ACROSS / 2
    return f" C{middle:.0f},{y1:.1f} {middle:.0f},{y2:.1f} {x - 5:.0f},{y2:.1f}"


def routes(found: Mapping[int, Place], pairs: Sequence[tuple[int, int]]) -> list[list[Place]]:
    """How each edge gets round the boxes: the columns that it passes, and its height in pixels there.

    Edges of different tasks that pass between the same two boxes do so side by side, as far as there is room.

    Args:
        pairs: `(later, earlier)`, as for `places`.
    """
    tops: dict[int, list[float]] = {}
    for place in found.values():
        tops.setdefault(place[0], []).append(_corner(place)[1])
    users: dict[Place, list[int]] = {}

    def passed(later: int, earlier: int) -> Iterator[Place]:
        (first, start), (last, end) = (found[task_id] for task_id in (earlier, later))
        for column in range(first + 1, last):
            straight = start + (end - start) * (column - first) / (last - first)
            space = _beside(tops[column], straight * (HEIGHT + DOWN) + HEIGHT / 2)
            near = users.setdefault((column, space), [])
            if earlier not in near:
                near.append(earlier)
            yield column, space + LANES[near.index(earlier) % len(LANES)]

    return [list(passed(*pair)) for pair in pairs]


def _beside(tops: Sequence[float], wanted: float) -> float:
    """The height nearest to a wanted one that is clear of a column's boxes."""
    spaces = [(top - DOWN / 2, top + HEIGHT + DOWN / 2) for top in tops]
    if all(wanted <= above or wanted >= below for above, below in spaces):
        return wanted
    return min(sorted({y for space in spaces for y in space}), key=lambda y: abs(y - wanted))


def places(ids: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, Place]:
    """Where each task is drawn: right of its dependencies and near its neighbours; tasks without links are below.

    Args:
        pairs: `(later, earlier)`, both among the ids, without cycles.
    """
    linked = {task_id for pair in pairs for task_id in pair}
    layers = _layers([task_id for task_id in ids if task_id in linked], pairs)
    most = max(map(len, layers), default=0)
    found = {
        task_id: (column, row + (most - len(layer)) / 2)
        for column, layer in enumerate(layers)
        for row, task_id in enumerate(layer)
    }
    wide = max(len(layers), 4)
    alone = [task_id for task_id in ids if task_id not in linked]
    return found | {task_id: (n % wide, float(most + n // wide)) for n, task_id in enumerate(alone)}


def _layers(ids: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Columns from left to right, each from top to bottom so that few edges cross."""
    before, after = _neighbours(pairs), _neighbours((earlier, later) for later, earlier in pairs)
    layers: list[list[int]] = []
    for task_id, depth in _depths(ids, before, after):
        layers.extend([] for _ in range(depth + 1 - len(layers)))
        layers[depth].append(task_id)
    rank = {task_id: row for layer in layers for row, task_id in enumerate(layer)}
    for sweep in range(SWEEPS):
        beside = after if sweep % 2 else before
        for layer in layers[::-1] if sweep % 2 else layers:
            layer.sort(key=lambda task_id: (_centre(beside.get(task_id, [task_id]), rank), rank[task_id]))
            rank |= {task_id: row for row, task_id in enumerate(layer)}
    return layers


def _depths(
    ids: Sequence[int], before: Mapping[int, list[int]], after: Mapping[int, list[int]]
) -> Iterator[tuple[int, int]]:
    """The column of each task: as far left as possible; without dependencies, just before its first dependent."""
    depth: dict[int, int] = {}
    missing = {task_id: len(before.get(task_id, ())) for task_id in ids}
    ready = [task_id for task_id in ids if not missing[task_id]]
    for task_id in ready:
        depth[task_id] = max((depth[other] + 1 for other in before.get(task_id, ())), default=0)
        for later in after.get(task_id, ()):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    for task_id in ids:
        yield task_id, depth[task_id] if task_id in before else min(depth[other] for other in after[task_id]) - 1


def _neighbours(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found


def _centre(neighbours: Sequence[int], rank: Mapping[int, int]) -> float:
    return sum(rank[task_id] for task_id in neighbours) / len(neighbours)
