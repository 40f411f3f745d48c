"""What a person types is text to be found, whatever it looks like to a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.search import like_pattern, words


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    """A full-text index, and a table to look through."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')")
    yield db
    db.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("foo", '"foo"'),
        ("foo bar", '"foo" "bar"'),
        ("  foo\tbar\n", '"foo" "bar"'),
        ('say "hello"', '"say" "hello"'),
        ("NOT foo OR -bar*", '"NOT" "foo" "OR" "-bar*"'),
        ("title:foo (x)", '"title:foo" "(x)"'),
        ("a\0b", '"a" "b"'),
        ("foo - bar", '"foo" "bar"'),
        ("", None),
        (" ?! ", None),
        (None, None),
    ],
)
def test_each_word_is_quoted_and_what_is_no_word_is_left_out(text: str | None, query: str | None) -> None:
    assert words(text) == query


@given(text=st.text(max_size=40) | st.text('ab"*:()-^+{}\0 NEARANDOT', max_size=40))
def test_no_text_is_taken_for_syntax(index: sqlite3.Connection, text: str) -> None:
    if query := words(text):
        index.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (query,)).fetchall()


@given(text=st.text("ab!%_ äÄ'\"\\", min_size=1, max_size=12), start=st.integers(0, 11), end=st.integers(1, 12))
def test_a_part_of_a_text_is_found_in_it(index: sqlite3.Connection, text: str, start: int, end: int) -> None:
    pattern = like_pattern(text[start:end])
    if pattern is not None:
        assert index.execute("SELECT ? LIKE ? ESCAPE '!'", (text, pattern)).fetchone() == (1,)


@pytest.mark.parametrize(("text", "pattern"), [("a%", "%a!%%"), ("_!", "%!_!!%"), (" x ", "%x%"), ("  ", None)])
def test_wildcards_of_a_text_stand_for_themselves(text: str, pattern: str | None) -> None:
    assert like_pattern(text) == pattern
