"""A store in a process that may open no more files."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from tests.store.exhaustion import no_descriptors, reader_busy
from workbench.store.feed import last_event_id
from workbench.store.sqlite import READERS, SqliteStore

pytestmark = pytest.mark.anyio


async def test_a_store_whose_readers_are_open_answers_when_there_are_no_files_left(store: SqliteStore) -> None:
    store.open_readers()
    await store.write(lambda tx: tx.emit("task.created", "task:1"))
    with no_descriptors():
        async with AsyncExitStack() as busy:
            for _ in range(READERS):
                assert await store.read(last_event_id) == 1
                assert await store.read_inline(last_event_id) == 1
                await busy.enter_async_context(reader_busy(store))
            assert await store.read_inline(last_event_id) == 1
