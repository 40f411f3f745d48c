"""A write is acknowledged once it is kept, in order, and can be read by others."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.store.contract.conftest import (
    CLEAR,
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
from workbench.store.base import Store, Tx
from workbench.store.sqlite import BATCH, SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too


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
