"""How a file is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.runs.previews import CELL, COLUMNS, PICTURE_BYTES, ROWS, TEXT_BYTES, preview

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("plot.png", PNG, "picture"),
        ("plot.txt", PNG, "picture"),  # whatever it is called
        ("plot.webp", b"RIFF\0\0\0\0WEBPVP8 ", "picture"),
        ("plot.png", b"<script>alert(1)</script>", "text"),
        ("plot.svg", b"<svg onload='alert(1)'/>", "text"),
        ("page.html", b"<!DOCTYPE html><script></script>", "text"),
        ("table.csv", b"a,b\n1,2\n", "table"),
        ("table.tsv", b"a\tb\n1\t2\n", "table"),
        ("notes.md", b"# Notes", "markdown"),
        ("result.json", b'{"a": 1}', "json"),
        ("broken.json", b'{"a": ', "text"),
        ("model.bin", b"\0\1\2", "file"),
        ("latin.txt", b"caf\xe9", "file"),
        ("empty.csv", b"", "text"),
    ],
)
def test_what_a_file_is_comes_from_its_bytes(name: str, content: bytes, form: str) -> None:
    assert preview(name, "application/octet-stream", content, len(content)).form == form


def test_a_table_has_its_first_rows_under_their_names() -> None:
    lines = ["step,loss", *(f'{step},"1,{step}"' for step in range(500))]
    content = "\n".join(lines).encode()
    found = preview("loss.csv", "text/csv", content, len(content))
    assert (found.columns, found.rows[1], len(found.rows), found.cut) == (["step", "loss"], ["1", "1,1"], ROWS, True)


def test_what_is_wide_or_long_is_cut() -> None:
    content = (",".join(["x" * 2 * CELL] * 2 * COLUMNS) + "\n").encode() * 2
    found = preview("wide.csv", "text/csv", content[:TEXT_BYTES], len(content))
    assert (len(found.columns), len(found.columns[0]), found.cut) == (COLUMNS, CELL, True)


def test_a_long_text_ends_with_a_whole_character_and_no_part_of_a_large_picture_is_shown() -> None:
    content = "é".encode() * TEXT_BYTES
    found = preview("long.txt", "text/plain", b"x" + content, len(content) + 1)
    assert found.text == "x" + "é" * ((TEXT_BYTES - 1) // 2)
    assert found.cut
    assert preview("large.png", "image/png", PNG, PICTURE_BYTES + 1).form == "file", "it is only named"


@given(st.binary(max_size=300), st.sampled_from(["a.csv", "a.json", "a.md", "a.tsv", "a", "a.png"]))
def test_any_bytes_are_shown_somehow(content: bytes, name: str) -> None:
    found = preview(name, "text/plain", content, len(content))
    assert found.form in ("picture", "table", "markdown", "json", "text", "file")
    if found.form == "json":
        assert found.text is not None
        assert json.loads(found.text) == json.loads(content)
