"""The ends of logs and the patches that the panel reads: its own code in Node."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node
CHANGES = "read_changes.mjs"
LINES = st.lists(st.sampled_from(["a", "b", "", "- x", "+ y", "@@ z", "\\ w", "--- q"]), max_size=12)


@pytest.fixture(scope="session")
def read(in_node: Ask) -> Ask:
    """`read(size, *steps)`: the lines of a log, read in pages, that are known after each step."""
    return lambda step, *steps: in_node("read_log.mjs")({"step": step, "steps": steps})


def test_the_end_of_a_long_log_is_one_request(read: Ask) -> None:
    *_, first, back, forward = read(100, ("grow", 50_000), ("read", 0), ("back", 0), ("read", 0))
    assert (first["ids"], first["loads"], first["complete"]) == ([*range(49_901, 50_001)], 1, False)
    assert (back["ids"], back["loads"], back["complete"]) == ([*range(49_801, 50_001)], 1, False)
    assert (forward["ids"], forward["loads"]) == (back["ids"], 1)


def test_a_log_is_complete_once_its_beginning_is_read(read: Ask) -> None:
    found = read(100, ("read", 0), ("grow", 200), ("read", 0), ("back", 0), ("back", 0))
    assert [(len(one["ids"]), one["complete"]) for one in found] == [
        *((0, True), (0, True), (100, False), (200, True), (200, True)),
    ]


def test_after_an_error_the_next_call_goes_on(read: Ask) -> None:
    found = read(2, ("grow", 3), ("fails", True), ("read", 0), ("fails", False), ("read", 0), ("grow", 1), ("read", 0))
    reads = [one for one in found if one["what"] == "read"]
    assert [(one["ids"], one["failed"]) for one in reads] == [([], True), ([2, 3], False), ([2, 3, 4], False)]


STEPS = st.one_of(
    st.tuples(st.just("grow"), st.sampled_from([1, 3, 40, 499, 500, 501])),
    st.tuples(st.sampled_from(["read", "back", "both"]), st.just(0)),
    st.tuples(st.just("fails"), st.booleans()),
)


@given(step=st.integers(1, 50), steps=st.lists(STEPS, max_size=15))
def test_the_known_lines_have_no_gap_and_end_with_the_newest(
    read: Ask, step: int, steps: list[tuple[str, Any]]
) -> None:
    total, fails = 0, False
    for (what, how), found in zip(steps, read(step, *steps), strict=True):
        total, fails = total + (how if what == "grow" else 0), how if what == "fails" else fails
        ids = found["ids"]
        assert ids == list(range(ids[0], ids[-1] + 1)) if ids else True
        if what == "read" and not fails:
            assert ids[-1:] == ([total] if total else [])
        if found["complete"] and ids:
            assert ids[0] == 1


@given(before=LINES, after=LINES)
def test_every_line_of_a_patch_is_read_with_its_numbers(in_node: Ask, before: list[str], after: list[str]) -> None:
    patch = "\n".join(difflib.unified_diff(before, after, "a/f", "b/f", lineterm="")) + "\n"
    hunks = in_node(CHANGES)({"patch": patch})
    for old, new in hunks:
        assert all(before[number - 1] == text for number, text in old)
        assert all(after[number - 1] == text for number, text in new)
    changed = [op for op in difflib.SequenceMatcher(None, before, after).get_opcodes() if op[0] != "equal"]
    found = {number for _, new in hunks for number, _ in new}
    assert {n + 1 for _, _, _, start, end in changed for n in range(start, end)} <= found


def test_the_end_of_a_file_without_a_line_feed_is_no_line_of_it(in_node: Ask) -> None:
    patch = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    assert in_node(CHANGES)({"patch": patch}) == [[[[1, "a"]], [[1, "b"]]]]


@given(steps=st.lists(st.integers(0, 5), max_size=8), size=st.integers(6, 9))
def test_a_log_that_grows_less_than_its_tail_is_followed_whole(in_node: Ask, steps: list[int], size: int) -> None:
    lines: list[str] = []
    tails = []
    for step in steps:
        lines += [f"line {len(lines) + n}" for n in range(step)]
        tails.append(lines[-size:])
    assert in_node(CHANGES)({"tails": tails}) == lines


def test_a_log_that_grew_past_its_tail_begins_anew(in_node: Ask) -> None:
    assert in_node(CHANGES)({"tails": [["a", "b"], ["y", "z"]]}) == ["y", "z"]
