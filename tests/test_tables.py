"""Tables for people: aligned in a terminal, escaped in a notebook."""

from __future__ import annotations

import html
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from workbench.tables import State, Table

ITEMS = [{"id": 1, "name": "Ada", "ok": True, "more": 7}, {"id": 20, "name": None, "ok": False}]
COLUMNS = {"id": "ID", "name": "Name", "ok": "Fine?"}


def test_text_is_aligned_and_says_yes_no_and_nothing() -> None:
    table = Table.of(ITEMS, COLUMNS, "None yet.")
    assert table.text().split("\n") == ["ID  Name  Fine?", "1   Ada   yes", "20        no"]
    assert repr(table) == table.text()
    assert table.data == ITEMS


def test_html_has_the_same_cells_and_escapes_them() -> None:
    table = Table.of([{"a": "<script>&\"'"}], {"a": "<b>"}, "None yet.")
    assert "<script>" not in table.html()
    assert table._repr_html_() == table.html()
    page = ElementTree.fromstring(table.html())
    assert [cell.text for cell in page.iter("th")] == ["<b>"]
    assert [cell.text for cell in page.iter("td")] == ["<script>&\"'"]


def test_an_empty_table_says_what_it_would_hold() -> None:
    table = Table.of([], COLUMNS, "None <yet>.")
    assert table.text() == "None <yet>."
    assert table.html() == "<p><em>None &lt;yet&gt;.</em></p>"
    assert Table([], []).text() == "Nothing here yet."


def test_what_leads_a_table_stands_above_it_and_alone_where_there_are_no_rows() -> None:
    table = Table(["a"], [[1]], lead="All <is>\nwell", note="the end")
    assert table.text().split("\n") == ["All <is>", "well", "a", "1", "the end"]
    assert table.html().startswith('<p style="white-space: pre-line">All &lt;is&gt;\nwell</p><table>')
    assert Table(["a"], [], "", lead="All is well").text() == "All is well"
    assert Table(["a"], [], "", lead="All is well").html() == '<p style="white-space: pre-line">All is well</p>'
    assert Table(["a"], [], "None.", lead="All is well").text() == "All is well\nNone."


def test_the_data_behind_a_table_may_be_more_than_its_rows() -> None:
    assert Table.of([], COLUMNS, "None.", data={"x": 1}).data == {"x": 1}
    assert Table.of([], COLUMNS, "None.", data=[]).data == []


def test_a_state_is_a_word_with_a_mark_in_html() -> None:
    table = Table(["state"], [[State.of("in_progress")], [State.of("pending", blocked=True)], [State("odd <one>")]])
    assert table.text().split("\n") == ["state", "in progress", "blocked", "odd <one>"]
    for said in ("◑</span> in progress", "◌</span> blocked", "<td>odd &lt;one&gt;</td>"):
        assert said in table.html()


@pytest.mark.parametrize("name", ["Ada", "日本", "e\u0301te\u0301", "👍🏽 fine", "ｗｉｄｅ", "اسم"])
def test_columns_are_aligned_whatever_script_a_cell_is_in(name: str) -> None:
    lines = Table(["name", "state"], [[name, "here"], ["the longest", "here"]]).text().split("\n")
    assert {wcswidth(line.removesuffix("here").removesuffix("state")) for line in lines} == {len("the longest") + 2}


CELLS = st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=("Cs",)))
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=5)


@given(ROWS)
def test_a_row_is_one_line_whatever_its_cells_hold(rows: list[list[object]]) -> None:
    lines = Table(["A", "B"], rows).text().split("\n")
    assert len(lines) == len(rows) + 1
    assert all(line.splitlines() in ([line], []) for line in lines)


@given(ROWS)
def test_html_shows_what_the_text_shows(rows: list[list[object]]) -> None:
    table = Table(["A", "B"], rows)
    cells = [html.unescape(part.partition("</td>")[0]) for part in table.html().split("<td>")[1:]]
    lines = table.text().split("\n")[1:]
    for left, right, line in zip(cells[::2], cells[1::2], lines, strict=True):
        assert line.startswith(left)
        assert line[len(left) :].strip() == right
