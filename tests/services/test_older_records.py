"""Records older than the masking of secrets are masked once, in every file of the project."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests import given
from tests.conftest import admitted
from tests.given import refused
from tests.postgres import PostgresServer
from tests.rules.secrets.test_forms import SECRET
from workbench.app import Workbench
from workbench.rules.secrets.forms import MASK
from workbench.services.processes import processes
from workbench.services.processes.processes import ResourceLimits
from workbench.services.spawning.request import SpawnRequest
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.store import copying

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite("writes older records into the file of a store")]

VALUE = "blue+horse/7=co"
WRITTEN_OUT = "9f3b-Quite_Opaque-7c21d"
FORM = f"sk-proj-{SECRET}"
TEXT = f"I use {VALUE} and {FORM}, not {WRITTEN_OUT}"
DATA = json.dumps({"said": [TEXT], VALUE: {"deep": TEXT}})
COLUMNS = {
    "events": ("data",),
    "task_logs": ("message",),
    "task_attempts": ("error_message",),
    "task_status": ("result_data", "artifacts", "error_message"),
    "attempt_work": ("requested_end", "problem"),
    "tool_calls": ("arguments", "result", "progress_message"),
    "turns": ("content", "parts", "history", "error"),
    "chat_frames": ("data",),
    "contexts": ("title", "content", "metadata"),
    "agents": ("capabilities",),
    "approvals": ("payload", "reason", "outcome"),
    "processes": ("reason",),
    "spawns": ("reason",),
    "closed_worktrees": ("reason",),
    "runs": ("error",),
    "run_metrics": ("text",),
    "run_latest_metrics": ("text",),
}
JSON = {"data", "result_data", "artifacts", "requested_end", "arguments", "result", "parts", "history", "metadata"}
SERVER = {"command": "server", "args": ["--token", WRITTEN_OUT], "env": {}}
DEFINITION = {
    "metadata": {"id": "one", "name": "One"},
    "mcpServers": {"a": SERVER, "b": {"url": f"https://x/?key={WRITTEN_OUT}"}},
}


@pytest.fixture
async def old(migrated: Settings) -> Settings:
    """A project as it was left when secrets were not masked: each column holds some, and so do pages that are free."""
    async with Workbench.open(migrated) as workbench:
        agent = (await admitted(workbench, "ada")).caller.agent
        assert agent is not None
        await given.task(workbench)
    request = SpawnRequest("script", None, None, ResourceLimits(), False, True, secret=("PLAIN",))
    processes.save_environment(migrated, agent, {"PLAIN": VALUE})
    (migrated.logs / "tools").mkdir(parents=True)
    for name in (f"{agent}.log", "tools/call.log"):
        (migrated.logs / name).write_text(f"one\n{TEXT}\nthree")
    with closing(sqlite3.connect(migrated.database)) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute(
            "INSERT INTO spawns (agent_id, profile, request, confinement, state, asked_at) "
            "VALUES (?, 'script', ?, '{}', 'started', 1)",
            (agent, request.as_json()),
        )
        db.execute("INSERT INTO definition_contents VALUES ('h', ?)", (json.dumps(DEFINITION),))
        for table, columns in COLUMNS.items():
            _fill(db, table, columns)
        for number in range(200):
            db.execute("INSERT INTO events VALUES (?, 1, 'x.y', 'a', 'x:1', NULL, ?)", (10_000 + number, DATA * 20))
        db.execute("DELETE FROM events WHERE id >= 10000")
        db.execute("DELETE FROM masked_records")
        db.commit()
    assert len(found_in(migrated)) >= 3
    return migrated


def _fill(db: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    """Put secrets into the columns of a row, which is made if there is none."""
    said = {column: DATA if column in JSON else TEXT for column in columns}
    if table != "events" and db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,):
        described = db.execute(f"PRAGMA table_info({table})").fetchall()
        for _, name, kind, needed, default, _ in described:
            if name not in said and needed and default is None:
                said[name] = _some(table, name, kind)
        names, marks = ", ".join(said), ", ".join("?" * len(said))
        db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(said.values()))
    else:
        assignments = ", ".join(f"{column} = ?" for column in columns)
        db.execute(f"UPDATE {table} SET {assignments}", tuple(said.values()))


def _some(table: str, name: str, kind: str) -> str:
    chosen = {"role": "assistant", "state": "completed", "status": "discarded", "level": "info", "source": "local"}
    state = {"attempt_work": "over", "turns": "completed", "runs": "completed"}
    if name == "state":
        return state.get(table, chosen[name])
    return chosen.get(name, "1")


def found_in(settings: Settings) -> list[str]:
    """The files of the project that hold a secret."""
    files = [file for file in settings.home.rglob("*") if file.is_file() and file.parent.name != "environments"]
    values = [value.encode() for value in (VALUE, FORM, WRITTEN_OUT)]
    return [str(file) for file in files if any(value in file.read_bytes() for value in values)]


async def test_no_file_holds_a_secret_after_the_project_was_opened(old: Settings) -> None:
    async with Workbench.open(old):
        assert found_in(old) == []
    with closing(sqlite3.connect(old.database)) as db:
        for table, columns in COLUMNS.items():
            for column in columns:
                texts = [text for (text,) in db.execute(f"SELECT {column} FROM {table}") if text and MASK in text]
                assert texts, f"{table}.{column}"
                assert column not in JSON or all(map(json.loads, texts))
        (content,) = db.execute("SELECT content FROM definition_contents WHERE hash = 'h'").fetchone()
        assert json.loads(content)["mcpServers"]["a"]["args"] == ["--token", MASK]
    assert (old.logs / "tools" / "call.log").read_text() == f"one\nI use {MASK} and {MASK}, not {MASK}\nthree"


@pytest.mark.postgres
async def test_older_records_are_masked_after_the_project_went_to_postgresql(
    old: Settings, postgres_server: PostgresServer
) -> None:
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)
        assert (
            "refers to one that is not there"
            in refused("NOT_COPYABLE", copying.copy_to_postgres, old.database, address).message
        )
        kept = _without_dangling_rows(old.database)
        copying.copy_to_postgres(old.database, address)
        async with Workbench.open(old.model_copy(update={"database_url": DatabaseUrl(address)})):
            pass
        with postgres_server.connect(name) as db:
            for table in kept:
                columns = ", ".join(COLUMNS[table])
                texts = [text for row in db.execute(f"SELECT {columns} FROM {table}") for text in row if text]
                assert any(MASK in text for text in texts), table
                assert not any(value in text for text in texts for value in (VALUE, FORM, WRITTEN_OUT)), table
            assert db.execute("SELECT count(*) FROM masked_records").fetchone() == (1,)


def _without_dangling_rows(database: Path) -> list[str]:
    """Remove the rows that refer to none; the tables that still have some."""
    with closing(sqlite3.connect(database)) as db:
        while dangling := db.execute("PRAGMA foreign_key_check").fetchall():
            for table, row, *_ in dangling:
                db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        db.commit()
        return [table for table in COLUMNS if db.execute(f"SELECT 1 FROM {table}").fetchone()]


async def test_older_records_are_masked_once(old: Settings) -> None:
    async with Workbench.open(old):
        pass
    with closing(sqlite3.connect(old.database)) as db:
        db.execute("UPDATE task_logs SET message = ?", (TEXT,))
        db.commit()
        assert db.execute("SELECT masked_at > 0 FROM masked_records").fetchall() == [(1,)]
    async with Workbench.open(old):
        pass
    with closing(sqlite3.connect(old.database)) as db:
        assert db.execute("SELECT message FROM task_logs").fetchall() == [(TEXT,)]


@pytest.mark.long
async def test_older_records_that_are_being_read_are_masked_at_the_next_opening(old: Settings) -> None:
    with closing(sqlite3.connect(old.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        async with Workbench.open(old):
            assert found_in(old) != []
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM masked_records").fetchone() == (0,)
    async with Workbench.open(old):
        assert found_in(old) == []


async def test_a_new_project_has_nothing_to_mask(migrated: Settings, caplog: pytest.LogCaptureFixture) -> None:
    async with Workbench.open(migrated):
        assert "older records" not in caplog.text
