"""Comments on lines: which they are about, where those are now, how they read; and differences of files as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.given import refused
from workbench.rules.reviews import as_text, locate, place_of, quote
from workbench.rules.wire.patch import patch_text

LINES = ["a", "b", "c", "b"]


@dataclass
class Comment:
    path: str
    line: int
    end_line: int | None
    text: str


@pytest.mark.parametrize(("first", "last", "found"), [(1, 1, ["a"]), (2, 3, ["b", "c"]), (1, 4, LINES), (4, 4, ["b"])])
def test_the_lines_of_a_comment_count_from_one_and_include_the_last(first: int, last: int, found: list[str]) -> None:
    assert quote("m.py", LINES, first, last) == found


@pytest.mark.parametrize(
    ("lines", "first", "last", "why"),
    [
        (LINES, 0, 1, "There are no lines m.py:0-1: the file has 4 lines."),
        (LINES, 4, 5, "There are no lines m.py:4-5: the file has 4 lines."),
        (LINES, 3, 2, "There are no lines m.py:3-2: the file has 4 lines."),
        (None, 1, 1, "There is no text file m.py at this commit. get_worktree_diff lists them."),
    ],
)
def test_lines_that_are_not_there_are_refused(lines: list[str] | None, first: int, last: int, why: str) -> None:
    assert refused("LINES_NOT_FOUND", quote, "m.py", lines, first, last).message == why


@pytest.mark.parametrize(
    ("lines", "quoted", "first", "now"),
    [
        (LINES, ["b"], 1, 2),
        (LINES, ["b"], 2, 2),
        (LINES, ["b"], 3, 2),
        (LINES, ["b"], 4, 4),
        (LINES, ["b"], 9, 4),
        (LINES, ["c", "b"], 1, 3),
        (LINES, LINES, 2, 1),
        (LINES, ["b", "b"], 1, None),
        (LINES, [*LINES, "e"], 1, None),
        (None, ["a"], 1, None),
    ],
)
def test_lines_are_found_as_near_as_possible_to_where_they_were(
    lines: list[str] | None, quoted: list[str], first: int, now: int | None
) -> None:
    assert locate(lines, quoted, first) == now


def test_comments_read_as_a_list_below_the_note() -> None:
    comments = [Comment("m.py", 3, None, " short \n"), Comment("n.py", 1, 2, "two\nlines"), Comment("o.py", 4, 4, "x")]
    listed = "- m.py:3: short\n- n.py:1-2: two\n  lines\n- o.py:4: x"
    assert as_text("Please.", comments, [""] * len(comments)) == f"Please.\n\n{listed}"
    assert (as_text("", comments, [""] * len(comments)), as_text("Please.", [], []), as_text("", [], [])) == (
        listed,
        "Please.",
        "",
    )
    assert [place_of("m.py", 3, last) for last in (None, 3, 5)] == ["m.py:3", "m.py:3", "m.py:3-5"]


def test_a_file_without_a_patch_says_why() -> None:
    def file(patch: str, **more: bool) -> dict[str, Any]:
        return {"patch": patch, "status": "M", "path": "m.bin", "truncated": False, "binary": False, **more}

    files = [file("+a\n"), file("", truncated=True, binary=True), file("", binary=True), file(""), file("-b\n\n")]
    shown = "+a\nM m.bin (too long to show)\nM m.bin (binary)\nM m.bin (nothing to show)\n-b"
    assert (patch_text(files), patch_text([])) == (shown, "")
