"""What the panel makes of patches and of the ends of logs: its own code in Node."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.node
Ask = Callable[..., Any]
LINES = st.lists(st.sampled_from(["a", "b", "", "- x", "+ y", "@@ z", "\\ w", "--- q"]), max_size=12)
OFTEN = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """The panel's modules, asked with keywords."""
    if (node_js := shutil.which("node")) is None:
        pytest.skip("node is not installed; the panel's code is tested in it")
    script = Path(__file__).with_name("read_changes.mjs")
    with subprocess.Popen([node_js, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        pipe_in, pipe_out = process.stdin, process.stdout
        assert pipe_in is not None
        assert pipe_out is not None

        def asked(**question: Any) -> Any:
            pipe_in.write(json.dumps(question) + "\n")
            pipe_in.flush()
            return json.loads(pipe_out.readline())

        yield asked
        pipe_in.close()


@OFTEN
@given(before=LINES, after=LINES)
def test_every_line_of_a_patch_is_read_with_its_numbers(ask: Ask, before: list[str], after: list[str]) -> None:
    patch = "\n".join(difflib.unified_diff(before, after, "a/f", "b/f", lineterm="")) + "\n"
    for old, new in ask(patch=patch):
        assert all(before[number - 1] == text for number, text in old)
        assert all(after[number - 1] == text for number, text in new)
    changed = [op for op in difflib.SequenceMatcher(None, before, after).get_opcodes() if op[0] != "equal"]
    found = {number for _, new in ask(patch=patch) for number, _ in new}
    assert {n + 1 for _, _, _, start, end in changed for n in range(start, end)} <= found


def test_the_end_of_a_file_without_a_line_feed_is_no_line_of_it(ask: Ask) -> None:
    patch = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    assert ask(patch=patch) == [[[[1, "a"]], [[1, "b"]]]]


@OFTEN
@given(steps=st.lists(st.integers(0, 5), max_size=8), size=st.integers(6, 9))
def test_a_log_that_grows_less_than_its_tail_is_followed_whole(ask: Ask, steps: list[int], size: int) -> None:
    lines: list[str] = []
    tails = []
    for step in steps:
        lines += [f"line {len(lines) + n}" for n in range(step)]
        tails.append(lines[-size:])
    assert ask(tails=tails) == lines


def test_a_log_that_grew_past_its_tail_begins_anew(ask: Ask) -> None:
    assert ask(tails=[["a", "b"], ["y", "z"]]) == ["y", "z"]
