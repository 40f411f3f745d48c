"""The drawn graph of dependencies: each task right of its dependencies, none overlapping, titles inert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from workbench.present.graph import HEIGHT, LIMIT, WIDTH, Graph, places

SVG = "{http://www.w3.org/2000/svg}"


def task(number: int, title: str = "t", status: str = "pending", blocked: bool = False) -> dict[str, Any]:
    """A task of a list."""
    return {"id": number, "title": title, "status": status, "blocked": blocked}


def drawing(graph: Graph) -> ElementTree.Element:
    """The SVG of a graph, read as XML."""
    found, _, _ = graph.html().partition("</div>")
    return ElementTree.fromstring(found.replace("<svg role", '<svg xmlns="http://www.w3.org/2000/svg" role') + "</div>")


DIAMOND = Graph(
    [task(4, "last", blocked=True), task(1, "first", "completed"), task(2, "left", "in_progress"), task(3, "right")],
    [(2, 1), (3, 1), (4, 2), (4, 3)],
)


def test_a_diamond_has_its_sides_above_each_other_and_its_ends_between() -> None:
    assert places([1, 2, 3, 4], DIAMOND.dependencies) == {1: (0, 0.5), 2: (1, 0), 3: (1, 1), 4: (2, 0.5)}


def test_a_task_without_dependencies_stands_before_its_dependant_and_edges_do_not_cross() -> None:
    columns = {key: column for key, (column, _) in places([1, 2, 3, 9], [(2, 1), (3, 2), (3, 9)]).items()}
    assert columns == {1: 0, 2: 1, 9: 1, 3: 2}
    positions = places([1, 2, 3, 4], [(4, 1), (3, 2)])
    assert (positions[1][1] < positions[2][1]) == (positions[4][1] < positions[3][1])


def test_unlinked_tasks_stand_below_the_rest_side_by_side() -> None:
    positions = places([1, 2, *range(10, 16)], [(2, 1)])
    assert [positions[number] for number in range(10, 16)] == [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2)]


def test_a_graph_as_text_is_a_table_in_order_of_the_dependencies() -> None:
    assert repr(DIAMOND).splitlines() == [
        "id  title  status       after",
        "1   first  completed",
        "2   left   in progress  1",
        "3   right  pending      1",
        "4   last   blocked      2, 3",
    ]
    assert repr(Graph([], [])) == "There are no tasks. Create some with a plan."
    assert "There are no tasks" in Graph([], []).html()


def test_a_dependency_outside_the_graph_is_named_and_not_drawn() -> None:
    graph = Graph([task(7)], [(7, 3)])
    assert repr(graph).splitlines()[1].split() == ["7", "t", "pending", "3"]
    svg = drawing(graph)
    assert [len(list(svg.iter(f"{SVG}{kind}"))) for kind in ("rect", "path")] == [1, 0]
    assert [title.text for title in svg.iter(f"{SVG}title")] == ["7 t: pending, after 3"]


def test_a_graph_is_drawn_in_the_colours_of_the_states_with_a_legend() -> None:
    svg = drawing(DIAMOND)
    strokes = [rect.attrib["stroke"] for rect in svg.iter(f"{SVG}rect")]
    assert strokes == ["#6b7280", "#2e7d32", "#1976d2", "#6b7280"]
    assert len(list(svg.iter(f"{SVG}path"))) == 2 * len(DIAMOND.dependencies)
    legend = DIAMOND.html().partition("</div>")[2]
    assert [word in legend for word in ("completed 1", "in progress 1", "blocked 1", "pending 1")] == [True] * 4


def test_a_title_is_escaped_and_cut() -> None:
    graph = Graph([task(1, '</title><script>"&\0\x1b[31m' + "x" * 150)], [])
    assert "<script" not in graph.html()
    (told,) = [title.text for title in drawing(graph).iter(f"{SVG}title")]
    assert told is not None
    assert told.startswith('1 </title><script>"&\\u0000\\u001b')
    assert max(len(text.text or "") for text in drawing(graph).iter(f"{SVG}text")) == 25


NUMBERS = st.integers(1, 30)


EDGES = st.sets(st.tuples(NUMBERS, NUMBERS).filter(lambda pair: pair[0] > pair[1]), max_size=60)


@given(st.sets(NUMBERS), EDGES)
def test_every_task_stands_right_of_its_dependencies_in_its_own_place(
    ids: set[int], edges: set[tuple[int, int]]
) -> None:
    pairs = [(later, earlier) for later, earlier in sorted(edges) if {later, earlier} <= ids]
    positions = places(sorted(ids), pairs)
    assert set(positions) == ids
    assert len(set(positions.values())) == len(ids)
    assert all(column >= 0 and row >= 0 for column, row in positions.values())
    assert all(positions[earlier][0] < positions[later][0] for later, earlier in pairs)


NUMBER = r"(-?[\d.]+)"


def along(path: str) -> Iterator[tuple[float, float]]:
    """Points of a path of moves, curves and horizontal lines, close to each other."""
    x, y = 0.0, 0.0
    for kind, numbers in re.findall(r"([MCH])([^MCH]*)", path):
        values = [float(number) for number in re.findall(NUMBER, numbers)]
        if kind == "M":
            x, y = values
        elif kind == "H":
            yield from ((x + (values[0] - x) * step / 20, y) for step in range(21))
            x = values[0]
        else:
            across, down = (x, *values[::2]), (y, *values[1::2])
            yield from ((curve(across, step / 20), curve(down, step / 20)) for step in range(21))
            x, y = values[4:]


def curve(at: tuple[float, ...], part: float) -> float:
    """One coordinate of a cubic curve."""
    rest = 1 - part
    return rest**3 * at[0] + 3 * rest**2 * part * at[1] + 3 * rest * part**2 * at[2] + part**3 * at[3]


def crossed(graph: Graph) -> list[str]:
    """The boxes that an edge runs through, other than at its ends."""
    svg = drawing(graph)
    drawn = [box for box in svg.iter(f"{SVG}svg") if "x" in box.attrib]
    boxes = [(float(box.attrib["x"]), float(box.attrib["y"]), str(box[0].text)) for box in drawn]
    lines = [path.attrib["d"] for path in svg.iter(f"{SVG}path") if path.attrib["fill"] == "none"]
    assert len(lines) == len(graph.dependencies)
    return [
        title
        for line in lines
        for x, y in along(line)
        for left, top, title in boxes
        if left < x < left + WIDTH and top < y < top + HEIGHT
    ]


def test_an_edge_goes_round_the_boxes_between_its_ends() -> None:
    chain = Graph([task(number) for number in range(1, 5)], [(2, 1), (3, 2), (4, 3), (3, 1), (4, 1), (4, 2)])
    assert crossed(chain) == []


@given(st.sets(NUMBERS, min_size=1), EDGES)
def test_no_edge_crosses_a_box(alone: set[int], edges: set[tuple[int, int]]) -> None:
    ids = sorted({*alone, *(number for pair in edges for number in pair)})
    assert crossed(Graph([task(number) for number in ids], sorted(edges))) == []


def test_a_graph_of_the_largest_size_is_drawn_whole() -> None:
    tasks = [task(number) for number in range(1, LIMIT + 1)]
    graph = Graph(tasks, [(later, later // 2) for later in range(2, LIMIT + 1)])
    assert len(list(drawing(graph).iter(f"{SVG}rect"))) == LIMIT
