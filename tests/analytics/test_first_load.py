"""A large store is loaded through a child process; the copy is the same when that fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.analytics.conftest import content
from tests.conftest import Clock
from tests.small_disk import fill, small_disk
from workbench.analytics import live as module
from workbench.analytics.changes import START, read_update
from workbench.analytics.first_load import PROGRAM, FirstLoad, LoadFailed
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.state.settings import Settings
from workbench.store.backups import back_up, replace
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TASKS = 60


@pytest.fixture(autouse=True)
def _little_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALLEST", 10)


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with some tasks, whose titles try the way through the files."""
    await create_tasks(workbench)
    return workbench


async def create_tasks(workbench: Workbench, count: int = TASKS) -> None:
    """Create tasks; each is an event."""
    titles = ["é\U0001f427", "a'b\"c\\d", "\x01\x7f\n\t", "NULL", "1"]
    for number in range(count):
        await given.task(workbench, titles[number % len(titles)])


async def everything(live: Live, workbench: Workbench) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return content(live, await refresh(live, workbench.store))


async def expected(workbench: Workbench) -> dict[str, list[Any]]:
    """The tables, read without a child process."""
    return content(Live(), await workbench.store.read(lambda tx: read_update(tx, START)))


def left(settings: Settings) -> list[Path]:
    """The files of loads."""
    return list((settings.home / "analytics").rglob("*"))


def children() -> list[psutil.Process]:
    """The processes that copy."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if PROGRAM in process.cmdline():
                found.append(process)
    return found


async def test_a_load_through_a_child_process_equals_a_full_read_and_is_followed(
    workbench: Workbench, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    live = Live()
    whole = await everything(live, workbench)
    assert whole == await expected(workbench)
    assert len(whole["raw_tasks"]) == TASKS
    assert "page by page" not in caplog.text
    assert left(settings) == children() == []
    rows = live.answer(await refresh(live, workbench.store), "SELECT id FROM raw_events").fetchall()
    assert rows == sorted(rows)
    await create_tasks(workbench, 40)
    now = await expected(workbench)
    assert await everything(live, workbench) == await everything(Live(), workbench) == now


async def test_values_of_runs_come_through_the_child_too_and_are_followed_from_there(workbench: Workbench) -> None:
    started = await workbench.call("start_run", name="r", key="k")
    about = {"run_id": started["id"]}
    await workbench.call("record_metrics", **about, metrics={"loss": [0.5, "NaN", 1], "note": ["é\x01", "NULL", ""]})
    live = Live()
    whole = await everything(live, workbench)
    assert len(whole["raw_run_metrics"]) == 6
    assert whole == await expected(workbench)
    await workbench.call("record_metrics", **about, metrics={"loss": [2, 3]}, step=2)
    news = await refresh(live, workbench.store)
    assert len(news.rows["raw_run_metrics"]) == 2
    assert await everything(live, workbench) == await expected(workbench)
    await workbench.call("end_run", **about, state="failed")
    await workbench.call("start_run", name="r", key="k")
    assert (await everything(live, workbench))["raw_run_metrics"] == []


PRUNE = Query("prune", "DELETE FROM events WHERE id <= 20 OR id BETWEEN 40 AND 42")
"""What an operator's own clean-up might do."""


async def test_gaps_between_events_are_loaded_as_gaps(workbench: Workbench) -> None:
    before = await everything(Live(), workbench)
    await workbench.store.write(lambda tx: tx.run(PRUNE))
    after = await everything(Live(), workbench)
    assert after == await expected(workbench)
    assert len(before["raw_events"]) - len(after["raw_events"]) == 23


async def test_a_store_replaced_by_a_backup_is_loaded_again(settings: Settings, clock: Clock) -> None:
    live = Live()
    async with Workbench.open(settings, clock=clock) as workbench:
        await create_tasks(workbench)
        backup = back_up(settings.database, clock())
        await create_tasks(workbench)
        assert len((await everything(live, workbench))["raw_tasks"]) == 2 * TASKS
    replace(settings.database, backup, clock())
    clock.forward(60)
    async with Workbench.open(settings, clock=clock) as workbench:
        await create_tasks(workbench, TASKS + 20)
        whole = await expected(workbench)
        assert len(whole["raw_tasks"]) == 2 * TASKS + 20
        assert await everything(live, workbench) == whole
        assert await everything(Live(), workbench) == whole


async def test_several_kernels_may_load_at_once(workbench: Workbench) -> None:
    found = await asyncio.gather(*(everything(Live(), workbench) for _ in range(3)))
    assert found == [await expected(workbench)] * 3


async def test_a_first_load_without_a_writable_disk_reads_the_store_page_by_page(
    workbench: Workbench, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(settings.home / "analytics", 1) as place:
        fill(place, 4_096)
        assert await everything(Live(), workbench) == await expected(workbench)
        assert [path.name for path in place.iterdir()] == ["filler"]
    assert caplog.text.count("page by page") == 1
    place.rmdir()
    place.write_text("in the way")
    live = Live()
    with monkeypatch.context() as patch:
        patch.setattr("workbench.analytics.changes.PAGE", 7)
        assert len((await everything(live, workbench))["raw_tasks"]) == TASKS
        assert caplog.text.count("page by page") == 2
        await create_tasks(workbench, 20)
        after = await everything(live, workbench)
    assert after == await expected(workbench)


async def test_a_killed_child_process_costs_only_time(workbench: Workbench, settings: Settings) -> None:
    async def kill_all() -> None:
        while not (found := children()):
            await asyncio.sleep(0.005)
        for process in found:
            with suppress(psutil.Error):
                process.kill()

    killing = asyncio.create_task(kill_all())
    whole = await everything(Live(), workbench)
    await killing
    assert whole == await expected(workbench)
    assert left(settings) == []


async def test_an_interrupted_load_leaves_nothing_behind(workbench: Workbench, settings: Settings) -> None:
    live = Live()
    loading = asyncio.create_task(refresh(live, workbench.store))
    while not children():
        await asyncio.sleep(0.005)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    whole = await everything(live, workbench)
    assert whole == await expected(workbench)
    assert left(settings) == children() == []


async def test_a_load_that_is_stopped_fails_and_leaves_nothing_behind(workbench: Workbench, settings: Settings) -> None:
    load, live = FirstLoad(settings.database, last=10), Live()
    load.stop()
    with pytest.raises(LoadFailed, match="stopped"):
        await asyncio.to_thread(live.replica.fill, load.into, START)
    assert left(settings) == children() == []
    assert await everything(live, workbench) == await expected(workbench)
