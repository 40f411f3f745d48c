"""Old events are rolled up to Parquet: queries still have all of them, and the feed those that are kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import given
from tests.analytics.conftest import content
from tests.conftest import Clock
from workbench.analytics import live as live_module
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.errors import NotFound, Unavailable
from workbench.services.sharing.retention import roll_up
from workbench.state.settings import Settings
from workbench.store import rolled_up
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

DAY = 86_400.0
TASKS = 12


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workbench]:
    """A project that keeps events for two days, whose time the test moves; a file has few events."""
    monkeypatch.setattr(rolled_up, "EVENTS", 7)
    monkeypatch.setattr(rolled_up, "REMOVED", 3)
    settings = migrated.model_copy(update={"keep_events_days": 2.0})
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


@pytest.fixture
async def aged(workbench: Workbench, clock: Clock) -> Workbench:
    """A project with events of three days, the last of which are young."""
    for number in range(TASKS):
        clock.forward(3 * DAY / TASKS)
        await given.task(workbench, f"é '{number}'", metadata={"n": [number, None]})
    clock.forward(0.9 * DAY)
    return workbench


async def ids(workbench: Workbench, after: int = 0) -> list[int]:
    """The ids of the events in the feed."""
    page = await workbench.call("list_events", after=after, limit=1_000)
    return [event["id"] for event in page["events"]]


async def queried(workbench: Workbench) -> dict[str, list[Any]]:
    """All rows that queries have, of a copy that is made anew."""
    live = Live()
    found = content(live, await refresh(live, workbench.store))
    live.replica.close()
    return found


async def steps(workbench: Workbench) -> AsyncIterator[None]:
    """Roll up what is old, with a break after each transaction."""
    while await roll_up(workbench._ctx) is not None:
        yield


@pytest.mark.long
async def test_queries_have_each_event_once_whenever_it_is_interrupted(aged: Workbench) -> None:
    before, kept = await queried(aged), await ids(aged)
    follower = Live()
    content(follower, await refresh(follower, aged.store))
    done = 0
    async for _ in steps(aged):
        done += 1
        if done in (1, 2, 5):
            assert await queried(aged) == before
    assert content(follower, await refresh(follower, aged.store)) == before
    last = await aged.store.read(rolled_up.last_id)
    assert kept[0] < last < kept[-1]
    assert (await ids(aged), await queried(aged)) == ([event for event in kept if event > last], before)


@pytest.mark.long
async def test_a_smaller_file_is_continued_and_the_newest_event_keeps_its_row(aged: Workbench, clock: Clock) -> None:
    before = await queried(aged)
    for _ in range(6):
        async for _ in steps(aged):
            pass
        clock.forward(0.5 * DAY)
    newest = max(row[0] for row in before["raw_events"])
    assert await ids(aged) == [newest]
    ((files, events),) = await given.rows(aged, "SELECT COUNT(*), SUM(events) FROM rolled_up_events")
    assert (events, files) == (newest - 1, -(-(newest - 1) // rolled_up.EVENTS))
    assert await queried(aged) == before


@pytest.mark.long
async def test_two_servers_that_roll_up_the_same_do_it_once(aged: Workbench) -> None:
    before, store = await queried(aged), aged.store
    old = await store.read(lambda tx: rolled_up.next_events(tx, aged._ctx.store.now()))
    assert old is not None
    file = rolled_up.as_file(old)
    assert [await store.write(lambda tx: rolled_up.put(tx, file)) for _ in range(2)] == [True, False]
    assert await queried(aged) == before


async def test_a_cursor_before_what_is_kept_is_told_where_to_go_on(aged: Workbench) -> None:
    async for _ in steps(aged):
        pass
    last = await aged.store.read(rolled_up.last_id)
    with pytest.raises(NotFound, match="EVENTS_ROLLED_UP") as refused:
        await ids(aged, after=1)
    assert refused.value.details["after"] == last
    assert await ids(aged, after=last) == await ids(aged)


async def test_an_export_of_events_has_those_that_are_rolled_up(aged: Workbench) -> None:
    async def exported() -> list[dict[str, Any]]:
        return list(json.loads((await aged.call("export", resource="events"))["content"]))

    before = await exported()
    async for _ in steps(aged):
        assert await exported() == before


async def test_events_are_kept_for_ever_unless_the_settings_say_otherwise(aged: Workbench) -> None:
    kept = await ids(aged)
    object.__setattr__(aged._ctx.settings, "keep_events_days", 0.0)
    assert await roll_up(aged._ctx) is None
    assert await ids(aged) == kept


async def test_a_file_that_is_damaged_is_not_read(aged: Workbench) -> None:
    async for _ in steps(aged):
        pass
    cut = Query("cut", "UPDATE rolled_up_events SET parquet = :cut WHERE first_id = 1")
    await aged.store.write(lambda tx: tx.run(cut, cut=b"PAR1"))
    with pytest.raises(Unavailable, match="ROLLED_UP_DAMAGED"):
        await queried(aged)


async def test_freed_space_is_given_back_while_others_write(aged: Workbench) -> None:
    text = "x" * 900_000
    await given.task(aged, "large", metadata={"x": text})
    await aged.store.write(lambda tx: tx.run(Query("cut", "UPDATE tasks SET metadata = '{}'")))
    sizes, made = await asyncio.gather(aged.call("vacuum_store"), given.task(aged, "meanwhile"))
    assert sizes["after"] <= sizes["before"] - (0 if aged.settings.database_url else len(text))
    assert made in [row[0] for row in await given.rows(aged, "SELECT id FROM tasks")]


@pytest.mark.long
async def test_a_large_store_is_loaded_with_what_is_rolled_up(aged: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await queried(aged)
    monkeypatch.setattr(live_module, "SMALLEST", 1)
    done = 0
    async for _ in steps(aged):
        done += 1
        if done in (1, 3):
            assert await queried(aged) == before
    assert await queried(aged) == before
