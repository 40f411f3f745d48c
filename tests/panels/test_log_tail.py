"""The end of a task's log as the panel reads it: in pages, forward and backward, while it grows."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.node


def read(step: int, *steps: tuple[str, Any]) -> list[dict[str, Any]]:
    """The lines that are known after each step."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; the panel's own code is tested in it")
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


def test_the_end_of_a_long_log_is_one_request() -> None:
    *_, first, back, forward = read(100, ("grow", 50_000), ("read", 0), ("back", 0), ("read", 0))
    assert (first["ids"], first["loads"], first["complete"]) == ([*range(49_901, 50_001)], 1, False)
    assert (back["ids"], back["loads"], back["complete"]) == ([*range(49_801, 50_001)], 1, False)
    assert (forward["ids"], forward["loads"]) == (back["ids"], 1)


def test_the_beginning_is_known_when_it_is_reached() -> None:
    found = read(100, ("read", 0), ("grow", 200), ("read", 0), ("back", 0), ("back", 0))
    assert [(len(one["ids"]), one["complete"]) for one in found] == [
        *((0, True), (0, True), (100, False), (200, True), (200, True)),
    ]


def test_after_an_error_the_next_call_goes_on() -> None:
    found = read(2, ("grow", 3), ("fails", True), ("read", 0), ("fails", False), ("read", 0), ("grow", 1), ("read", 0))
    reads = [one for one in found if one["what"] == "read"]
    assert [(one["ids"], one["failed"]) for one in reads] == [([], True), ([2, 3], False), ([2, 3, 4], False)]


STEPS = st.one_of(
    st.tuples(st.just("grow"), st.sampled_from([1, 3, 40, 499, 500, 501])),
    st.tuples(st.sampled_from(["read", "back", "both"]), st.just(0)),
    st.tuples(st.just("fails"), st.booleans()),
)


@pytest.mark.timeout(300)  # each example starts Node.js
@given(st.integers(1, 50), st.lists(STEPS, max_size=15))
def test_the_known_lines_have_no_gap_and_end_with_the_newest(step: int, steps: list[tuple[str, Any]]) -> None:
    total, fails = 0, False
    for (what, how), found in zip(steps, read(step, *steps), strict=True):
        total, fails = total + (how if what == "grow" else 0), how if what == "fails" else fails
        ids = found["ids"]
        assert ids == list(range(ids[0], ids[-1] + 1)) if ids else True
        if what == "read" and not fails:
            assert ids[-1:] == ([total] if total else [])
        if found["complete"] and ids:
            assert ids[0] == 1
