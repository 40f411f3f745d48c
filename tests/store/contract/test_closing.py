"""Closing a store finishes what is queued and refuses what comes later."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.contract.conftest import (
    MAKE,
    add,
    added,
    count,
    queue_held,
    queued,
    texts,
)
from workbench.errors import Unavailable
from workbench.store.base import Store
from workbench.store.sqlite import BATCH, SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too


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
