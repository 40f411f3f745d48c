"""The repr of results of `wb.call`: short, inert and without tokens; as data, a result is a dict."""

from __future__ import annotations

import json
import pickle
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from IPython.lib.pretty import pretty

from kernel_ext.result import COLUMNS, LETTERS, ROWS, Result

LISTED = Result(
    tasks=[
        {"id": 1, "title": "Read", "dependencies": [], "persona_id": "tester"},
        {"id": 2, "title": "Write", "dependencies": [1], "persona_id": "tester"},
    ],
    next_cursor=None,
    total=2,
)


def test_a_list_is_a_table_below_the_other_facts_and_html_has_the_same_cells_escaped() -> None:
    assert pretty(LISTED).splitlines() == [
        "total  2",
        "",
        "tasks: 2",
        "id  title  dependencies  persona id",
        "1   Read                 tester",
        "2   Write  1             tester",
    ]
    assert str(LISTED) == pretty(LISTED)
    one = Result(agent_id="ada", reads=True, grant={"tool": "write", "team": None}, tools=["read", "write"])
    assert pretty(one).splitlines() == [
        "agent id  ada",
        "reads     yes",
        "grant     tool: write, team: none",
        "tools     read, write",
    ]
    shown = Result(name="<b>", items=[{"title": "<script>"}])
    page = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    assert [cell.text for cell in page.iter("td")] == ["name", "<b>", "<script>"]


def test_a_token_is_masked_when_shown_and_whole_when_read() -> None:
    shown = Result(token="wba_abc-123", text="curl -H 'Bearer wba_abc-123'", agents=[{"token": "wbo_abc_123"}])
    for text in (pretty(shown), str(shown), shown._repr_html_()):
        assert "abc" not in text
        assert "wba_…" in text
    assert shown["token"] == "wba_abc-123"


def test_a_long_result_is_cut_with_a_note() -> None:
    items = [{f"f{n}": "x" * 1_000 for n in range(COLUMNS + 2)} for _ in range(ROWS + 5)]
    lines = pretty(Result(items=items)).splitlines()
    assert len(lines) == 1 + 1 + ROWS + 1
    assert lines[-1] == f"… and 5 more; not shown: f{COLUMNS}, f{COLUMNS + 1}"
    assert max(map(len, lines)) <= COLUMNS * (LETTERS + 2)


def test_a_small_result_is_shown_and_a_nested_one_is_written_as_a_dict() -> None:
    for empty in ({}, {"ok": True}, {"tasks": []}, {"tasks": [{}]}):
        assert isinstance(pretty(Result(empty)), str)
    assert pretty([Result(a=1)]) == "[{'a': 1}]"
    assert repr(Result(a=1)) == "{'a': 1}"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_a_result_shows_any_data_and_equals_it(data: dict[str, Any]) -> None:
    result = Result(data)
    assert (result, json.dumps(result), pickle.loads(pickle.dumps(result))) == (data, json.dumps(data), data)
    assert "\x1b" not in pretty(result) + result._repr_html_()
