"""A large store is loaded through a child process; the copy is the same when that fails."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.analytics.conftest import content
from tests.conftest import Admit, Clock
from tests.postgres import NewServer, PostgresServer
from tests.small_disk import fill, small_disk
from workbench.analytics import first_load as first_load_module
from workbench.analytics import live as module
from workbench.analytics.changes import START, read_update
from workbench.analytics.first_load import COPYING, EXPORTING, LoadFailed, first_load
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.services import SERVICES
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.store.backups import back_up, replace
from workbench.store.opening import open_store
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TASKS = 60


@pytest.fixture(autouse=True)
def _little_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALLEST", 10)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files of loads."""
    place = tmp_path / "temporary"
    monkeypatch.setattr(first_load_module, "TemporaryDirectory", partial(tempfile.TemporaryDirectory, dir=place))
    place.mkdir()
    return place


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with some tasks, whose titles try the way through the files."""
    await create_tasks(workbench)
    return workbench


async def create_tasks(workbench: Workbench, count: int = TASKS) -> None:
    """Create tasks; each is an event."""
    titles = ["é\U0001f427", "a'b\"c\\d", "\x01\x7f\n\t", "\x02\x01\x01,\r\n", "\\N", "NULL", "1"]
    for number in range(count):
        await given.task(workbench, titles[number % len(titles)])


async def everything(live: Live, workbench: Workbench) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return content(live, await refresh(live, workbench.store))


SECRET = "sk-ant-api03-" + "Zx9" * 20
ASK = Query(
    "ask",
    "INSERT INTO attempt_checks (task_id, attempt, check_stated, commit_hash, state, asked_at, ending) "
    "SELECT id, 1, check_stated, '', 'waiting', 0, '{}' FROM tasks WHERE id = :id",
)


async def expected(workbench: Workbench) -> dict[str, list[Any]]:
    """The tables, read without a child process."""
    return content(Live(), await workbench.store.read(lambda tx: read_update(tx, START)))


def left(workbench: Workbench) -> list[Path]:
    """The files of loads."""
    root = workbench.settings.project
    return [path for place in (root / ".aiswarm" / "analytics", root.parent / "temporary") for path in place.rglob("*")]


def children() -> list[psutil.Process]:
    """The processes that copy."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if {EXPORTING, COPYING} & {*process.cmdline()}:
                found.append(process)
    return found


async def test_a_secret_in_a_title_or_a_check_is_masked_however_it_is_copied(
    workbench: Workbench, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    """Both are as they were given in the store, whose other texts are masked there."""
    task = await given.task(workbench, f"Use {SECRET}", check=["curl", "--token", SECRET])
    await given.claim(workbench, await admit("ada"), task)
    await workbench.store.write(lambda tx: tx.run(ASK, id=task))
    for found in (await everything(Live(), workbench), await expected(workbench)):
        shown = [found["raw_tasks"][-1][1], json.loads(found["raw_checks"][0][2])]
        assert shown == ["Use ••••••", ["curl", "--token", "••••••"]]
        assert SECRET not in str(found)
    assert caplog.text == ""


async def test_a_load_through_a_child_process_equals_a_full_read_and_is_followed(
    workbench: Workbench, caplog: pytest.LogCaptureFixture
) -> None:
    live = Live()
    whole = await everything(live, workbench)
    assert whole == await expected(workbench)
    assert len(whole["raw_tasks"]) == TASKS
    assert "page by page" not in caplog.text
    assert left(workbench) == children() == []
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


@pytest.mark.sqlite("a backup is a file of SQLite")
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
    workbench: Workbench, temporary: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_sqlite = isinstance(workbench.store.target, Path)
    temporary.rmdir()
    with small_disk(workbench.settings.home / "analytics" if is_sqlite else temporary, 1) as place:
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


async def test_a_killed_child_process_costs_only_time(workbench: Workbench) -> None:
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
    assert left(workbench) == []


async def test_an_interrupted_load_leaves_nothing_behind(workbench: Workbench) -> None:
    live = Live()
    loading = asyncio.create_task(refresh(live, workbench.store))
    while not children():
        await asyncio.sleep(0.005)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    whole = await everything(live, workbench)
    assert whole == await expected(workbench)
    assert left(workbench) == children() == []


async def test_a_load_that_is_stopped_fails_and_leaves_nothing_behind(workbench: Workbench) -> None:
    load, live = first_load(workbench.store.target, last=10), Live()
    load.stop()
    with pytest.raises(LoadFailed, match="stopped"):
        await asyncio.to_thread(live.replica.fill, load.into, START)
    assert left(workbench) == children() == []
    assert await everything(live, workbench) == await expected(workbench)


async def test_rows_that_change_during_a_load_are_followed_from_there(workbench: Workbench) -> None:
    live = Live()
    loading = asyncio.create_task(everything(live, workbench))
    numbers = 0
    while not loading.done():
        numbers += 1
        await given.task(workbench, "meanwhile")
        await workbench.call("cancel_task", task_id=numbers)
    await loading
    assert numbers

    async def is_followed() -> bool:
        return await everything(live, workbench) == await expected(workbench)

    await given.until(is_followed)  # the machine's resources may be recorded in between


def on(settings: Settings, url: str) -> Settings:
    """The settings of a project that is on PostgreSQL."""
    return settings.model_copy(update={"database_url": DatabaseUrl(url)})


@pytest.mark.postgres
async def test_a_server_that_ends_during_a_load_is_one_error_and_the_next_question_loads_anew(
    settings: Settings, clock: Clock, new_postgres_server: NewServer
) -> None:
    server, live = new_postgres_server(), Live()
    with server.new_database() as name:
        async with Workbench.open(on(settings, server.url(name)), clock=clock) as workbench:
            await create_tasks(workbench)
            loading = asyncio.create_task(everything(live, workbench))
            while not children():
                await asyncio.sleep(0.005)
            server.kill()
            with pytest.raises(Unavailable) as error:
                await loading
            assert error.value.code == "STORE_UNAVAILABLE"
            assert left(workbench) == children() == []
            server.start()
            assert await everything(live, workbench) == await expected(workbench)


@pytest.fixture
async def limited(
    settings: Settings, clock: Clock, postgres_server: PostgresServer, postgres_template: str
) -> AsyncIterator[Workbench]:
    """A project with some tasks, which its store's user may not read."""
    with postgres_server.new_database(postgres_template) as name:
        async with Workbench.open(on(settings, postgres_server.url(name)), clock=clock) as workbench:
            await create_tasks(workbench)
        with postgres_server.connect(name) as owner:
            owner.execute("CREATE ROLE limited LOGIN PASSWORD 'no-secret-of-mine'")
            owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited; REVOKE ALL ON tasks FROM limited")
        with closing(open_store(postgres_server.url(name, "limited", "no-secret-of-mine"), clock)) as store:
            yield Workbench(settings, store, SERVICES)
    with postgres_server.connect() as owner:
        owner.execute("DROP ROLE limited")


@pytest.mark.postgres
async def test_a_user_who_may_not_read_a_table_is_told(limited: Workbench, caplog: pytest.LogCaptureFixture) -> None:
    loading = asyncio.create_task(refresh(Live(), limited.store))
    while not (found := children()):
        await asyncio.sleep(0.005)
    secret = "no-secret-of-mine"
    assert secret not in str([child.cmdline() for child in found])
    assert secret not in str([child.environ() for child in found])
    with pytest.raises(Unavailable) as error:
        await loading
    assert error.value.code == "STORE_REFUSED"
    assert "permission denied for table tasks" in caplog.text
    assert secret not in caplog.text + str(error.value)
