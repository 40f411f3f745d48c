"""Tables for people: aligned in a terminal, escaped in a notebook."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from workbench.present.tables import CellOutput, StateCell, Table

ITEMS = [{"id": 1, "name": "Ada", "ok": True, "more": 7}, {"id": 20, "name": None, "ok": False}]
COLUMNS = {"id": "ID", "name": "Name", "ok": "Fine?"}


def test_text_is_aligned_and_says_yes_no_and_nothing() -> None:
    table = Table.of(ITEMS, COLUMNS, "None yet.")
    assert table.text().split("\n") == ["ID  Name  Fine?", "1   Ada   yes", "20        no"]
    assert repr(table) == table.text()
    assert table.data == ITEMS
    headless = Table(["", ""], [["id", 1]])
    assert (headless.text(), "<th " in headless.html()) == ("id  1", False)


def test_html_has_the_same_cells_and_escapes_them() -> None:
    table = Table.of([{"a": "<script>&\"'"}], {"a": "<b>"}, "None yet.")
    assert "<script>" not in table.html()
    assert table._repr_html_() == table.html()
    page = ElementTree.fromstring(table.html())
    assert [cell.text for cell in page.iter("th")] == ["<b>"]
    assert [cell.text for cell in page.iter("td")] == ["<script>&\"'"]


def test_times_states_and_names_with_hyphens_stay_on_one_line() -> None:
    cells = ["2026-11-23T15:00:00Z", StateCell("failed"), "report-implementer", "01a203b3-e63a-7980-88dc-6bcedf7908dc"]
    table = Table(["a"], [[cell] for cell in (*cells, "Read them", "well-known words", "a-" * 40, "plain", 7, None)])
    styles = [cell.attrib["style"] for cell in ElementTree.fromstring(table.html()).iter("td")]
    assert ["nowrap" in style for style in styles] == [True] * 4 + [False] * 6


def test_a_long_text_is_wider_than_a_word_beside_columns_that_do_not_wrap() -> None:
    table = Table(["title"], [["Compare the bill shapes of the three species of penguins"], ["Report"]])
    styles = [cell.attrib["style"] for cell in ElementTree.fromstring(table.html()).iter("td")]
    assert ["min-width" in style for style in styles] == [True, False]


def test_an_empty_table_says_what_it_would_hold_and_may_have_other_data() -> None:
    table = Table.of([], COLUMNS, "None <yet>.")
    assert table.text() == "None <yet>."
    assert table.html() == "<p><em>None &lt;yet&gt;.</em></p>"
    assert Table([], []).text() == "Nothing here yet."
    assert [Table.of([], COLUMNS, "None.", data=data).data for data in ({"x": 1}, [])] == [{"x": 1}, []]


def test_the_lead_of_a_table_stands_above_it_or_alone_without_rows() -> None:
    table = Table(["a"], [[1]], lead="All <is>\nwell", note="the end")
    assert table.text().split("\n") == ["All <is>", "well", "a", "1", "the end"]
    assert table.html().startswith('<p style="white-space: pre-line">All &lt;is&gt;\nwell</p><table>')
    assert Table(["a"], [], "", lead="All is well").text() == "All is well"
    assert Table(["a"], [], "", lead="All is well").html() == '<p style="white-space: pre-line">All is well</p>'
    assert Table(["a"], [], "None.", lead="All is well").text() == "All is well\nNone."


def test_a_state_is_a_word_with_a_mark_in_html() -> None:
    table = Table(
        ["state"], [[StateCell.of("in_progress")], [StateCell.of("pending", blocked=True)], [StateCell("odd <one>")]]
    )
    assert table.text().split("\n") == ["state", "in progress", "blocked", "odd <one>"]
    for said in ("◑</span> in progress", "◌</span> blocked", ">odd &lt;one&gt;</td>"):
        assert said in table.html()


@pytest.mark.parametrize("name", ["Ada", "日本", "e\u0301te\u0301", "👍🏽 fine", "ｗｉｄｅ", "اسم"])
def test_columns_are_aligned_whatever_script_a_cell_is_in(name: str) -> None:
    lines = Table(["name", "state"], [[name, "here"], ["the longest", "here"]]).text().split("\n")
    assert {wcswidth(line.removesuffix("here").removesuffix("state")) for line in lines} == {len("the longest") + 2}


def test_text_is_aligned_to_the_left_and_numbers_to_the_right() -> None:
    table = Table(["Name", "Size", "Share", "Fine?", "Mixed"], [["Ada", 7, 0.5, True, 1], ["Bob", None, 2, False, "x"]])
    page = ElementTree.fromstring(table.html())
    sides = ["left", "right", "right", "left", "left"]
    for row in page.iter("tr"):
        assert [cell.attrib["style"] for cell in row] == [f"text-align: {side}" for side in sides]


HALF_PAST = datetime(2026, 7, 1, 10, 20, 30, tzinfo=UTC)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This computer is in Berlin."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("at", ["2026-07-01T10:20:30.123456Z", "2026-07-01T10:20:30Z", HALF_PAST])
def test_a_time_is_shown_in_local_time_with_its_zone_in_the_title(in_berlin: None, at: object) -> None:
    table = Table(["at"], [[at]])
    assert table.text().split("\n") == ["at", "2026-07-01 12:20:30"]
    [shown] = ElementTree.fromstring(table.html()).iter("time")
    assert shown.text == "2026-07-01 12:20:30"
    assert datetime.fromisoformat(shown.attrib["title"]).replace(microsecond=0) == HALF_PAST
    assert shown.attrib["title"].endswith("+02:00")


@pytest.mark.parametrize(
    "text",
    ["2026-13-01T10:20:30Z", "0001-01-01T00:00:00Z", "2026-07-01", "at 2026-07-01T10:20:30Z", "2026-07-01T10:20:30"],
)
def test_text_that_only_looks_like_a_time_is_shown_unchanged(in_berlin: None, text: str) -> None:
    assert Table(["at"], [[text]]).text() == f"at\n{text}"


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
    cells = [html.unescape(part.partition(">")[2].partition("</td>")[0]) for part in table.html().split("<td")[1:]]
    lines = table.text().split("\n")[1:]
    for left, right, line in zip(cells[::2], cells[1::2], lines, strict=True):
        assert line.startswith(left)
        assert line[len(left) :].strip() == right


def test_output_begins_with_its_first_line_and_folds_what_comes_after_five_more() -> None:
    text = "It failed: no `x`\n" + "\n".join(f"  line {number}" for number in range(8))
    table = Table(["attempt", "error"], [[1, CellOutput(text)]])
    lines = [f"           line {number}" for number in range(5)]
    assert table.text().split("\n")[1:] == ["1        It failed: no `x`", *lines, "         … 3 more lines: --json"]
    page = ElementTree.fromstring(f"<all>{table.html()}</all>")
    assert [one.text for one in page.iter("pre")] == [
        "\n".join(f"  line {number}" for number in numbers) for numbers in (range(5), range(5, 8))
    ]
    assert "".join(next(page.iter("details")).itertext()).startswith("3 more lines")
    assert "It failed: no <code>x</code>" in table.html()
    assert max(map(len, CellOutput("a\n" + "b" * 20_000).text())) == CellOutput.WIDTH
