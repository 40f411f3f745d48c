"""A write is acknowledged once it is kept, in order, and is read whole or not at all; a closed store refuses both."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.store.contract.conftest import (
    CLEAR,
    HANGING,
    MAKE,
    NOTES,
    PUT,
    RAISE,
    add,
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
from workbench.store.feed import events_after
from workbench.store.group_commit import BATCH
from workbench.store.migrate import Script

pytestmark = HANGING


async def test_an_acknowledged_write_is_read_here_elsewhere_and_after_reopening(store: Store, backend: Any) -> None:
    with closing(backend.open()) as other:
        for number in range(20):
            await store.write(add(f"note {number}"))
            assert await store.read(count) == await other.read(count) == number + 1
    store.close()
    with closing(backend.open()) as again:
        assert again.migrated == []
        assert await again.read(texts) == await added(again) == [f"note {number}" for number in range(20)]


async def test_a_write_returns_what_its_change_returned(store: Store) -> None:
    value = object()
    assert await store.write(lambda tx: value) is value
    assert await store.read(lambda tx: value) is value


async def test_each_write_of_a_batch_is_given_its_own_result(store: Store) -> None:
    ids = await together(store, *(add(f"note {number}", number) for number in range(100)))
    rows = await store.read(lambda tx: tx.all(NOTES))
    assert [(row["id"], row["n"]) for row in rows] == [(ids[n], n) for n in range(100)]


async def test_a_transaction_returns_rows_and_counts_of_changed_ones(store: Store) -> None:
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


async def test_cancelling_a_waiting_writer_breaks_no_change_of_its_batch(store: Store) -> None:
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


# Reading.


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

    def twice(tx: Reader) -> tuple[list[str], list[str], list[FeedEvent]]:
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


# Closing.


async def test_closing_finishes_queued_writes(store: Store, backend: Any) -> None:
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


async def test_a_closed_store_refuses_reads_and_writes(store: Store) -> None:
    store.close()
    store.close()
    for late in (store.write(add("late")), store.read(count)):
        with pytest.raises(Unavailable, match=r"^STORE_CLOSED"):
            await late


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
async def test_every_request_to_a_closing_store_is_answered(backend: Any) -> None:
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


# Rewriting.


async def test_a_rewriting_calls_functions_for_the_rows_it_names(store: Store) -> None:
    for text in ("secret", "plain", "5 % secret"):
        await store.write(add(text, len(text)))
    script = Script("script", "UPDATE notes SET text = masked(text) WHERE n > 5;\nUPDATE notes SET n = n WHERE n > 0;")
    await store.rewrite(script, {"masked": lambda text: text.replace("secret", "•")})
    assert await store.read(texts) == ["•", "plain", "5 % •"]
    await store.write(add("later"))
    await store.rewrite(script, {"masked": lambda text: text})
    assert await store.read(texts) == ["•", "plain", "5 % •", "later"]
