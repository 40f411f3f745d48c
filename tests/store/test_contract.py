"""What `workbench.store.base` promises, on every database."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import Unavailable
from workbench.model import Event
from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after, last_event_id
from workbench.store.queries import Query
from workbench.store.sqlite import BATCH, SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too

T = TypeVar("T")
Change = Callable[[Tx], Any]

MAKE = Query("make", "CREATE TABLE notes (id {{id}}, text TEXT NOT NULL UNIQUE, n {{big}} NOT NULL) {{strict}}")
ADD = Query("add", "INSERT INTO notes (text, n) VALUES (:text, :n) RETURNING id")
PUT = Query("put", "INSERT INTO notes (text, n) VALUES (:text, :n)")
RAISE = Query("raise", "UPDATE notes SET n = n + 1")
COUNT = Query("count", "SELECT COUNT(*) AS n FROM notes")
TEXTS = Query("texts", "SELECT text FROM notes ORDER BY id")
NOTES = Query("notes", "SELECT id, text, n FROM notes ORDER BY id")
CLEAR = Query("clear", "DELETE FROM notes")
WRONG = Query("wrong", "INSERT INTO nowhere (text) VALUES (:text)")


class Sorry(Exception):
    """What a change of these tests raises on purpose."""


@pytest.fixture
async def store(store: SqliteStore) -> SqliteStore:
    """An open store with a table of the tests' own."""
    await store.write(lambda tx: tx.run(MAKE))
    return store


def add(text: str, n: int = 0) -> Callable[[Tx], int]:
    """A change that adds a note, says so, and returns the note's id."""

    def change(tx: Tx) -> int:
        row = tx.one(ADD, text=text, n=n)
        assert row is not None
        tx.emit("note.added", f"note:{text}", n=n)
        return int(row["id"])

    return change


def add_and_fail(text: str) -> Change:
    def change(tx: Tx) -> None:
        add(text)(tx)
        raise Sorry(text)

    return change


def texts(tx: Reader) -> list[str]:
    return [row["text"] for row in tx.all(TEXTS)]


def count(tx: Reader) -> int:
    row = tx.one(COUNT)
    assert row is not None
    return int(row["n"])


async def added(store: Store, after: int = 0) -> list[str]:
    """What the events say was added."""
    events = await store.read(lambda tx: events_after(tx, after, limit=100_000))
    return [event.subject.removeprefix("note:") for event in events if event.kind == "note.added"]


@asynccontextmanager
async def queue_held(store: Store) -> AsyncIterator[None]:
    """Keep the writer busy, so that what is written meanwhile is queued and committed together."""
    entered, gate = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        entered.set()
        gate.wait()

    waiting = asyncio.create_task(store.write(wait))
    await asyncio.to_thread(entered.wait)
    try:
        yield
    finally:
        gate.set()
        await waiting


async def queued(*writes: Coroutine[Any, Any, T]) -> list[asyncio.Task[T]]:
    """Tasks of writes that have been handed to the writer, in this order."""
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)
    return tasks


async def together(store: Store, *changes: Change) -> list[Any]:
    """Run changes in one batch; what each returned or raised."""
    async with queue_held(store):
        tasks = await queued(*map(store.write, changes))
    return await asyncio.gather(*tasks, return_exceptions=True)


# What is acknowledged.


async def test_what_is_acknowledged_can_be_read_here_and_by_others(store: SqliteStore, backend: Any) -> None:
    other = backend.open()
    try:
        for number in range(20):
            await store.write(add(f"note {number}"))
            assert await store.read(count) == await other.read(count) == number + 1
    finally:
        other.close()


async def test_what_is_acknowledged_is_there_when_the_store_is_opened_again(store: SqliteStore, backend: Any) -> None:
    await store.write(add("kept"))
    store.close()
    again = backend.open()
    try:
        assert again.migrated == []
        assert await again.read(texts) == ["kept"]
        assert await added(again) == ["kept"]
    finally:
        again.close()


async def test_a_write_returns_what_its_change_returned(store: Store) -> None:
    value = object()
    assert await store.write(lambda tx: value) is value
    assert await store.read(lambda tx: value) is value


async def test_each_write_of_a_batch_is_given_its_own_result(store: Store) -> None:
    ids = await together(store, *(add(f"note {number}", number) for number in range(100)))
    rows = await store.read(lambda tx: tx.all(NOTES))
    assert [(row["id"], row["n"]) for row in rows] == [(ids[n], n) for n in range(100)]


async def test_a_transaction_tells_what_it_found_and_touched(store: Store) -> None:
    def change(tx: Tx) -> None:
        assert tx.one(NOTES) is None
        assert tx.all(NOTES) == []
        tx.many(PUT, ({"text": text, "n": 1} for text in "abc"))
        assert tx.run(RAISE) == 3
        assert tx.run(PUT, {"text": "d", "n": 7}) == 1
        first = tx.one(NOTES)
        assert first is not None
        assert (first["text"], first["n"]) == ("a", 2)
        assert tx.run(CLEAR) == 4
        assert tx.run(RAISE) == 0

    await store.write(change)


async def test_writes_are_done_in_the_order_they_were_asked_for(store: Store) -> None:
    wanted = [f"note {number}" for number in range(2 * BATCH + 100)]
    async with queue_held(store):
        tasks = await queued(*(store.write(add(text)) for text in wanted))
    await asyncio.gather(*tasks)
    assert await store.read(texts) == wanted
    assert await added(store) == wanted


# Failing alone.


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
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# Isolation.


async def test_a_question_never_sees_half_a_batch(store: Store) -> None:
    inside, gate = threading.Event(), threading.Event()

    def pause(tx: Tx) -> list[str]:
        inside.set()
        gate.wait()
        return texts(tx)

    async with queue_held(store):
        tasks = await queued(store.write(add("a")), store.write(pause), store.write(add("b")))
    await asyncio.to_thread(inside.wait)
    assert await store.read(texts) == await added(store) == []
    gate.set()
    assert (await asyncio.gather(*tasks))[1] == ["a"]
    assert await store.read(texts) == await added(store) == ["a", "b"]


async def test_a_question_has_one_view_of_the_store_from_beginning_to_end(store: Store) -> None:
    seen, gate = threading.Event(), threading.Event()

    def twice(tx: Reader) -> tuple[list[str], list[str], list[Event]]:
        first = texts(tx)
        seen.set()
        gate.wait()
        return first, texts(tx), events_after(tx, 0)

    await store.write(add("a"))
    asking = asyncio.create_task(store.read(twice))
    await asyncio.to_thread(seen.wait)
    await store.write(add("b"))
    gate.set()
    first, second, events = await asking
    assert first == second == ["a"]
    assert [event.subject for event in events] == ["note:a"]
    assert await store.read(texts) == ["a", "b"]


async def test_questions_asked_while_others_write_see_whole_changes_only(store: Store) -> None:
    async def write(name: str) -> None:
        for number in range(60):
            await store.write(lambda tx, n=number: (add(f"{name} {n} left")(tx), add(f"{name} {n} right")(tx)))  # type: ignore[misc]

    async def ask() -> None:
        while not writing.done():
            notes, events = await store.read(lambda tx: (count(tx), len(events_after(tx, 0, 10_000))))
            assert notes % 2 == 0
            assert notes == events

    writing = asyncio.gather(*(write(name) for name in "abcd"))
    await asyncio.gather(writing, ask(), ask())
    assert await store.read(count) == 480


# Events.


async def test_an_event_carries_who_asked_and_when(store: Store, clock: Any) -> None:
    await store.write(lambda tx: tx.emit("note.added", "note:1", session="s1", text="é"), actor="ada")
    clock.forward(5)
    await store.write(lambda tx: tx.emit("note.added", "note:2"))
    first, second = await store.read(lambda tx: events_after(tx, 0))
    assert first == Event(
        id=first.id,
        at=clock.now - 5_000_000,
        kind="note.added",
        actor="ada",
        subject="note:1",
        session="s1",
        data={"text": "é"},
    )
    assert second.id > first.id
    assert (second.at, second.actor, second.session, second.data) == (clock.now, "system", None, {})


async def test_each_change_of_a_batch_has_its_own_actor(store: Store) -> None:
    async with queue_held(store):
        tasks = await queued(*(store.write(add(f"note {n}"), actor=f"agent {n}") for n in range(5)))
    await asyncio.gather(*tasks)
    events = await store.read(lambda tx: events_after(tx, 0))
    assert [(e.subject, e.actor) for e in events] == [(f"note:note {n}", f"agent {n}") for n in range(5)]
    assert await store.write(lambda tx: tx.actor, actor="ada") == "ada"


async def test_rows_are_had_without_the_names_of_their_columns(store: Store) -> None:
    for text in "ab":
        await store.write(add(text))
    rows = await store.read(lambda tx: tx.all(TEXTS))
    assert await store.read(lambda tx: tx.tuples(TEXTS)) == [tuple(row.values()) for row in rows]
    assert len(rows) == 2


async def test_the_time_in_a_transaction_is_the_stores_clock(store: Store, clock: Any) -> None:
    clock.forward(3)
    assert await store.write(lambda tx: tx.now) == await store.read(lambda tx: tx.now) == store.now() == clock.now


async def test_what_cannot_be_told_as_json_is_refused_with_its_change(store: Store) -> None:
    def unspeakable(tx: Tx) -> None:
        add("b")(tx)
        tx.emit("note.added", "note:b", data=object())

    outcome = await together(store, add("a"), unspeakable, add("c"))
    assert isinstance(outcome[1], ValueError)
    assert await store.read(texts) == ["a", "c"]


async def test_an_event_that_cannot_be_kept_fails_with_its_change_alone(store: Store) -> None:
    def nobodys(tx: Tx) -> None:
        add("b")(tx)
        tx.emit(None, "note:b")  # type: ignore[arg-type]

    outcome = await together(store, add("a"), nobodys, add("c"))
    assert isinstance(outcome[1], Exception)
    assert await store.read(texts) == ["a", "c"]
    assert [event.subject for event in await store.read(lambda tx: events_after(tx, 0))] == ["note:a", "note:c"]


async def test_a_change_does_not_meet_its_own_events(store: Store) -> None:
    def look(tx: Tx) -> int:
        tx.emit("note.added", "note:a")
        return last_event_id(tx)

    assert await store.write(look) == 0
    assert await store.read(last_event_id) == 1


async def test_commits_that_hold_events_are_told_and_no_others(store: SqliteStore) -> None:
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


# Who waits, and from where.


async def test_cancelling_who_waits_breaks_neither_the_change_nor_its_neighbours(store: Store) -> None:
    async with queue_held(store):
        tasks = await queued(*(store.write(add(text)) for text in "abcde"))
        for task in tasks[1::2]:
            task.cancel()
    outcome = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in outcome] == [False, True, False, True, False]
    there = await store.read(texts)
    assert there == await added(store)
    assert {"a", "c", "e"} <= set(there) <= set("abcde")
    await store.write(add("later"))
    assert await store.read(count) == len(there) + 1


async def test_a_store_can_be_used_from_several_loops_at_once(store: Store) -> None:
    async def work(name: str) -> list[int]:
        ids = await asyncio.gather(*(store.write(add(f"{name} {n}")) for n in range(50)))
        assert await store.read(count) >= 50
        return ids

    threads = [asyncio.to_thread(asyncio.run, work(name)) for name in "abc"]
    found = await asyncio.gather(work("here"), *threads)
    assert len(set(itertools.chain(*found))) == await store.read(count) == 200


async def test_a_loop_that_ends_before_its_answer_comes_disturbs_nobody(store: Store) -> None:
    async def ask_and_leave() -> None:
        await queued(store.write(add("orphan")))

    async with queue_held(store):
        await asyncio.to_thread(asyncio.run, ask_and_leave())
        tasks = await queued(store.write(add("mine")))
    await asyncio.gather(*tasks)
    assert "mine" in await store.read(texts)


# Closing.


async def test_closing_finishes_what_is_queued(store: SqliteStore, backend: Any) -> None:
    wanted = [f"note {number}" for number in range(BATCH + 50)]
    async with queue_held(store):
        tasks = await queued(*(store.write(add(text)) for text in wanted))
        closing = asyncio.create_task(asyncio.to_thread(store.close))
        await asyncio.sleep(0)
    await closing
    assert all(isinstance(one, int) for one in await asyncio.gather(*tasks))
    again = backend.open()
    assert await again.read(texts) == wanted
    again.close()


async def test_a_closed_store_says_so(store: SqliteStore) -> None:
    store.close()
    store.close()
    with pytest.raises(Unavailable) as refused:
        await store.write(add("late"))
    assert refused.value.code == "STORE_CLOSED"
    with pytest.raises(Unavailable) as refused:
        await store.read(count)
    assert refused.value.code == "STORE_CLOSED"


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
async def test_whoever_uses_a_store_while_it_closes_is_answered(backend: Any) -> None:
    """Every request ends, in success or `STORE_CLOSED`; what succeeded is there."""

    async def use(store: Store, name: str, kept: list[str]) -> None:
        for number in itertools.count():
            text = f"{name} {number}"
            try:
                await store.write(add(text))
                kept.append(text)
                await asyncio.gather(*(store.read(count) for _ in range(5)))
            except Unavailable as error:
                assert error.code == "STORE_CLOSED"
                return

    kept: list[str] = []
    for round_ in range(8):
        store = backend.open()
        if round_ == 0:
            await store.write(lambda tx: tx.run(MAKE))
        threads = [asyncio.to_thread(asyncio.run, use(store, f"{round_} {name}", kept)) for name in "abcd"]
        users = asyncio.gather(*threads)
        while not any(text.startswith(f"{round_} ") for text in kept):
            await store.write(lambda tx: None)
        store.close()
        await users
    again = backend.open()
    assert set(await again.read(texts)) == set(kept) == set(await added(again))
    again.close()
