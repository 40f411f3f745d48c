"""Values of runs: numbers, series, conditions, the difference table; and how a file of one is shown."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.runs import values
from workbench.rules.runs.comparison import lines
from workbench.rules.runs.previews import CELL, COLUMNS, PICTURE_BYTES, ROWS, TEXT_BYTES, preview
from workbench.rules.runs.values import Point, as_number, points, spelled


@given(st.floats())
def test_every_number_survives_json(number: float) -> None:
    back = as_number(json.loads(json.dumps(spelled(number), allow_nan=False)))
    assert back is not None
    assert back == number or (math.isnan(back) and math.isnan(number))


def test_text_is_not_taken_for_a_number() -> None:
    assert as_number("nan") is as_number("0.5") is as_number(None) is None
    assert spelled("nan") == "nan"


def test_a_list_holds_the_values_of_consecutive_steps() -> None:
    expected = [Point("loss", 7, 0.5, None), Point("loss", 8, None, "NaN"), Point("note", 7, None, "warm")]
    assert points({"loss": [0.5, "NaN"], "note": "warm"}, 7) == expected
    assert [point.step for point in points({"loss": [1, 2]}, None)] == [None, None]


@pytest.mark.parametrize(
    ("text", "name", "relation", "value"),
    [
        ("loss<0.1", "loss", "<", 0.1),
        (" val/loss >= 1e-3 ", "val/loss", ">=", 0.001),
        ("accuracy == 1", "accuracy", "=", 1.0),
        ("f1 (macro)!=0", "f1 (macro)", "!=", 0.0),
        ("outcome=ok", "outcome", "=", "ok"),
        ("outcome != not ok", "outcome", "!=", "not ok"),
        ("loss=nan", "loss", "=", "NaN"),
    ],
)
def test_a_condition_is_a_name_a_relation_and_a_value(text: str, name: str, relation: str, value: Any) -> None:
    found = values.parse_condition(text)
    assert (found["name"], found["relation"]) == (name, relation)
    assert (found["number"] if found["text"] is None else found["text"]) == value
    assert (found["number"] is None) != (found["text"] is None)


def test_an_invalid_condition_is_refused_with_an_example() -> None:
    for text in ("loss", "<1", "loss<", "loss<low", "loss>nan", "a<b<3", "loss=>1", ""):
        refused("BAD_CONDITION", values.parse_condition, text)


@given(st.text())
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        found = values.parse_condition(text)
    except BadInput as error:
        assert error.code == "BAD_CONDITION"
    else:
        assert found["name"]


def test_the_difference_table_has_a_row_for_everything_that_any_run_has() -> None:
    one = {"parameters": {"lr": 0.1, "seed": 1, "fast": True}, "metrics": {"loss": 0.5}}
    other = {"parameters": {"seed": 1.0, "fast": 1, "layers": [1, 2]}, "git": {"dirty": None}}
    table = {(line.section, line.name): (line.values, line.differs) for line in lines([one, other])}
    assert table == {
        ("parameters", "lr"): ((0.1, None), True),
        ("parameters", "seed"): ((1, 1.0), False),
        ("parameters", "fast"): ((True, 1), True),
        ("parameters", "layers"): ((None, [1, 2]), True),
        ("metrics", "loss"): ((0.5, None), True),
        ("git", "dirty"): ((None, None), False),
    }


def test_packages_are_compared_one_by_one() -> None:
    one = {"environment": {"python": "3.11", "packages": {"numpy": "2.1", "torch": "2.6"}}}
    other = {"environment": {"python": "3.11", "packages": {"numpy": "2.2", "torch": "2.6", "jax": "0.5"}}}
    differing = [(line.name, line.values) for line in lines([one, other]) if line.differs]
    assert differing == [("packages.numpy", ("2.1", "2.2")), ("packages.jax", (None, "0.5"))]


def test_a_swept_parameter_is_not_repeated_in_the_environment() -> None:
    runs = [
        {"parameters": {"persona": name, "seed": 1}, "environment": {"persona": name, "seed": 2}}
        for name in ("reviewer", "implementer")
    ]
    rows = [(line.section, line.name) for line in lines(runs)]
    assert rows == [("parameters", "persona"), ("parameters", "seed"), ("environment", "seed")]


# Files

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
def test_the_form_of_a_preview_comes_from_the_bytes(name: str, content: bytes, form: str) -> None:
    assert preview(name, "application/octet-stream", content, len(content)).form == form


def test_a_table_has_its_first_rows_under_their_names() -> None:
    lines = ["step,loss", *(f'{step},"1,{step}"' for step in range(500))]
    content = "\n".join(lines).encode()
    found = preview("loss.csv", "text/csv", content, len(content))
    assert (found.columns, found.rows[1], len(found.rows), found.cut) == (["step", "loss"], ["1", "1,1"], ROWS, True)


def test_a_wide_or_long_preview_is_cut() -> None:
    content = (",".join(["x" * 2 * CELL] * 2 * COLUMNS) + "\n").encode() * 2
    found = preview("wide.csv", "text/csv", content[:TEXT_BYTES], len(content))
    assert (len(found.columns), len(found.columns[0]), found.cut) == (COLUMNS, CELL, True)


def test_a_preview_cuts_text_at_a_character_and_omits_a_large_picture() -> None:
    content = "é".encode() * TEXT_BYTES
    found = preview("long.txt", "text/plain", b"x" + content, len(content) + 1)
    assert found.text == "x" + "é" * ((TEXT_BYTES - 1) // 2)
    assert found.cut
    assert preview("large.png", "image/png", PNG, PICTURE_BYTES + 1).form == "file", "it is only named"


@given(st.binary(max_size=300), st.sampled_from(["a.csv", "a.json", "a.md", "a.tsv", "a", "a.png"]))
def test_any_bytes_can_be_shown(content: bytes, name: str) -> None:
    found = preview(name, "text/plain", content, len(content))
    assert found.form in ("picture", "table", "markdown", "json", "text", "file")
    if found.form == "json":
        assert found.text is not None
        assert json.loads(found.text) == json.loads(content)


def test_an_odd_table_is_padded_or_shown_as_text() -> None:
    ragged = preview("x.csv", "text/csv", b"a,b\n1\n\n1,2,3\n", 20)
    assert (ragged.columns, ragged.rows) == (["a", "b", ""], [["1", "", ""], ["1", "2", "3"]])
    assert preview("x.csv", "text/csv", b"a;b\n1,5;2\n", 20).rows == [["1,5", "2"]]
    assert preview("x.csv", "text/csv", b'a,b\n"1,2\n3,4\n', 20).form == "text"
