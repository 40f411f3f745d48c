"""What a person is shown of a notebook's outputs: pictures that are pictures, and text."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from workbench.rules.notebook_diff import UNREADABLE, cell_at
from workbench.rules.notebook_outputs import MOST_PIXELS, Allowance, changed_outputs

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 3)
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 3, 4) + b"\x03"
Cell = dict[str, Any]


def cell(name: str, *outputs: dict[str, Any], **metadata: Any) -> Cell:
    code = {"cell_type": "code", "id": name, "metadata": metadata, "source": ["draw()\n", "show()\n"]}
    return code | {"execution_count": None, "outputs": list(outputs)}


def notebook(*cells: Cell, number: int = 4) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": number, "nbformat_minor": 5}, indent=1)


def data(**types: Any) -> dict[str, Any]:
    named = {name.replace("_", "/", 1): value for name, value in types.items()}
    return {"output_type": "display_data", "metadata": {}, "data": named}


def as_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def after(*outputs: dict[str, Any], each: int = 1_000, left: int = 10_000) -> list[tuple[str, str]]:
    """The form and the text of what is shown of outputs that were added."""
    (changed,) = changed_outputs(notebook(cell("a")), notebook(cell("a", *outputs)), Allowance(each, left))
    assert changed.before == []
    return [(output.form, output.text) for output in changed.after]


@pytest.mark.parametrize("content", [PNG, JPEG], ids=["png", "jpeg"])
def test_a_picture_is_shown_as_what_its_bytes_are(content: bytes) -> None:
    before, now = notebook(cell("a")), notebook(cell("a", data(image_png=[as_base64(content), "\n"])))
    (changed,) = changed_outputs(before, now, Allowance(1_000, 10_000))
    assert [(output.media_type, output.data) for output in changed.after] == [
        ("image/png" if content is PNG else "image/jpeg", as_base64(content))
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='run()'/>",
        b"GIF89a" + bytes(20),
        b"",
        PNG[:16] + struct.pack(">II", MOST_PIXELS, 2),
        PNG[:16] + bytes(8),
        JPEG[:9],
        PNG + bytes(1_000),
    ],
    ids=["svg", "gif", "empty", "too many pixels", "no pixels", "no size", "too large"],
)
def test_what_is_no_such_picture_or_too_large_is_left_out_and_said(content: bytes) -> None:
    ((form, text),) = after(data(image_png=as_base64(content)))
    assert (form, text.startswith("A picture ")) == ("left_out", True)


def test_pictures_are_shown_as_far_as_they_are_allowed_together() -> None:
    picture = data(image_png=as_base64(PNG))
    assert [form for form, _ in after(picture, picture, picture, left=2 * len(PNG))] == [
        "picture",
        "picture",
        "left_out",
    ]


def test_of_what_a_page_would_run_only_the_text_is_shown() -> None:
    outputs = [
        data(text_html="<script>run()</script>", text_plain=["a ", "table"]),
        data(**{"application_javascript": "run()"}),
        {"output_type": "stream", "name": "stdout", "text": "\x1b[31mred\x1b[0m\n"},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["one", "two"]},
        {"output_type": "display_data", "metadata": {}, "data": []},
    ]
    assert after(*outputs) == [
        ("text", "a table\nNot shown: text/html."),
        ("left_out", "Not shown: application/javascript."),
        ("text", "red"),
        ("text", "one\ntwo"),
        ("left_out", "An output of an unknown kind is not shown."),
    ]


def test_cells_without_other_outputs_are_left_out_and_stale_ones_are_marked() -> None:
    shown = {"output_type": "stream", "name": "stdout", "text": "a"}
    old = notebook(cell("a", shown), cell("gone", shown), cell("c"))
    new = notebook(cell("new"), cell("a", shown), cell("c", shown, workbench={"stale_outputs": True}))
    changed = changed_outputs(old, new, Allowance(0, 0))
    assert [(one.old_place, one.place, one.stale) for one in changed] == [(2, None, False), (3, 3, True)]


@pytest.mark.parametrize("text", ["", "[]", "{}", notebook(number=3), '{"cells": 1, "nbformat": 4}', "[" * 5_000])
def test_what_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(UNREADABLE):
        changed_outputs(notebook(), text, Allowance(0, 0))
    assert cell_at(text, 1) is None


def test_a_line_is_of_the_cell_whose_source_has_it() -> None:
    text = notebook(cell("a"), cell("b"))
    lines = text.split("\n")
    draws = [number for number, line in enumerate(lines, 1) if "draw()" in line]
    assert [cell_at(text, number) for number in draws] == ["cell 1 (id a), code", "cell 2 (id b), code"]
    assert [cell_at(text, number) for number in (1, draws[1] + 2, len(lines))] == [None, None, None]
