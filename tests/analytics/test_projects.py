"""Several projects in one query: the views of each under its name, read only, even if it changes."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.analytics.conftest import rows
from tests.conftest import NewDatabase, with_store
from tests.postgres import PostgresServer
from workbench.analytics.live import Live, refresh
from workbench.analytics.reports import report
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, Unavailable
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.trust import state_directory

pytestmark = pytest.mark.anyio

BOTH = "SELECT 'here', title FROM tasks UNION ALL SELECT 'there', title FROM other.tasks ORDER BY ALL"


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with a task."""
    await given.task(workbench, "Count")
    return workbench


SettingsOf = Callable[[Path], Settings]


@pytest.fixture
def settings_of(new_database: NewDatabase) -> SettingsOf:
    """The settings of a project that this user made, which has a database of its own."""
    databases: dict[Path, dict[str, Any]] = {}

    def settings(root: Path) -> Settings:
        databases[root] = databases.get(root) or new_database()
        made = Settings(project=root, **databases[root])
        state_directory.create(made)
        return made

    return settings


@pytest.fixture
async def other(tmp_path: Path, empty_store: Path, settings_of: SettingsOf) -> Path:
    """The root of another project, closed, with two tasks."""
    root = tmp_path / "other"
    root.mkdir()
    async with Workbench.open(with_store(settings_of(root), empty_store)) as opened:
        for title in ("Weigh", "Draw"):
            await given.task(opened, title)
    return root


async def test_a_query_uses_a_closed_project_and_leaves_its_files_as_they_are(
    workbench: Workbench, other: Path
) -> None:
    home = other / ".aiswarm"
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    found = await rows(Live(), workbench, BOTH, projects={"other": other})
    assert found == [("here", "Count"), ("there", "Draw"), ("there", "Weigh")]
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


async def test_a_project_stays_known_and_is_followed_while_others_use_it(
    workbench: Workbench, other: Path, settings_of: SettingsOf
) -> None:
    live = Live()
    await rows(live, workbench, "SELECT 1", projects={"other": other})
    await rows(live, workbench, "CREATE TEMP VIEW theirs AS SELECT title FROM other.tasks")
    async with Workbench.open(settings_of(other)) as opened:
        await given.task(opened, "Late")
        assert await rows(live, workbench, "SELECT count(*) FROM other.tasks") == [(3,)]
        await opened.call("cancel_task", task_id=1)
        await given.task(workbench, "Measure")
        query = "SELECT (SELECT count(*) FROM tasks), (SELECT status FROM other.tasks WHERE id = 1)"
        assert await rows(live, workbench, query) == [(2, "cancelled")]
    assert await rows(live, workbench, "SELECT count(*) FROM theirs") == [(3,)]
    live.replica.reset(live.replica.position)  # the copy of the own project begins anew
    assert await rows(live, workbench, "SELECT count(*) FROM other.tasks") == [(3,)]


@pytest.mark.long
@pytest.mark.sqlite("its work is in the state directory that is removed")
async def test_a_replaced_project_is_read_again(workbench: Workbench, other: Path, settings_of: SettingsOf) -> None:
    live = Live()
    await rows(live, workbench, "SELECT 1", projects={"other": other})
    shutil.rmtree(other / ".aiswarm")
    async with Workbench.open(settings_of(other)) as opened:
        await given.task(opened, "New")
    assert await rows(live, workbench, "SELECT title FROM other.tasks") == [("New",)]
    assert await rows(live, workbench, "SELECT title FROM b.tasks", projects={"b": other}) == [("New",)]
    with pytest.raises(BadInput, match="SQL_FAILED"):
        await rows(live, workbench, "SELECT title FROM other.tasks")
    shutil.rmtree(other / ".aiswarm")
    with pytest.raises(NotFound, match="NO_PROJECT"):
        await rows(live, workbench, "SELECT 1")
    assert await rows(live, workbench, "SELECT 1", projects={}) == [(1,)]


async def test_a_query_changes_nothing_of_another_project(workbench: Workbench, other: Path) -> None:
    live = Live()
    changing = (
        "DELETE FROM other.raw_tasks",
        "DROP VIEW other.tasks",
        "CREATE TABLE other.x AS SELECT 1",
        "DETACH other",
    )
    for query in changing:
        with pytest.raises(BadInput, match="SQL_FAILED"):
            await rows(live, workbench, query, projects={"other": other})
        assert await rows(live, workbench, "SELECT count(*) FROM other.tasks") == [(2,)]


async def test_a_name_that_means_something_else_is_refused(workbench: Workbench, other: Path) -> None:
    live = Live()
    for name in ("tasks", "main", "raw_x", "Ä", "a b", 'a"; DROP', "", "Other"):
        with pytest.raises(BadInput, match=rf"^BAD_NAME.*{re.escape(repr(name))}"):
            await rows(live, workbench, "SELECT 1", projects={name: other})


@pytest.mark.sqlite("changes the file of the store")
async def test_a_directory_that_is_no_project_of_this_user_is_refused(
    workbench: Workbench, other: Path, tmp_path: Path
) -> None:
    live, copied, database = Live(), tmp_path / "copied", other / ".aiswarm" / "coordination.db"
    shutil.copytree(other, copied)
    database.rename(tmp_path / "moved.db")
    database.symlink_to(tmp_path / "moved.db")
    for root, code in (
        (tmp_path / "nowhere", "NOT_A_DIRECTORY"),
        (tmp_path, "NO_PROJECT"),
        (copied, "STATE_NOT_TRUSTED"),
        (other, "STATE_ELSEWHERE"),
    ):
        with pytest.raises((BadInput, NotFound, Refused), match=code):
            await rows(live, workbench, "SELECT 1", projects={"other": root})
    assert list(tmp_path.glob(".aiswarm")) == []


@pytest.mark.sqlite("changes the file of the store")
async def test_a_project_of_an_older_workbench_is_not_changed(workbench: Workbench, other: Path) -> None:
    database = other / ".aiswarm" / "coordination.db"
    with sqlite3.connect(database) as db:
        db.execute("DELETE FROM migration_history WHERE migration_name LIKE '017%'")
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    before = database.read_bytes()
    with pytest.raises(Conflict, match=r"PROJECT_OUTDATED: .* `workbench migrate --project .*other`"):
        await rows(Live(), workbench, "SELECT 1", projects={"other": other})
    assert database.read_bytes() == before


@pytest.mark.long
async def test_projects_are_compared(workbench: Workbench, other: Path) -> None:
    live = Live()
    ask = partial(live.answer, await refresh(live, workbench.store))
    alone = report("projects", ask).sentence
    assert alone.startswith("This is this project alone. Directories that are given after the report's name ")
    for of in ([str(other)], [f"other={other}"]):
        made = report("projects", ask, of=of)
        assert made.frame[["compared", "created"]].to_numpy().tolist() == [["this project", 1], ["other", 2]]
        left = "not counted: this project (1 open) and other (2 open)."
        said = f"this project and other: there are no two groups with completed tasks to compare; {left}"
        assert made.sentence == said
        assert made.chart is not None


@pytest.mark.long
async def test_a_report_on_projects_keeps_those_that_a_query_has_attached(
    workbench: Workbench, other: Path, tmp_path: Path, settings_of: SettingsOf
) -> None:
    third = tmp_path / "third"
    third.mkdir()
    async with Workbench.open(settings_of(third)) as opened:
        await given.task(opened, "Sort")
    live = Live()
    before = await rows(live, workbench, BOTH, projects={"other": other})
    both = "SELECT title FROM third.tasks UNION SELECT title FROM other.tasks ORDER BY title"
    ask = partial(live.answer, await refresh(live, workbench.store))
    assert ask(both, projects={"third": third}).fetchall() == [("Draw",), ("Sort",), ("Weigh",)]
    assert ask("SELECT title FROM other.tasks", projects={"other": third}).fetchall() == [("Sort",)]
    assert await rows(live, workbench, BOTH) == before
    with pytest.raises(BadInput, match="third"):
        await rows(live, workbench, "SELECT * FROM third.tasks")


@pytest.mark.postgres
async def test_the_database_of_another_project_is_neither_migrated_nor_taken_for_granted(
    workbench: Workbench, tmp_path: Path, postgres_server: PostgresServer, postgres_template: str
) -> None:
    live, root = Live(), tmp_path / "other"
    root.mkdir()
    with postgres_server.new_database(postgres_template) as name:
        settings = Settings(project=root, database_url=DatabaseUrl(postgres_server.url(name)))
        async with Workbench.open(settings) as opened:
            await given.task(opened, "Weigh")
            found = await rows(live, workbench, BOTH, projects={"other": root})
            assert found == [("here", "Count"), ("there", "Weigh")]
        with postgres_server.connect(name) as owner:
            owner.execute("DELETE FROM migration_history WHERE migration_name LIKE '017%'")
            with pytest.raises(Conflict, match="PROJECT_OUTDATED"):
                await rows(live, workbench, "SELECT 1")
            again = "SELECT COUNT(*) FROM migration_history WHERE migration_name LIKE '017%'"
            assert owner.execute(again).fetchone() == (0,)
    with pytest.raises(Unavailable, match=f"{name}.* does not exist"):
        await rows(live, workbench, "SELECT 1")
    assert await rows(live, workbench, "SELECT 1", projects={}) == [(1,)]
