"""Bringing the old server's database: every row, once, also again and while others work."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from data.legacy.make_legacy import database, insert
from tests.conftest import Child, Served
from tests.legacy.conftest import SAMPLES, added, asked, column, dump, rows
from workbench.app import Workbench
from workbench.legacy import import_legacy
from workbench.legacy.source import TABLES, read
from workbench.model import SECOND
from workbench.state.settings import Settings

# Every row.


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_import_brings_every_row_with_its_id_and_a_second_one_changes_nothing(
    samples: Path, settings: Settings, sample: str
) -> None:
    source = samples / f"{sample}.db"
    imported = import_legacy(settings, source)
    tables = {table for table in TABLES if table != "contexts" or sample != "without-contexts"}
    for table in tables:
        there = column(source, f"SELECT id FROM {table}")
        here = column(settings.database, f"SELECT id FROM {table}")
        assert {i for i in there if i and i.strip()} <= set(here)
        assert len(here) == imported.tables[table].added >= imported.tables[table].found == len(there)
    assert imported.tables["contexts"].found == len(read(source).rows["contexts"])
    assert column(settings.database, "PRAGMA integrity_check") == ["ok"]
    assert asked(settings.database, "PRAGMA foreign_key_check") == []
    before, files = dump(settings.database), sorted(settings.home.rglob("*"))
    again = import_legacy(settings, source)
    assert (added(again), again.backup) == ({}, None)
    assert dump(settings.database) == before
    assert sorted(settings.home.rglob("*")) == files


def test_an_import_brings_the_values_of_the_rows_with_times_in_utc(samples: Path, settings: Settings) -> None:
    assert import_legacy(settings, samples / "small.db").notes == []
    made, changed, seen = 1_709_283_600 * SECOND, 1_709_285_400 * SECOND + SECOND // 2, 1_709_398_800_125_000
    times = {"created_at": made, "updated_at": changed, "deleted_at": None}
    assert asked(settings.database, "SELECT * FROM projects") == [
        {"id": "p-birds", "name": "Birds", "description": "Penguins, mostly.", **times}
    ]
    question = "SELECT id, project_id, name, description, contexts FROM sessions ORDER BY id"
    assert rows(settings.database, question) == [
        ("s-field", "p-birds", "Field", "", 3),
        ("s-lab", "p-birds", "Lab", "", 0),
    ]
    teams = [("t-field", "s-field", "Counters"), ("t-lab", "s-lab", "Counters")]
    assert rows(settings.database, "SELECT id, session_id, name FROM teams ORDER BY id") == teams
    question = "SELECT id, project_id, session_id, agent_id, sequence_number, title FROM contexts ORDER BY number"
    assert rows(settings.database, question) == [
        ("c-1", "p-birds", "s-field", "a-ada", 1, "Finding 1"),
        ("c-2", "p-birds", "s-field", "a-ada", 2, "Finding 2"),
        ("c-3", "p-birds", "s-field", "a-bob", 3, "Finding 3"),
    ]
    assert column(settings.database, "SELECT rowid FROM contexts_text WHERE contexts_text MATCH 'gentoo'") == [1, 2, 3]
    ada = rows(settings.database, "SELECT registered_at, last_heartbeat, deleted_at FROM agents WHERE id = 'a-ada'")
    assert ada == [(made, seen, None)]
    question = """SELECT id, assigned_agent_id, registration_status, tool, role, access_level, id_only, capabilities,
        session_id, team_id FROM agents ORDER BY id"""
    admitted = ("assigned", "write", "worker")
    assert rows(settings.database, question) == [
        ("a-ada", "a-ada", *admitted, "session_level", 1, "{}", "s-field", "t-field"),
        ("a-bob", "a-bob", *admitted, "session_level", 1, "{}", "s-field", "t-field"),
        ("a-eve", "a-eve", *admitted, "self_only", 1, "{}", None, None),
    ]
    assert [len(made) for made in set(column(settings.database, "SELECT token_hash FROM agents"))] == [64] * 3


def test_an_import_keeps_the_decisions_of_the_old_registration(samples: Path, settings: Settings) -> None:
    imported = import_legacy(settings, samples / "registered.db")
    question = """SELECT id, assigned_agent_id, registration_status, id_only, capabilities, deleted_at IS NULL
        FROM agents WHERE name = 'Cyd' ORDER BY id"""
    able = '{"nlp": true}'
    assert rows(settings.database, question) == [
        ("pending_c1_20240401_080000", "cyd", "assigned", 1, able, 1),
        ("pending_c2_20240401_080100", "pending_c2_20240401_080100", "rejected", 0, able, 1),
        ("pending_c3_20240401_080200", "pending_c3_20240401_080200", "rejected", 0, able, 0),
    ]
    assert [note for note in imported.notes if "still pending" in note] == imported.notes
    assert column(settings.database, "SELECT agent_id FROM contexts") == ["pending_c1_20240401_080000"]


def test_an_agent_older_than_registrations_is_admitted_and_a_reader_stays_one(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        db.execute("ALTER TABLE agents ADD COLUMN registration_status TEXT DEFAULT 'pending'")
        db.execute("ALTER TABLE agents ADD COLUMN selected_tool TEXT")
        insert(db, "agents", id="ada", name="Ada")
        insert(db, "agents", id="bob", name="Bob", selected_tool="read")
    import_legacy(settings, old)
    found = rows(settings.database, "SELECT assigned_agent_id, registration_status, tool FROM agents ORDER BY id")
    assert found == [("ada", "assigned", "write"), ("bob", "assigned", "read")]


# Again.


def test_a_later_import_adds_new_rows_and_keeps_changes_made_here(samples: Path, settings: Settings) -> None:
    source = samples / "small.db"
    import_legacy(settings, source)
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("UPDATE projects SET name = 'Penguins'")
        db.execute("UPDATE agents SET assigned_agent_id = 'lovelace' WHERE id = 'a-ada'")
        db.execute("UPDATE sessions SET contexts = 9 WHERE id = 's-field'")
        db.execute("UPDATE sessions SET deleted_at = 1 WHERE id = 's-lab'")
    before = dump(settings.database)
    assert added(import_legacy(settings, source)) == {}
    assert dump(settings.database) == before
    with closing(sqlite3.connect(source)) as db, db:
        insert(db, "agents", id="a-new", name="New", session_id="s-field", created_at="2024-05-01")
        for number in (3, 4):
            where = {"session_id": "s-field", "agent_id": "a-new", "sequence_number": number}
            insert(db, "contexts", id=f"new-{number}", **where, created_at=f"2024-05-0{number}")
    assert added(import_legacy(settings, source)) == {"agents": 1, "contexts": 2}
    question = "SELECT sequence_number FROM contexts WHERE agent_id = 'a-new' ORDER BY id"
    assert column(settings.database, question) == [10, 4]
    assert column(settings.database, "SELECT contexts FROM sessions WHERE id = 's-field'") == [10]


# While others work.


@pytest.mark.long
@pytest.mark.anyio
async def test_a_server_of_the_project_sees_what_another_process_brings(
    samples: Path, served: Served, child: Child
) -> None:
    workbench = served.workbench
    async with workbench.feed.subscribe("agent.*") as events:
        process = child(__file__, workbench.settings.project, samples / "full.db")
        written = [workbench.call("register", name=f"agent {n}") for n in range(40)]
        await asyncio.gather(*written)
        said = json.loads(await asyncio.to_thread(process.stdout.readline))
        kinds = [event.kind for _ in range(40 + 150) if (event := await events.within(20))]
    assert said["tables"]["agents"] == {"found": 150, "added": 150}
    assert Path(said["backup"]).exists()
    assert (kinds.count("agent.registered"), kinds.count("agent.migrated")) == (40, 150)
    assert len(column(workbench.settings.database, "SELECT id FROM agents")) == 190


@pytest.mark.anyio
async def test_an_import_runs_in_a_process_that_has_the_store_open(samples: Path, workbench: Workbench) -> None:
    assert added(import_legacy(workbench.settings, samples / "small.db"))["agents"] == 3
    assert Path(import_legacy(workbench.settings, samples / "registered.db").backup or "").exists()
    await workbench.call("register", name="Afterwards")
    assert column(workbench.settings.database, "PRAGMA integrity_check") == ["ok"]


def main(arguments: Iterable[str]) -> None:
    """The program of a separate process: import a database and print the counts."""
    project, source = map(Path, arguments)
    print(import_legacy(Settings(project=project), source).model_dump_json(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
