"""Reading sees whole changes only."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.store.contract.conftest import (
    add,
    added,
    count,
    queue_held,
    queued,
    texts,
)
from workbench.model import Event
from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too


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
