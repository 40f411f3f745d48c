"""A large store is loaded through children and from segments, and whatever befalls these, the copy is the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.analytics.conftest import content
from tests.conftest import Clock
from tests.small_disk import fill, small_disk
from workbench.analytics import live as module
from workbench.analytics.bulk import segments
from workbench.analytics.bulk.child import NICENESS
from workbench.analytics.bulk.children import ExtractionFailed
from workbench.analytics.bulk.load import Load
from workbench.analytics.bulk.niceness import NICEST, run_nicely
from workbench.analytics.changes import START, read_update
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.settings import Settings
from workbench.store.backups import back_up, replace
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TASKS = 60


@pytest.fixture(autouse=True)
def _little_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALLEST", 10)
    monkeypatch.setattr(segments, "SIZE", 32)


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with some tasks, whose titles try the way through the files."""
    await create_tasks(workbench)
    return workbench


async def create_tasks(workbench: Workbench, count: int = TASKS) -> None:
    """Create tasks; each is an event."""
    titles = ["é\U0001f427", "a'b\"c\\d", "\x01\x7f\n\t", "NULL", "1"]
    for number in range(count):
        await workbench.call("create_task", title=titles[number % len(titles)], persona_id="implementer")


async def everything(live: Live, workbench: Workbench) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return content(live, await refresh(live, workbench.store))


async def expected(workbench: Workbench) -> dict[str, list[Any]]:
    """The same, read without children and segments."""
    return content(Live(), await workbench.store.read(lambda tx: read_update(tx, START)))


def left(settings: Settings) -> list[Path]:
    """What a load has left that is of no use."""
    return list((settings.home / "analytics").glob(".work-*"))


def stored(settings: Settings) -> dict[str, int]:
    """The segments, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (settings.home / "analytics").iterdir()}


def children() -> list[psutil.Process]:
    """The processes that copy."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "workbench.analytics.bulk.child" in process.cmdline():
                found.append(process)
    return found


async def test_a_load_through_children_is_as_good_as_reading_everything_and_its_segments_are_used_again(
    workbench: Workbench, settings: Settings
) -> None:
    live = Live()
    whole = await everything(live, workbench)
    assert whole == await expected(workbench)
    assert len(whole["raw_tasks"]) == TASKS
    assert children() == []
    written = stored(settings)
    assert len(written) >= TASKS // 32
    for name in written:
        assert (settings.home / "analytics" / name).stat().st_mode & 0o777 == 0o600
    assert await everything(Live(), workbench) == whole
    assert stored(settings) == written
    await create_tasks(workbench, 40)
    now = await expected(workbench)
    assert await everything(live, workbench) == await everything(Live(), workbench) == now
    assert written.items() < stored(settings).items()


async def test_values_of_runs_come_through_children_too_and_are_followed_from_there(workbench: Workbench) -> None:
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


async def test_events_are_in_their_order_whichever_segments_are_there(workbench: Workbench, settings: Settings) -> None:
    await everything(Live(), workbench)
    last = sorted(settings.home.glob("analytics/events-*"))[-1]
    for missing in (None, last, *settings.home.glob("analytics/events-000000000001-*")):
        if missing is not None:
            missing.unlink()
        live = Live()
        found = live.answer(await refresh(live, workbench.store), "SELECT id FROM raw_events").fetchall()
        assert found == sorted(found)
        assert len(found) == len((await expected(workbench))["raw_events"])


async def test_damaged_foreign_and_linked_segments_are_replaced(
    workbench: Workbench, settings: Settings, tmp_path: Path
) -> None:
    whole = await everything(Live(), workbench)
    place = settings.home / "analytics"
    damaged, foreign, *_ = sorted(place.iterdir())
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    shutil.move(foreign, tmp_path / "elsewhere")
    foreign.symlink_to(tmp_path / "elsewhere")
    (place / f"events-000000000001-000000000032-{'0' * 16}-{'0' * 32}.parquet").write_text("other")
    assert await everything(Live(), workbench) == whole
    assert not any(path.is_symlink() for path in place.iterdir())
    assert [name for name in stored(settings) if "0" * 16 in name] == []
    assert (tmp_path / "elsewhere").exists()


PRUNE = Query("prune", "DELETE FROM events WHERE id <= 20 OR id BETWEEN 40 AND 42")
"""What an operator's own clean-up might do."""


async def test_pruned_events_are_not_loaded_from_segments(workbench: Workbench) -> None:
    before = await everything(Live(), workbench)
    await workbench.store.write(lambda tx: tx.run(PRUNE))
    after = await everything(Live(), workbench)
    assert after == await expected(workbench)
    assert len(before["raw_events"]) - len(after["raw_events"]) == 23


async def test_a_store_that_was_replaced_by_a_backup_is_loaded_anew(settings: Settings, clock: Clock) -> None:
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


async def test_two_kernels_may_write_segments_at_once(workbench: Workbench) -> None:
    found = await asyncio.gather(*(everything(Live(), workbench) for _ in range(3)))
    assert found == [await expected(workbench)] * 3
    assert await everything(Live(), workbench) == found[0]


async def test_where_no_segment_can_be_written_the_store_is_read_in_the_kernel_page_by_page(
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


async def test_a_child_that_is_killed_costs_only_time(workbench: Workbench) -> None:
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


async def test_a_load_that_was_stopped_before_or_once_it_was_planned_fails(
    workbench: Workbench, settings: Settings
) -> None:
    load = Load(settings.database)
    load.stop()
    with pytest.raises(ExtractionFailed, match="stopped"):
        await workbench.store.read(load.plan)
    assert left(settings) == []
    load, live = Load(settings.database), Live()
    await workbench.store.read(load.plan)
    load.stop()
    with pytest.raises(ExtractionFailed):
        await asyncio.to_thread(live.replica.fill, load.into, START)
    assert left(settings) == children() == []
    assert await everything(live, workbench) == await expected(workbench)


def niceness(thread: int = 0) -> int:
    """That of a thread; of this one."""
    return os.getpriority(os.PRIO_PROCESS, thread)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, a thread has no niceness of its own")
async def test_only_the_thread_that_inserts_is_as_nice_as_the_children(workbench: Workbench) -> None:
    here = niceness()
    assert run_nicely(lambda: niceness(threading.get_native_id())) == min(here + NICENESS, NICEST)
    await everything(Live(), workbench)
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            found.add(niceness(int(thread.name)))
    assert found == {here}
