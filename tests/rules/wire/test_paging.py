"""Cursors are decoded as they were encoded, and pages add up to the whole list despite changes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.rules.wire import paging

INTEGERS = st.integers(-(2**63), 2**63 - 1)
KEYS = st.lists(INTEGERS | st.text(max_size=20), min_size=1, max_size=3)
ROWS = st.lists(st.tuples(st.integers(0, 5), st.text("abc", min_size=1, max_size=3)), unique=True, max_size=30)


@given(KEYS)
def test_a_cursor_gives_back_the_key_it_was_made_of(key: list[int | str]) -> None:
    cursor = paging.encode(key)
    assert paging.decode(cursor, *map(type, key)) == tuple(key)
    assert cursor.isascii()
    assert cursor.replace("-", "").replace("_", "").isalnum()


@given(KEYS, st.data())
def test_a_cursor_that_was_changed_anywhere_is_refused(key: list[int | str], data: st.DataObject) -> None:
    cursor = paging.encode(key)
    at = data.draw(st.integers(0, len(cursor) - 1))
    char = data.draw(st.sampled_from("ABCabc019-_=+/ é").filter(lambda char: char != cursor[at]))
    refused("BAD_CURSOR", paging.decode, cursor[:at] + char + cursor[at + 1 :], *map(type, key))


@given(st.text(max_size=60))
def test_an_invalid_cursor_is_refused(text: str) -> None:
    refused("BAD_CURSOR", paging.decode, text, int, str)


@pytest.mark.parametrize(
    ("key", "types"),
    [([1], (int, str)), ([1, "a"], (int,)), (["a", 1], (int, str)), ([1, 2], (int, str)), ([1], ()), ([], (int,))],
)
def test_the_cursor_of_another_list_is_refused(key: list[int | str], types: tuple[Any, ...]) -> None:
    refused("BAD_CURSOR", paging.decode, paging.encode(key), *types)


@pytest.mark.parametrize("body", ["[9223372036854775808]", "[true]", "[1.0]", "[[1]]", "[ 1]", '{"a":1}', "1", "["])
def test_a_forged_cursor_holds_nothing_a_database_could_not_compare(body: str) -> None:
    forged = base64.urlsafe_b64encode(paging._digest(body.encode()) + body.encode()).decode().rstrip("=")
    refused("BAD_CURSOR", paging.decode, forged, int)


@given(ROWS, st.integers(1, 7))
def test_all_pages_add_up_to_the_list(rows: list[tuple[int, str]], limit: int) -> None:
    whole = [{"created_at": at, "id": name} for at, name in sorted(rows)]
    seen: list[dict[str, Any]] = []
    cursor = None
    while True:
        start = paging.after(cursor)
        rest = [row for row in whole if (row["created_at"], row["id"]) > (start["after_at"], start["after_id"])]
        page, cursor = paging.cut(rest[: limit + 1], limit, "created_at", "id")
        seen += page
        assert cursor is None or len(page) == limit
        if cursor is None:
            break
    assert seen == whole


def test_a_page_that_is_just_full_is_the_last_one() -> None:
    rows = [{"number": 2}, {"number": 1}]
    assert paging.cut(rows, 2, "number") == (rows, None)
    page, cursor = paging.cut(rows, 1, "number")
    assert (page, paging.decode(cursor or "", int)) == ([{"number": 2}], (2,))


def test_a_cursor_is_encoded_json() -> None:
    whole = base64.urlsafe_b64decode(paging.encode([7, "a"]) + "==")
    assert json.loads(whole[6:]) == [7, "a"]
