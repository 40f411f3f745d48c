"""The end of a task's log as the panel reads it: in pages, forward and back, whatever comes meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.node


def read(step: int, *steps: tuple[str, Any]) -> list[dict[str, Any]]:
    """What is known after each step."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; the panel's rules are tried in it only")
    ran = subprocess.run(
        ["node", "tests/panels/read_log.mjs"],
        input=json.dumps({"step": step, "steps": steps}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def test_of_a_long_log_only_the_end_is_read_with_one_question() -> None:
    *_, read_first, back, forward = read(100, ("told", 50_000), ("read", 0), ("back", 0), ("read", 0))
    assert (read_first["ids"], read_first["asked"], read_first["whole"]) == ([*range(49_901, 50_001)], 1, False)
    assert (back["ids"], back["asked"], back["whole"]) == ([*range(49_801, 50_001)], 1, False)
    assert (forward["ids"], forward["asked"]) == (back["ids"], 1)


def test_the_beginning_is_known_when_it_is_reached() -> None:
    found = read(100, ("read", 0), ("told", 200), ("read", 0), ("back", 0), ("back", 0))
    assert [(len(one["ids"]), one["whole"]) for one in found] == [
        *((0, True), (0, True), (100, False), (200, True), (200, True)),
    ]


def test_after_an_error_it_is_read_on() -> None:
    found = read(2, ("told", 3), ("fails", True), ("read", 0), ("fails", False), ("read", 0), ("told", 1), ("read", 0))
    assert [one["ids"] for one in found if one["what"] == "read"] == [[], [2, 3], [2, 3, 4]]


STEPS = st.one_of(
    st.tuples(st.just("told"), st.sampled_from([1, 3, 40, 499, 500, 501])),
    st.tuples(st.sampled_from(["read", "back", "both"]), st.just(0)),
    st.tuples(st.just("fails"), st.booleans()),
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 50), st.lists(STEPS, max_size=15))
def test_what_is_known_has_no_gap_and_ends_with_what_was_read_last(step: int, steps: list[tuple[str, Any]]) -> None:
    told, fails = 0, False
    for (what, how), found in zip(steps, read(step, *steps), strict=True):
        told, fails = told + (how if what == "told" else 0), how if what == "fails" else fails
        ids = found["ids"]
        assert ids == list(range(ids[0], ids[-1] + 1)) if ids else True
        if what == "read" and not fails:
            assert ids[-1:] == ([told] if told else [])
        if found["whole"] and ids:
            assert ids[0] == 1
