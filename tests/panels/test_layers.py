"""Where the panel's graph puts tasks, asked of its own JavaScript."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.node
LayOut = Callable[[list[int], list[list[int]]], dict[str, Any]]
EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda edge: edge[0] > edge[1]), unique=True)


@pytest.fixture(scope="module")
def lay_out() -> Iterator[LayOut]:
    """The layout in Node."""
    if (node_js := shutil.which("node")) is None:
        pytest.skip("node is not installed; the graph is laid out in it")
    script = Path(__file__).with_name("lay_out.mjs")
    with subprocess.Popen([node_js, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        talk, answers = process.stdin, process.stdout
        assert talk is not None
        assert answers is not None

        def ask(ids: list[int], pairs: list[list[int]]) -> dict[str, Any]:
            talk.write(json.dumps({"ids": ids, "pairs": pairs}) + "\n")
            talk.flush()
            found: dict[str, Any] = json.loads(answers.readline())
            return found

        yield ask
        talk.close()


def test_a_diamond_has_its_sides_above_each_other_and_its_ends_between(lay_out: LayOut) -> None:
    found = lay_out([1, 2, 3, 4], [[2, 1], [3, 1], [4, 2], [4, 3]])
    places = {int(key): (place["layer"], place["at"]) for key, place in found["places"].items()}
    assert places == {1: (0, 0.5), 2: (1, 0), 3: (1, 1), 4: (2, 0.5)}
    assert (found["columns"], found["rows"]) == (3, 2)


def test_what_waits_for_nothing_stands_right_before_what_needs_it(lay_out: LayOut) -> None:
    places = lay_out([1, 2, 3, 9], [[2, 1], [3, 2], [3, 9]])["places"]
    assert {key: place["layer"] for key, place in places.items()} == {"1": 0, "2": 1, "3": 2, "9": 1}


def test_a_long_edge_bends_around_what_is_between(lay_out: LayOut) -> None:
    found = lay_out([1, 2, 3], [[2, 1], [3, 2], [3, 1]])
    (bends,) = [edge["bends"] for edge in found["edges"] if (edge["from"], edge["to"]) == (1, 3)]
    assert [bend["layer"] for bend in bends] == [1]
    assert abs(bends[0]["at"] - found["places"]["2"]["at"]) >= 0.7 - 1e-6


def test_nothing_is_laid_out_too(lay_out: LayOut) -> None:
    assert lay_out([], []) == {"places": {}, "edges": [], "layers": [], "columns": 0, "rows": 1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(edges=EDGES)
def test_edges_go_to_the_right_and_no_two_nodes_share_a_place(lay_out: LayOut, edges: list[tuple[int, int]]) -> None:
    ids = sorted({end for edge in edges for end in edge})
    found = lay_out(ids, [list(edge) for edge in edges])
    places = {int(key): place for key, place in found["places"].items()}
    assert set(places) == set(ids)
    assert all(places[later]["layer"] > places[earlier]["layer"] for later, earlier in edges)
    for layer in found["layers"]:
        rows = [places[one]["at"] for one in layer]
        assert all(above + 1 <= below + 1e-6 for above, below in pairwise(rows))
        assert all(0 <= at <= found["rows"] - 1 + 1e-6 for at in rows)
