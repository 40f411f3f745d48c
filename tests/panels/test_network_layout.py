"""Where the panel's graph of a network puts nodes, asked of its own JavaScript."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.node
WIDTH, HEIGHT = 148, 40
SIZES = (1, 2, 3, 4, 7, 30, 31)
Graph = dict[str, Any]


def star(size: int, hub: str = "n1") -> Graph:
    """A network of nodes that have edges with one of them, and with each other's neighbour."""
    nodes = [f"n{at}" for at in range(size)]
    lines = [{"from": node, "to": hub} for node in nodes if node != hub and hub in nodes]
    return {"nodes": nodes, "lines": lines, "own": "n0", "width": 900}


def lay_out(*graphs: Graph) -> list[dict[str, Any]]:
    if (node_js := shutil.which("node")) is None:
        pytest.skip("node is not installed; the graph is laid out in it")
    script = Path(__file__).with_name("lay_out_network.mjs")
    questions = "".join(f"{json.dumps(graph)}\n" for graph in graphs)
    done = subprocess.run([node_js, script], input=questions, capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nodes_never_overlap_and_all_of_them_are_inside() -> None:
    graphs = [star(size) | {"width": width} for size in SIZES for width in (300, 596, 1_600)]
    for graph, found in zip(graphs, lay_out(*graphs), strict=True):
        places = found["places"]
        assert set(places) == set(graph["nodes"])
        for one, other in combinations(places.values(), 2):
            assert abs(one["x"] - other["x"]) >= WIDTH or abs(one["y"] - other["y"]) >= HEIGHT
        for place in places.values():
            assert 0 <= place["x"] <= found["width"] - WIDTH
            assert 0 <= place["y"] <= found["height"] - HEIGHT


def test_the_node_with_the_most_edges_stands_alone_in_the_middle_and_the_own_one_first() -> None:
    [found] = lay_out(star(8))
    left, middle, _ = found["columns"]
    assert (left[0], middle) == ("n0", ["n1"])


def test_a_line_that_passes_the_middle_goes_around_it() -> None:
    graph = star(8)
    graph["lines"].append({"from": "n0", "to": "n2"})
    [found] = lay_out(graph)
    (x, y), hub = found["paths"][-1]["middle"], found["places"]["n1"]
    assert hub["x"] <= x <= hub["x"] + WIDTH
    assert not hub["y"] <= y <= hub["y"] + HEIGHT


def test_two_nodes_stand_beside_each_other_the_own_one_on_the_left() -> None:
    [found] = lay_out({"nodes": ["other", "me"], "lines": [], "own": "me", "width": 600})
    assert found["columns"] == [["me"], ["other"]]
    assert found["places"]["me"]["x"] < found["places"]["other"]["x"]
