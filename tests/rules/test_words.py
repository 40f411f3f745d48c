"""Typed words: literal text of a search, or a name; and texts in the words of a notebook."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.rules.naming import FORMER_NAMES, LONGEST, like_pattern, resolve_ref, similar, suggestion, words
from workbench.rules.wording import in_magics


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
def test_each_word_of_a_search_is_quoted_and_other_characters_are_omitted(text: str | None, query: str | None) -> None:
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


def test_wildcards_of_a_text_stand_for_themselves() -> None:
    assert [like_pattern(text) for text in ("a%", "_!", " x ", "  ")] == ["%a!%%", "%!_!!%", "%x%", None]


# Names

NAMES = ["claim_task", "create_task", "create_team", "list_tasks", "title", "agent_id"]


def test_an_id_goes_before_a_name_and_a_name_means_the_only_one_that_has_it() -> None:
    one, two, named_as_an_id = {"id": "1", "name": "x"}, {"id": "2", "name": "x"}, {"id": "3", "name": "1"}
    assert resolve_ref([named_as_an_id, one], "1", "thing") is one
    assert resolve_ref([two], "x", "thing") is two
    assert resolve_ref([], "x", "thing") is None
    error = refused("AMBIGUOUS_NAME", resolve_ref, [one, two], "x", "thing")
    assert error.message.startswith("More than one thing is named 'x'. ")
    assert error.message.endswith(" 1, 2.")
    assert error.details == {"candidates": ["1", "2"]}


@pytest.mark.parametrize(
    ("word", "meant"),
    {
        "clam_task": "claim_task, create_task or list_tasks",
        "titel": "title",
        "Title": "title",
        "agentid": "agent_id",
        "task_create": "create_task",
        "create-task": "create_task",
        "zzz": "",
        "": "",
        "create_task" * LONGEST: "",
    }.items(),
)
def test_the_nearest_names_are_suggested(word: str, meant: str) -> None:
    assert similar(word, NAMES) == meant
    assert similar(word, []) == ""


def test_a_former_name_is_answered_with_the_present_one() -> None:
    assert suggestion("send_message", ["send_images", "ask"]) == "It is now ask. "
    assert suggestion("send_message", ["send_images"]) == "Did you mean send_images? ", "the caller may not call it"
    assert FORMER_NAMES.keys().isdisjoint(FORMER_NAMES.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run `workbench koi join URL`, or `workbench tasks`", "Run `%workbench koi join URL`, or `%workbench tasks`"),
        ("`workbench serve`, `workbench demo` and `workbench worker` stay", None),
        ("`workbench` alone, workbench tasks and `workbench --help` stay", None),
    ],
)
def test_commands_of_the_shell_that_a_notebook_has_are_magics(text: str, said: str | None) -> None:
    assert in_magics(text) == (said or text)
