"""A change that fails fails alone, whatever it raises, and an event is kept with its change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.contract.conftest import (
    ADD,
    CLEAR,
    HANGING,
    PUT,
    RAISE,
    TEXTS,
    WRONG,
    Change,
    Sorry,
    add,
    add_and_fail,
    added,
    count,
    queue_held,
    queued,
    texts,
    together,
)
from workbench.errors import Unavailable
from workbench.model import FeedEvent
from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after, last_event_id
from workbench.store.queries import Query

pytestmark = HANGING


async def test_a_change_that_raises_fails_alone_and_leaves_no_event(store: Store) -> None:
    with pytest.raises(Sorry, match="lost"):
        await store.write(add_and_fail("lost"))
    assert await store.read(texts) == await added(store) == []
    outcome = await together(store, add("a"), texts, add_and_fail("b"), texts, add("c"), texts, add_and_fail("d"))
    assert outcome[1::2] == [["a"], ["a"], ["a", "c"]]
    assert [type(one) for one in outcome[0::2]] == [int, Sorry, int, Sorry]
    assert [str(one) for one in outcome if isinstance(one, Sorry)] == ["b", "d"]
    assert await store.read(texts) == await added(store) == ["a", "c"]


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
async def test_a_failing_change_does_not_fail_its_neighbours(store: Store, error: type[Exception]) -> None:
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
async def test_an_exception_in_a_read_is_raised_to_its_caller(store: Store, error: type[Exception]) -> None:
    def question(tx: Reader) -> None:
        count(tx)
        raise error("on purpose")

    with pytest.raises(Exception, match=r"on purpose|StopIteration"):
        await store.read(question)
    assert await store.read(count) == 0


async def test_an_sql_error_is_raised_only_to_its_own_change(store: Store, backend: Any) -> None:
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


async def test_a_question_that_is_wrong_or_would_change_something_leaves_the_reader_usable(
    store: Store, backend: Any
) -> None:
    await store.write(add("a"))
    for _ in range(5):
        with pytest.raises(backend.sql_error):
            await store.read(lambda tx: tx.all(Query("no", "SELECT * FROM nowhere")))
        with pytest.raises((backend.sql_error, Unavailable)):
            await store.read(lambda tx: tx.one(ADD, text="smuggled", n=1))
        assert await store.read(texts) == ["a"]


# Events.


async def test_an_event_carries_who_asked_and_when_by_the_stores_clock(store: Store, clock: Any) -> None:
    await store.write(lambda tx: tx.emit("note.added", "note:1", session="s1", text="é"), actor="ada")
    clock.forward(5)
    await store.write(lambda tx: tx.emit("note.added", "note:2"))
    first, second = await store.read(lambda tx: events_after(tx, 0))
    said = {"kind": "note.added", "actor": "ada", "subject": "note:1", "session": "s1", "data": {"text": "é"}}
    assert first == FeedEvent(id=first.id, at=clock.now - 5_000_000, **said)
    assert second.id > first.id
    assert (second.at, second.actor, second.session, second.data) == (clock.now, "system", None, {})
    clock.forward(3)
    assert await store.write(lambda tx: tx.now) == await store.read(lambda tx: tx.now) == store.now() == clock.now


async def test_each_change_of_a_batch_has_its_own_actor(store: Store) -> None:
    async with queue_held(store):
        tasks = await queued(*(store.write(add(f"note {n}"), actor=f"agent {n}") for n in range(5)))
    await asyncio.gather(*tasks)
    events = await store.read(lambda tx: events_after(tx, 0))
    assert [(e.subject, e.actor) for e in events] == [(f"note:note {n}", f"agent {n}") for n in range(5)]
    assert await store.write(lambda tx: tx.actor, actor="ada") == "ada"


async def test_tuples_returns_rows_without_column_names(store: Store) -> None:
    for text in "ab":
        await store.write(add(text))
    rows = await store.read(lambda tx: tx.all(TEXTS))
    assert await store.read(lambda tx: tx.tuples(TEXTS)) == [tuple(row.values()) for row in rows]
    assert len(rows) == 2


async def test_an_unstorable_event_fails_only_its_own_change(store: Store) -> None:
    def unspeakable(tx: Tx) -> None:
        add("b")(tx)
        tx.emit("note.added", "note:b", data=object())

    def nobodys(tx: Tx) -> None:
        add("d")(tx)
        tx.emit(None, "note:d")  # type: ignore[arg-type]

    outcome = await together(store, add("a"), unspeakable, add("c"), nobodys, add("e"))
    assert isinstance(outcome[1], ValueError)
    assert isinstance(outcome[3], Exception)
    assert await store.read(texts) == ["a", "c", "e"]
    events = await store.read(lambda tx: events_after(tx, 0))
    assert [event.subject for event in events] == ["note:a", "note:c", "note:e"]


async def test_a_change_does_not_meet_its_own_events(store: Store) -> None:
    def look(tx: Tx) -> int:
        tx.emit("note.added", "note:a")
        return last_event_id(tx)

    assert await store.write(look) == 0
    assert await store.read(last_event_id) == 1


async def test_on_commit_is_called_only_for_commits_with_events(store: Store) -> None:
    told: list[int] = []
    last = 0
    store.on_commit(lambda events: told.append(events[-1]["id"]))
    await store.write(lambda tx: tx.run(PUT, text="silent", n=1))
    with pytest.raises(Sorry):
        await store.write(add_and_fail("lost"))
    await store.read(count)
    assert told == []
    for last in (1, 2):
        await store.write(add(f"note {last}"))
    assert told == [1, 2]
