"""A change that fails fails alone, whatever it raises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.contract.conftest import (
    ADD,
    CLEAR,
    PUT,
    RAISE,
    WRONG,
    Change,
    Sorry,
    add,
    add_and_fail,
    added,
    count,
    texts,
    together,
)
from workbench.errors import Unavailable
from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after
from workbench.store.queries import Query

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too


async def test_a_change_that_raises_fails_alone_and_leaves_no_event(store: Store) -> None:
    outcome = await together(store, add("a"), add_and_fail("b"), add("c"), add_and_fail("d"), add("e"))
    assert [type(one) for one in outcome] == [int, Sorry, int, Sorry, int]
    assert [str(one) for one in outcome if isinstance(one, Sorry)] == ["b", "d"]
    assert await store.read(texts) == ["a", "c", "e"]
    assert await added(store) == ["a", "c", "e"]


async def test_a_change_that_raises_on_its_own_leaves_nothing(store: Store) -> None:
    with pytest.raises(Sorry, match="lost"):
        await store.write(add_and_fail("lost"))
    assert await store.read(texts) == await added(store) == []


async def test_a_change_sees_what_the_changes_before_it_in_the_batch_did(store: Store) -> None:
    outcome = await together(store, texts, add("a"), texts, add_and_fail("b"), texts, add("c"), texts)
    assert outcome[0::2] == [[], ["a"], ["a"], ["a", "c"]]


Steps = st.lists(
    st.tuples(st.sampled_from(["add", "fail", "wrong", "look", "raise"]), st.sampled_from("abcdefgh")), max_size=25
)


@given(steps=Steps)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_batch_does_what_its_changes_would_have_done_one_by_one(store: Store, steps: Any) -> None:
    """Any mixture of changes that succeed, raise, break a constraint or are bad SQL."""
    last = await store.read(lambda tx: max((e.id for e in events_after(tx, 0, 100_000)), default=0))
    await store.write(lambda tx: tx.run(CLEAR))
    model: list[str] = []
    expected: list[Any] = []
    changes: list[Change] = []
    for what, text in steps:
        doubled = text in model
        if what == "look":
            changes.append(texts)
            expected.append(list(model))
        elif what == "raise":
            changes.append(lambda tx: tx.run(RAISE))
            expected.append(len(model))
        elif what == "wrong":
            changes.append(lambda tx, text=text: (add(f"{text} wrong")(tx), tx.run(WRONG, text=text)))  # type: ignore[misc]
            expected.append("error")
        elif what == "fail":
            changes.append(add_and_fail(text))
            expected.append("error")
        else:
            changes.append(add(text))
            expected.append("error" if doubled else "id")
            model += [] if doubled else [text]

    outcome = await together(store, *changes)

    found = [
        "error" if isinstance(one, Exception) else "id" if change == "id" else one
        for one, change in zip(outcome, expected, strict=True)
    ]
    assert found == expected
    assert await store.read(texts) == model
    assert await added(store, after=last) == model


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration, MemoryError, AssertionError])
async def test_whatever_a_change_raises_its_neighbours_are_answered(store: Store, error: type[Exception]) -> None:
    def fail(tx: Tx) -> None:
        raise error("on purpose")

    outcome = await together(store, add("a"), fail, add("b"))
    assert isinstance(outcome[1], Exception)
    assert "on purpose" in repr(outcome[1]) + repr(outcome[1].__cause__)
    assert await store.read(texts) == await added(store) == ["a", "b"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_change_that_wants_to_end_the_program_does_not_end_the_writer(
    store: Store, error: type[BaseException]
) -> None:
    def leave(tx: Tx) -> None:
        add("lost")(tx)
        raise error

    with pytest.raises(error):
        await store.write(leave)
    await store.write(add("kept"))
    assert await store.read(texts) == await added(store) == ["kept"]


@pytest.mark.parametrize("error", [StopIteration, Sorry, KeyError])
async def test_what_a_question_raises_is_raised_to_whoever_asked(store: Store, error: type[Exception]) -> None:
    def question(tx: Reader) -> None:
        count(tx)
        raise error("on purpose")

    with pytest.raises(Exception, match=r"on purpose|StopIteration"):
        await store.read(question)
    assert await store.read(count) == 0


async def test_an_sql_error_is_raised_to_whoever_made_it_and_to_no_other(store: Store, backend: Any) -> None:
    outcome = await together(
        store,
        add("a"),
        lambda tx: tx.run(WRONG, text="b"),
        lambda tx: tx.run(PUT, text="b"),
        lambda tx: tx.run(PUT, text=None, n=1),
        lambda tx: tx.many(PUT, [{"text": "b", "n": 1}, {"text": "a", "n": 1}]),
        add("c"),
    )
    assert [isinstance(one, backend.sql_error) for one in outcome] == [False, True, True, True, True, False]
    assert await store.read(texts) == ["a", "c"]


async def test_an_sql_error_in_a_question_leaves_the_reader_usable(store: Store, backend: Any) -> None:
    await store.write(add("a"))
    for _ in range(5):
        with pytest.raises(backend.sql_error):
            await store.read(lambda tx: tx.all(Query("no", "SELECT * FROM nowhere")))
        assert await store.read(texts) == ["a"]


async def test_a_question_cannot_change_anything(store: Store, backend: Any) -> None:
    with pytest.raises((backend.sql_error, Unavailable)):
        await store.read(lambda tx: tx.one(ADD, text="smuggled", n=1))
    assert await store.read(texts) == []
