"""Text of workers is shown inert: nothing that is printed controls the terminal or reorders text."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.cli.output import Note, Text
from workbench.errors import NotFound
from workbench.present.graph import Graph
from workbench.present.inert import as_html, inert
from workbench.present.tables import Table, TablePage

ACTIVE = (
    "\x00\x07\x08\x0b\r\x1b\x7f\x9b\x9d\xad\u061c\u200b\u200e\u200f\u2028\u202a\u202e\u2066\u2069\ufeff\udcff\U000e0041"
)
ATTACKS = [
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1b]8;;http://localhost/\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31mred",
    "passed\rfailed",
    "a\x08b",
    "user\u202etxt.exe",
    "\u2066a\u2069",
]
TEXTS = st.text() | st.text(st.sampled_from(ACTIVE + "a\n\té"), max_size=20)


def is_active(character: str) -> bool:
    """Whether a character is a control, a surrogate, a line separator, or changes the direction of text."""
    if character in "\n\t\u200c\u200d":
        return False
    directed = unicodedata.bidirectional(character) in ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return directed or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in ACTIVE


def printed(text: str) -> list[str]:
    """The text as everything that the command line prints, and a notebook shows."""
    table = Table([text], [[text], [text]], lead=text, note=text)
    task = {"id": 1, "title": text, "status": "pending", "blocked": False}
    texts = [Note(text), Text(text), Text(f"+{text}", is_diff=True)]
    shown = [*texts, table, TablePage([(text, table)]), Table([], [], text), Graph([task], [])]
    pages = [found for one in shown for found in (repr(one), one._repr_html_())]
    error = NotFound("TASK_NOT_FOUND", text)
    return [*pages, str(error), *error._render_traceback_(), inert(text), as_html(text)]


@given(TEXTS)
def test_nothing_that_is_printed_holds_a_control_character(text: str) -> None:
    assert not [found for found in printed(text) if any(map(is_active, found))]


@given(st.text(st.characters(categories=("L", "M", "N", "P", "S", "Zs"), max_codepoint=0xDFFFF)))
def test_ordinary_text_in_any_script_is_shown_as_it_is(text: str) -> None:
    """Not what comes after it: the selectors there are as invisible as the tags beside them, and can hide text."""
    assert inert(text) == text


def test_lines_of_a_diff_are_coloured_in_a_cell_and_plain_in_a_terminal() -> None:
    diff = Text("@@ -1 +1 @@\n-<old>\n+new\n same", is_diff=True)
    lines = diff._repr_html_().removeprefix("<pre>").removesuffix("</pre>").split("\n")
    assert [line.partition(">")[2] for line in lines[:3]] == [
        "@@ -1 +1 @@</span>",
        "-&lt;old&gt;</span>",
        "+new</span>",
    ]
    assert len({line.partition(">")[0] for line in lines[:3]}) == 3
    assert (lines[3], repr(diff)) == (" same", diff.text)


@pytest.mark.parametrize("attack", ATTACKS)
def test_control_characters_are_shown_as_escapes(attack: str) -> None:
    shown = inert(attack)
    assert "\\" in shown
    assert not any(map(is_active, shown))
    assert Text(attack, raw=True).__repr__() == attack


def test_lines_and_tabs_and_joined_characters_stay() -> None:
    text = "a\n\tb 👩\u200d🔬 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert inert(text) == text


@given(st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_json_stays_json(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(inert(text)) == value
