"""Values are kept, compared, folded and summed in the same way on every database, whatever its locale."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.contract.conftest import PUT, TEXTS
from workbench.store.base import Store
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

TEXTUAL = ["b", "B", "a", "_", "\u00e9", "\u00c9", "z", "", "\N{PENGUIN}", "%", "a b", "A_"]
IN_ORDER = Query("in_order", "SELECT text FROM notes ORDER BY text")
GREATEST = Query("greatest", "SELECT MAX(text) AS text FROM notes")
ABOVE = Query("above", "SELECT text FROM notes WHERE text > :text ORDER BY text DESC")
LIKE = Query("like", "SELECT text FROM notes WHERE LOWER(text) LIKE LOWER(:search) ESCAPE '!' ORDER BY text")
LISTED = Query("listed", "SELECT value FROM {{rows_of texts}} AS t ORDER BY value")
FIGURES = Query("figures", "SELECT SUM(n) AS total, AVG(n) AS mean, MAX(n) AS most, COUNT(*) AS notes FROM notes")
UNSET_FIRST = Query("unset_first", "SELECT CASE WHEN n > 1 THEN n END AS n FROM notes ORDER BY 1 NULLS FIRST")


async def noted(store: Store, *notes: tuple[str, int]) -> None:
    await store.write(lambda tx: tx.many(PUT, [{"text": text, "n": n} for text, n in notes]))


async def column(store: Store, query: Query, **values: Any) -> list[Any]:
    """The first column of what a query selects."""
    return [row[0] for row in await store.read(lambda tx: tx.tuples(query, values))]


async def test_text_is_ordered_and_compared_by_code_points(store: Store) -> None:
    await noted(store, *((text, 0) for text in TEXTUAL))
    assert await column(store, IN_ORDER) == sorted(TEXTUAL)
    assert await column(store, GREATEST) == [max(TEXTUAL)]
    assert await column(store, ABOVE, text="a") == sorted((text for text in TEXTUAL if text > "a"), reverse=True)
    assert await column(store, LISTED, texts='["b", "B", "a", "\u00e9", "_"]') == ["B", "_", "a", "b", "\u00e9"]


@pytest.mark.parametrize(
    ("search", "found"),
    [("a%", ["A_", "a", "a b"]), ("A!_", ["A_"]), ("\u00c9", ["\u00c9"]), ("\u00e9", ["\u00e9"]), ("!%", ["%"])],
)
async def test_a_search_ignores_the_case_of_ascii_letters_only(store: Store, search: str, found: list[str]) -> None:
    await noted(store, *((text, 0) for text in TEXTUAL))
    assert await column(store, LIKE, search=search) == found


async def test_numbers_are_whole_or_not_as_they_were(store: Store) -> None:
    assert await store.read(lambda tx: tx.tuples(FIGURES)) == [(None, None, None, 0)]
    await noted(store, ("a", 3), ("b", 2), ("c", 1))
    (figures,) = await store.read(lambda tx: tx.tuples(FIGURES))
    assert [(type(figure), figure) for figure in figures] == [(int, 6), (float, 2.0), (int, 3), (int, 3)]
    assert await column(store, UNSET_FIRST) == [None, 2, 3]
    await noted(store, ("d", 2**62), ("e", 2**61))
    assert (await column(store, FIGURES)) == [2**62 + 2**61 + 6]


async def test_text_of_any_characters_is_kept(store: Store) -> None:
    texts = ["\n\r\t", "\x01\x7f", "\N{COMBINING ACUTE ACCENT}", "\N{PENGUIN}" * 10_000, "\\x41 %s :n {{id}}"]
    await noted(store, *((text, 0) for text in texts))
    assert await column(store, TEXTS) == texts
