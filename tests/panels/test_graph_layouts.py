"""The layouts of the panel's graphs of tasks and of network nodes: its JavaScript in Node."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node
EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda edge: edge[0] > edge[1]), unique=True)
WIDTH, HEIGHT = 148, 40
SIZES = (1, 2, 3, 4, 7, 30, 31)


@pytest.fixture(scope="session")
def tasks(call: Ask) -> Ask:
    """`tasks(ids, pairs)`: where tasks are, each pair a task and one that it waits for."""
    return partial(call, "tasks/graph_layout.js", "layout")


@pytest.fixture(scope="session")
def network(in_node: Ask) -> Ask:
    """`network({nodes, lines, own, width})`: where nodes are."""
    answer: Ask = in_node("lay_out_network.mjs")
    return answer


def test_a_diamond_has_its_sides_above_each_other_and_its_ends_between(tasks: Ask) -> None:
    found = tasks([1, 2, 3, 4], [[2, 1], [3, 1], [4, 2], [4, 3]])
    places = {int(key): (place["layer"], place["at"]) for key, place in found["places"].items()}
    assert places == {1: (0, 0.5), 2: (1, 0), 3: (1, 1), 4: (2, 0.5)}
    assert (found["columns"], found["rows"]) == (3, 2)


def test_a_task_without_dependencies_stands_right_before_its_dependant(tasks: Ask) -> None:
    places = tasks([1, 2, 3, 9], [[2, 1], [3, 2], [3, 9]])["places"]
    assert {key: place["layer"] for key, place in places.items()} == {"1": 0, "2": 1, "3": 2, "9": 1}


def test_a_long_edge_bends_around_the_nodes_between(tasks: Ask) -> None:
    found = tasks([1, 2, 3], [[2, 1], [3, 2], [3, 1]])
    (bends,) = [edge["bends"] for edge in found["edges"] if (edge["from"], edge["to"]) == (1, 3)]
    assert [bend["layer"] for bend in bends] == [1]
    assert abs(bends[0]["at"] - found["places"]["2"]["at"]) >= 0.7 - 1e-6


def test_an_empty_graph_is_laid_out(tasks: Ask) -> None:
    assert tasks([], []) == {"places": {}, "edges": [], "layers": [], "columns": 0, "rows": 1}


@given(edges=EDGES)
def test_edges_go_to_the_right_and_no_two_nodes_share_a_place(tasks: Ask, edges: list[tuple[int, int]]) -> None:
    ids = sorted({end for edge in edges for end in edge})
    found = tasks(ids, [list(edge) for edge in edges])
    places = {int(key): place for key, place in found["places"].items()}
    assert set(places) == set(ids)
    assert all(places[later]["layer"] > places[earlier]["layer"] for later, earlier in edges)
    for layer in found["layers"]:
        rows = [places[one]["at"] for one in layer]
        assert all(above + 1 <= below + 1e-6 for above, below in pairwise(rows))
        assert all(0 <= at <= found["rows"] - 1 + 1e-6 for at in rows)


def star(size: int, hub: str = "n1") -> dict[str, Any]:
    """A network of nodes that have edges with one of them, and with each other's neighbour."""
    nodes = [f"n{at}" for at in range(size)]
    lines = [{"from": node, "to": hub} for node in nodes if node != hub and hub in nodes]
    return {"nodes": nodes, "lines": lines, "own": "n0", "width": 900}


def test_nodes_never_overlap_and_all_of_them_are_inside(network: Ask) -> None:
    graphs = [star(size) | {"width": width} for size in SIZES for width in (300, 596, 1_600)]
    for graph in graphs:
        drawing = network(graph)
        places = drawing["places"]
        assert set(places) == set(graph["nodes"])
        for one, other in combinations(places.values(), 2):
            assert abs(one["x"] - other["x"]) >= WIDTH or abs(one["y"] - other["y"]) >= HEIGHT
        for place in places.values():
            assert 0 <= place["x"] <= drawing["width"] - WIDTH
            assert 0 <= place["y"] <= drawing["height"] - HEIGHT


def test_the_node_with_the_most_edges_stands_alone_in_the_middle_and_the_own_one_first(network: Ask) -> None:
    drawing = network(star(8))
    left, middle, _ = drawing["columns"]
    assert (left[0], middle) == ("n0", ["n1"])


def test_a_line_that_passes_the_middle_goes_around_it(network: Ask) -> None:
    graph = star(8)
    graph["lines"].append({"from": "n0", "to": "n2"})
    drawing = network(graph)
    (x, y), hub = drawing["paths"][-1]["middle"], drawing["places"]["n1"]
    assert hub["x"] <= x <= hub["x"] + WIDTH
    assert not hub["y"] <= y <= hub["y"] + HEIGHT


def test_two_nodes_stand_beside_each_other_the_own_one_on_the_left(network: Ask) -> None:
    drawing = network({"nodes": ["other", "me"], "lines": [], "own": "me", "width": 600})
    assert drawing["columns"] == [["me"], ["other"]]
    assert drawing["places"]["me"]["x"] < drawing["places"]["other"]["x"]
