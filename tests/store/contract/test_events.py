"""An event is kept with its change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.store.contract.conftest import (
    PUT,
    TEXTS,
    Sorry,
    add,
    add_and_fail,
    count,
    queue_held,
    queued,
    texts,
    together,
)
from workbench.model import Event
from workbench.store.base import Store, Tx
from workbench.store.feed import events_after, last_event_id
from workbench.store.sqlite import SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too


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
