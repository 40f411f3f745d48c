"""Which store a project has: the one on PostgreSQL that its settings name, or SQLite's; never silently another one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Served
from tests.given import refused
from tests.postgres import NewServer, PostgresServer
from tests.services.processes.running import serving
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.state.database_note import DatabaseNote
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.store.opening import open_store
from workbench.store.postgres import PostgresStore
from workbench.store.sqlite import SqliteStore
from workbench.trust import project_store, state_directory

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


@pytest.fixture
def on_postgres(settings: Settings, postgres_url: str) -> Settings:
    """The settings of a project whose store is on PostgreSQL."""
    return settings.model_copy(update={"database_url": DatabaseUrl(postgres_url)})


async def with_a_task(settings: Settings) -> None:
    """Make a project, or use one, and add a task."""
    async with Workbench.open(settings) as workbench:
        await given.task(workbench, title="Measure the bills")


async def titles(settings: Settings) -> list[str]:
    """The tasks, as somebody reads them who makes no project."""
    async with Workbench.open(settings, create=False) as workbench:
        return [task["title"] for task in (await workbench.call("list_tasks"))["tasks"]]


async def test_a_project_on_postgresql_has_no_file_of_a_store_and_is_found_again(on_postgres: Settings) -> None:
    assert await titles(on_postgres) == []
    assert not state_directory.has_store(on_postgres), "to read creates no project"
    await with_a_task(on_postgres)
    assert state_directory.has_store(on_postgres)
    assert await titles(on_postgres) == ["Measure the bills"]
    assert not list(on_postgres.home.glob("coordination*"))
    store = await asyncio.to_thread(project_store.open_store, on_postgres)
    store.close()
    assert isinstance(store, PostgresStore)


async def test_a_shell_without_the_database_begins_no_other_store(on_postgres: Settings, settings: Settings) -> None:
    await with_a_task(on_postgres)
    error = await asyncio.to_thread(refused, "DATABASE_NOT_SET", project_store.open_store, settings)
    assert (
        f"This project's store is in the database {on_postgres.database_url}, which is not set here." in error.message
    )
    assert not settings.database.exists()
    DatabaseNote.file(settings.home).unlink()
    store = await asyncio.to_thread(project_store.open_store, settings)
    store.close()
    assert isinstance(store, SqliteStore)


async def test_a_database_without_the_work_of_the_projects_file_is_refused(
    on_postgres: Settings, settings: Settings, postgres_server: PostgresServer
) -> None:
    await with_a_task(settings)
    with postgres_server.new_database() as name:
        empty = settings.model_copy(update={"database_url": DatabaseUrl(postgres_server.url(name))})
        await asyncio.to_thread(refused, "DATABASE_LACKS_WORK", project_store.open_store, empty)
        with postgres_server.connect(name) as db:
            assert db.execute("SELECT to_regclass('tasks')").fetchone() == (None,), "what is refused stays as it is"
    error = await asyncio.to_thread(refused, "DATABASE_LACKS_WORK", project_store.open_store, on_postgres)
    assert "`workbench db copy --to` copies it" in error.message
    assert DatabaseNote.of(settings.home) is None
    settings.database.rename(settings.database.with_suffix(".aside"))
    settings.database.with_suffix(".acknowledged").unlink()
    await with_a_task(on_postgres)


async def test_a_file_without_work_is_in_nobodys_way(on_postgres: Settings, settings: Settings) -> None:
    async with Workbench.open(settings):
        pass
    await with_a_task(on_postgres)


async def test_another_database_is_not_taken_for_the_projects(
    on_postgres: Settings, postgres_server: PostgresServer, postgres_template: str
) -> None:
    await with_a_task(on_postgres)
    with postgres_server.new_database() as name:
        other = DatabaseUrl(postgres_server.url(name))
        elsewhere = on_postgres.model_copy(update={"database_url": other})
        error = await asyncio.to_thread(refused, "DATABASE_OF_ANOTHER", project_store.open_store, elsewhere)
        with postgres_server.connect(name) as db:
            assert db.execute("SELECT to_regclass('tasks')").fetchone() == (None,), "what is refused stays as it is"
        open_store(other.conninfo).close()
        await asyncio.to_thread(refused, "DATABASE_OF_ANOTHER", project_store.open_store, elsewhere)
    assert f"is in the database {on_postgres.database_url}, and {other} has another one, or none." in error.message


async def test_two_machines_share_a_project_by_its_database(
    on_postgres: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    there = on_postgres.model_copy(update={"project": elsewhere})
    await with_a_task(on_postgres)
    await with_a_task(on_postgres)
    assert "from now on" not in caplog.text
    async with Workbench.open(there) as workbench:
        assert (await workbench.call("get_task", task_id=1))["title"] == "Measure the bills"
    assert f"{elsewhere} uses the store in the database {there.database_url} from now on" in caplog.text


@pytest.mark.long
async def test_a_project_goes_on_when_its_database_is_back_and_its_log_has_a_line_of_that(
    settings: Settings, new_postgres_server: NewServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = new_postgres_server()
    url = DatabaseUrl(server.url("postgres"))
    async with serving(settings.model_copy(update={"database_url": url})) as served:
        await asyncio.to_thread(server.kill)
        await given.refuses("STORE_UNAVAILABLE", served.workbench.call("list_tasks"))
        await given.until(lambda: asyncio.to_thread(lambda: "and is tried again" in caplog.text), seconds=30)
        for _ in range(10):
            await given.refuses("STORE_UNAVAILABLE", served.workbench.call("list_approvals"))
        assert caplog.text.count("and is tried again") == 1
        assert "restarting it" not in caplog.text
        assert "not up to date" not in caplog.text
        await asyncio.to_thread(server.start)
        await given.until(lambda: answers(served), seconds=30)
        await given.task(served.workbench)


async def answers(served: Served) -> bool:
    """Whether a project answers."""
    try:
        await served.workbench.call("list_tasks")
    except Unavailable:
        return False
    return True
