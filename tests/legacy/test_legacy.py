"""Bringing the old server's database: every row, once, whole or not at all, and the old file is left alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from data.legacy import make_legacy
from data.legacy.make_legacy import database, insert
from tests.conftest import Admit, Child, Served
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Unavailable, WorkbenchError
from workbench.legacy import LegacyImport, import_legacy, target
from workbench.legacy.plan import decide
from workbench.legacy.source import TABLES, Legacy, Old, read
from workbench.model import SECOND
from workbench.settings import Settings
from workbench.store.migrate import migrate, scripts
from workbench.store.sqlite import Connection, SqliteTx, open_store

SAMPLES = ["small", "full", "without-contexts", "registered"]
NOW = 1_800_000_000 * SECOND


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A directory with every sample."""
    make_legacy.make(tmp_path / "samples")
    return tmp_path / "samples"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Where tests put a legacy database of their own."""
    return tmp_path / "legacy.db"


def asked(path: Path, question: str) -> list[dict[str, Any]]:
    """What a database answers."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(question)]


def column(path: Path, question: str) -> list[Any]:
    """The only column of what a database answers."""
    return [next(iter(row.values())) for row in asked(path, question)]


def dump(path: Path) -> list[str]:
    """Everything that is in a database; in what order its parts were made does not count."""
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.iterdump())


def added(imported: LegacyImport) -> dict[str, int]:
    """How many rows were added, where any were."""
    return {table: counted.added for table, counted in imported.tables.items() if counted.added}


def refused(settings: Settings, source: Path) -> WorkbenchError:
    """How a migration was refused."""
    with pytest.raises(WorkbenchError) as error:
        import_legacy(settings, source)
    return error.value


# Every row.


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_row_is_brought_and_keeps_its_id(samples: Path, settings: Settings, sample: str) -> None:
    source = samples / f"{sample}.db"
    imported = import_legacy(settings, source)
    tables = {table for table in TABLES if table != "contexts" or sample != "without-contexts"}
    for table in tables:
        there = column(source, f"SELECT id FROM {table}")
        here = column(settings.database, f"SELECT id FROM {table}")
        assert {i for i in there if i and i.strip()} <= set(here)
        assert len(here) == imported.tables[table].added >= imported.tables[table].found == len(there)
    assert imported.tables["contexts"].found == len(read(source).rows["contexts"])


def test_what_the_rows_say_is_brought_with_times_in_utc(samples: Path, settings: Settings) -> None:
    assert import_legacy(settings, samples / "small.db").notes == []
    made, changed, seen = 1_709_283_600 * SECOND, 1_709_285_400 * SECOND + SECOND // 2, 1_709_398_800_125_000
    times = {"created_at": made, "updated_at": changed, "deleted_at": None}
    assert asked(settings.database, "SELECT * FROM projects") == [
        {"id": "p-birds", "name": "Birds", "description": "Penguins, mostly.", **times}
    ]
    sessions = asked(settings.database, "SELECT id, project_id, name, description, contexts FROM sessions ORDER BY id")
    assert [tuple(row.values()) for row in sessions] == [
        ("s-field", "p-birds", "Field", "", 3),
        ("s-lab", "p-birds", "Lab", "", 0),
    ]
    teams = asked(settings.database, "SELECT id, session_id, name FROM teams ORDER BY id")
    assert [tuple(row.values()) for row in teams] == [
        ("t-field", "s-field", "Counters"),
        ("t-lab", "s-lab", "Counters"),
    ]
    ada = asked(settings.database, "SELECT * FROM agents WHERE id = 'a-ada'")[0]
    assert (ada["registered_at"], ada["last_heartbeat"], ada["deleted_at"]) == (made, seen, None)
    question = "SELECT id, project_id, session_id, agent_id, sequence_number, title FROM contexts ORDER BY number"
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("c-1", "p-birds", "s-field", "a-ada", 1, "Finding 1"),
        ("c-2", "p-birds", "s-field", "a-ada", 2, "Finding 2"),
        ("c-3", "p-birds", "s-field", "a-bob", 3, "Finding 3"),
    ]


def test_brought_contexts_are_found_by_their_words(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    assert column(settings.database, "SELECT rowid FROM contexts_text WHERE contexts_text MATCH 'gentoo'") == [1, 2, 3]


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_brought_is_sound_and_refers_only_to_what_is_there(
    samples: Path, settings: Settings, sample: str
) -> None:
    import_legacy(settings, samples / f"{sample}.db")
    assert column(settings.database, "PRAGMA integrity_check") == ["ok"]
    assert asked(settings.database, "PRAGMA foreign_key_check") == []


def test_agents_are_admitted_by_their_id_alone_and_with_the_access_they_had(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    question = """SELECT id, assigned_agent_id, registration_status, tool, role, access_level, id_only, capabilities,
        session_id, team_id FROM agents ORDER BY id"""
    admitted = ("assigned", "write", "worker")
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("a-ada", "a-ada", *admitted, "session_level", 1, "{}", "s-field", "t-field"),
        ("a-bob", "a-bob", *admitted, "session_level", 1, "{}", "s-field", "t-field"),
        ("a-eve", "a-eve", *admitted, "self_only", 1, "{}", None, None),
    ]
    hashes = column(settings.database, "SELECT token_hash FROM agents")
    assert len(set(hashes)) == 3
    assert {len(made) for made in hashes} == {64}


def test_what_the_old_registration_decided_is_kept(samples: Path, settings: Settings) -> None:
    imported = import_legacy(settings, samples / "registered.db")
    question = """SELECT id, assigned_agent_id, registration_status, id_only, capabilities, deleted_at IS NULL
        FROM agents WHERE name = 'Cyd' ORDER BY id"""
    able = '{"nlp": true}'
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("pending_c1_20240401_080000", "cyd", "assigned", 1, able, 1),
        ("pending_c2_20240401_080100", "pending_c2_20240401_080100", "rejected", 0, able, 1),
        ("pending_c3_20240401_080200", "pending_c3_20240401_080200", "rejected", 0, able, 0),
    ]
    assert [note for note in imported.notes if "still pending" in note] == imported.notes
    assert column(settings.database, "SELECT agent_id FROM contexts") == ["pending_c1_20240401_080000"]


def test_an_agent_that_was_there_before_registrations_were_is_admitted_and_a_reader_stays_one(
    old: Path, settings: Settings
) -> None:
    with database(old, "first") as db:
        db.execute("ALTER TABLE agents ADD COLUMN registration_status TEXT DEFAULT 'pending'")
        db.execute("ALTER TABLE agents ADD COLUMN selected_tool TEXT")
        insert(db, "agents", id="ada", name="Ada")
        insert(db, "agents", id="bob", name="Bob", selected_tool="read")
    import_legacy(settings, old)
    question = "SELECT assigned_agent_id, registration_status, tool FROM agents ORDER BY id"
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("ada", "assigned", "write"),
        ("bob", "assigned", "read"),
    ]


# Ids and names.


def test_an_agents_id_that_is_not_allowed_becomes_one_that_is_and_it_is_said(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        for number, agent_id in enumerate(["Ada Lovelace", "operator", "Ada-Lovelace", "é"]):
            insert(db, "agents", id=agent_id, name="A", created_at=f"2024-03-0{number + 1}")
    imported = import_legacy(settings, old)
    here = {
        row["id"]: row["agent_id"]
        for row in asked(settings.database, "SELECT id, assigned_agent_id AS agent_id FROM agents")
    }
    assert here == {
        "Ada-Lovelace": "Ada-Lovelace",
        "Ada Lovelace": "Ada-Lovelace-2",
        "operator": "agent-operator",
        "é": "agent",
    }
    assert len(imported.notes) == 3
    assert (
        "Agent 'Ada Lovelace': its id is in use here or not allowed; its new id is 'Ada-Lovelace-2'." in imported.notes
    )


@pytest.mark.anyio
async def test_an_agents_id_that_somebody_has_here_becomes_another(
    samples: Path, workbench: Workbench, admit: Admit
) -> None:
    await admit("a-ada")
    imported = import_legacy(workbench.settings, samples / "small.db")
    names = column(workbench.settings.database, "SELECT assigned_agent_id FROM agents ORDER BY id_only, id")
    assert names == ["a-ada", "a-ada-2", "a-bob", "a-eve"]
    assert imported.notes == ["Agent 'a-ada': its id is in use here or not allowed; its new id is 'a-ada-2'."]


def test_what_is_not_deleted_keeps_its_id_before_what_is(old: Path, settings: Settings) -> None:
    with database(old, "first", "registration") as db:
        gone = {"created_at": "2024-03-01", "deleted_at": "2024-03-02"}
        insert(db, "agents", id="first", name="Ada", assigned_agent_id="ada", **gone)
        insert(db, "agents", id="second", name="Ada", assigned_agent_id="ada", created_at="2024-03-03")
        db.execute("CREATE TABLE contexts (id TEXT, agent_id TEXT)")
        insert(db, "contexts", id="c", agent_id="ada")
    import_legacy(settings, old)
    assert column(settings.database, "SELECT agent_id FROM contexts") == ["second"]
    assert column(settings.database, "SELECT assigned_agent_id FROM agents ORDER BY id") == ["ada-2", "ada"]


def test_a_name_that_repeats_under_one_parent_is_numbered_unless_it_is_deleted(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        for number in (1, 2):
            insert(db, "projects", id=f"p{number}", name=f"P{number}", created_at=number)
        for number, (project, deleted) in enumerate([("p1", None), ("p1", None), ("p2", None), ("p1", "2024-01-01")]):
            where = {"project_id": project, "created_at": number, "deleted_at": deleted}
            insert(db, "sessions", id=f"s{number}", name="Monday", **where)
        for number in range(3):
            insert(db, "teams", id=f"t{number}", name=" ", session_id=None, created_at=number)
    imported = import_legacy(settings, old)
    assert column(settings.database, "SELECT name FROM sessions ORDER BY id") == [
        "Monday",
        "Monday (2)",
        "Monday",
        "Monday",
    ]
    assert column(settings.database, "SELECT name FROM teams ORDER BY id") == ["t0", "t1", "t2"]
    assert imported.notes == ["Session 's1' (Monday): its name 'Monday' is in use here; its new name is 'Monday (2)'."]


def test_two_legacy_databases_with_the_same_ids_are_both_brought_whole(tmp_path: Path, settings: Settings) -> None:
    sources = [tmp_path / "one.db", tmp_path / "two.db"]
    for number, source in enumerate(sources):
        with database(source, "first", "contexts") as db:
            made = {"created_at": f"2024-03-0{number + 1}T00:00:00"}
            insert(db, "projects", id="1", name=f"Project {number}", **made)
            insert(db, "sessions", id="1", name="Session", project_id="1", **made)
            insert(db, "contexts", id="1", title=f"Context {number}", session_id="1", **made)
    assert added(import_legacy(settings, sources[0])) == {"projects": 1, "sessions": 1, "contexts": 1}
    imported = import_legacy(settings, sources[1])
    assert added(imported) == {"projects": 1, "sessions": 1, "contexts": 1}
    assert len([note for note in imported.notes if "its id is in use here" in note]) == 3
    question = """SELECT p.name AS project, c.title, c.sequence_number AS number FROM contexts c
        JOIN sessions s ON s.id = c.session_id JOIN projects p ON p.id = s.project_id ORDER BY c.number"""
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("Project 0", "Context 0", 1),
        ("Project 1", "Context 1", 1),
    ]
    before = dump(settings.database)
    assert [added(import_legacy(settings, source)) for source in sources] == [{}, {}]
    assert dump(settings.database) == before


# What is not as it should be.


def test_what_refers_to_something_that_is_gone_is_kept_without_it(old: Path, settings: Settings) -> None:
    with database(old, "first", "contexts") as db:
        insert(db, "teams", id="t", name="Team", session_id="gone")
        insert(db, "agents", id="a", name="Ada", session_id="gone", team_id="gone")
        insert(db, "contexts", id="c", title="Note", project_id="gone", session_id="gone", agent_id="gone")
    imported = import_legacy(settings, old)
    assert column(settings.database, "SELECT session_id FROM teams") == [None]
    assert asked(settings.database, "SELECT session_id, team_id, access_level FROM agents") == [
        {"session_id": None, "team_id": None, "access_level": "self_only"}
    ]
    assert asked(settings.database, "SELECT project_id, session_id, agent_id, sequence_number FROM contexts") == [
        {"project_id": None, "session_id": None, "agent_id": None, "sequence_number": None}
    ]
    assert len(imported.notes) == 6
    assert "Team 't' (Team): its session_id 'gone' does not exist and is omitted." in imported.notes


def test_a_context_is_in_the_project_of_its_session_if_it_names_none(old: Path, settings: Settings) -> None:
    with database(old, "first", "contexts") as db:
        insert(db, "projects", id="p", name="P")
        insert(db, "sessions", id="s", name="S", project_id="p")
        insert(db, "contexts", id="c", session_id="s")
    assert import_legacy(settings, old).notes == []
    assert column(settings.database, "SELECT project_id FROM contexts") == ["p"]


def test_sessions_without_a_project_get_one_that_says_so(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        for number, project in enumerate(["gone", "gone", None]):
            insert(db, "sessions", id=f"s{number}", name=f"S{number}", project_id=project)
    imported = import_legacy(settings, old)
    question = "SELECT s.id, p.name FROM sessions s JOIN projects p ON p.id = s.project_id ORDER BY s.id"
    assert [tuple(row.values()) for row in asked(settings.database, question)] == [
        ("s0", "gone"),
        ("s1", "gone"),
        ("s2", "Sessions without a project"),
    ]
    assert imported.tables["projects"].model_dump() == {"found": 0, "added": 2}
    assert added(import_legacy(settings, old)) == {}


def test_numbers_are_kept_where_they_are_unique_and_the_others_follow_the_last(old: Path, settings: Settings) -> None:
    with database(old, "first", "contexts") as db:
        insert(db, "projects", id="p", name="P")
        for session in ("s", "other"):
            insert(db, "sessions", id=session, name=session, project_id="p")
        for minute, number in enumerate([5, 5, None, 0, 2**63 - 1, "third", 3]):
            at = f"2024-03-01T10:0{minute}:00"
            insert(db, "contexts", id=f"c{minute}", session_id="s", sequence_number=number, created_at=at)
        insert(db, "contexts", id="d", session_id="other", sequence_number=5, deleted_at="2024-03-01")
    imported = import_legacy(settings, old)
    question = "SELECT sequence_number FROM contexts WHERE session_id = 's' ORDER BY id"
    assert column(settings.database, question) == [5, 6, 7, 8, 9, 10, 3]
    assert column(settings.database, "SELECT contexts FROM sessions ORDER BY id") == [5, 10]
    assert imported.notes == ["Session 's': 4 of its contexts had a number already in use, or none; renumbered."]


def test_times_that_are_none_are_replaced_and_what_was_deleted_stays_so(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        insert(db, "projects", id="a", name="A", created_at="long ago", updated_at="1970-01-01 00:00:02")
        insert(db, "projects", id="b", name="B", created_at=None, deleted_at="")
        insert(db, "agents", id="c", name="C", created_at=None, last_active=7)
    imported = import_legacy(settings, old, clock=lambda: NOW)
    times = asked(settings.database, "SELECT created_at, updated_at, deleted_at FROM projects ORDER BY id")
    assert [tuple(row.values()) for row in times] == [(2 * SECOND, 2 * SECOND, None), (NOW, NOW, NOW)]
    assert asked(settings.database, "SELECT registered_at, last_heartbeat FROM agents") == [
        {"registered_at": 7 * SECOND, "last_heartbeat": 7 * SECOND}
    ]
    assert len(imported.notes) == 2
    assert "Project 'a' (A): its created_at 'long ago' is not a time; another of its times is used." in imported.notes


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (None, {}),
        (" ", {}),
        ('{"a": [1]}', {"a": [1]}),
        ("[1]", {"legacy": [1]}),
        ("plain words", {"legacy": "plain words"}),
        ('{"n": NaN}', {"legacy": '{"n": NaN}'}),
        ("[" * 100_000, {"legacy": "[" * 100_000}),
        (b"\xff", {"legacy": "\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_what_is_no_json_object_is_kept_in_one(old: Path, settings: Settings, written: Any, kept: Any) -> None:
    with database(old, "first", "contexts") as db:
        insert(db, "contexts", id="c", title="A\0B", metadata=written)
    import_legacy(settings, old)
    (context,) = asked(settings.database, "SELECT title, metadata FROM contexts")
    assert json.loads(context["metadata"]) == kept
    assert context["title"] == "A\N{REPLACEMENT CHARACTER}B"


def test_what_is_not_brought_is_said(old: Path, settings: Settings) -> None:
    with database(old, "first", "registration") as db:
        db.execute("CREATE TABLE invoices (id TEXT)")
        db.execute("ALTER TABLE teams ADD COLUMN colour TEXT")
        db.execute("UPDATE agent_tools SET enabled = 0 WHERE id = 'write'")
    assert import_legacy(settings, old).notes == [
        "invoices is not imported: the old server did not use it.",
        "teams.colour is not imported: the old server did not use it.",
        "The tool write was disabled. Disable it here with update_agent_tool.",
    ]


# Again.


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_second_time_changes_nothing_and_makes_no_backup(samples: Path, settings: Settings, sample: str) -> None:
    import_legacy(settings, samples / f"{sample}.db")
    before, files = dump(settings.database), sorted(settings.home.rglob("*"))
    imported = import_legacy(settings, samples / f"{sample}.db")
    assert added(imported) == {}
    assert imported.backup is None
    assert dump(settings.database) == before
    assert sorted(settings.home.rglob("*")) == files


def test_what_was_changed_here_since_is_left_as_it_is(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("UPDATE projects SET name = 'Penguins'")
        db.execute("UPDATE agents SET assigned_agent_id = 'lovelace' WHERE id = 'a-ada'")
        db.execute("UPDATE sessions SET deleted_at = 1")
    before = dump(settings.database)
    assert added(import_legacy(settings, samples / "small.db")) == {}
    assert dump(settings.database) == before


def test_what_the_old_server_wrote_since_is_added(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("UPDATE sessions SET contexts = 9 WHERE id = 's-field'")
    with closing(sqlite3.connect(samples / "small.db")) as db, db:
        insert(db, "agents", id="a-new", name="New", session_id="s-field", created_at="2024-05-01")
        for number in (3, 4):
            where = {"session_id": "s-field", "agent_id": "a-new", "sequence_number": number}
            insert(db, "contexts", id=f"new-{number}", **where, created_at=f"2024-05-0{number}")
    assert added(import_legacy(settings, samples / "small.db")) == {"agents": 1, "contexts": 2}
    question = "SELECT sequence_number FROM contexts WHERE agent_id = 'a-new' ORDER BY id"
    assert column(settings.database, question) == [10, 4]
    assert column(settings.database, "SELECT contexts FROM sessions WHERE id = 's-field'") == [10]


# The feed.


def test_each_agent_has_an_event_and_each_other_table_one(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    events = asked(settings.database, "SELECT kind, actor, subject, session, data FROM events ORDER BY id")
    tables = [("project", 1), ("session", 2), ("team", 2), ("context", 3)]
    assert [(e["kind"], e["subject"], json.loads(e["data"])) for e in events] == [
        *((f"{noun}.migrated", "legacy:small.db", {"found": n, "added": n}) for noun, n in tables),
        *(("agent.migrated", f"agent:{a}", {"agent_id": a}) for a in ("a-ada", "a-bob", "a-eve")),
    ]
    assert {e["actor"] for e in events} == {"operator"}
    assert [e["session"] for e in events[-3:]] == ["s-field", "s-field", None]


# The backup.


def test_the_backup_is_the_store_as_it_was_before(samples: Path, settings: Settings) -> None:
    first = import_legacy(settings, samples / "small.db", clock=lambda: NOW)
    assert first.backup is None  # there was nothing to back up
    before = dump(settings.database)
    imported = import_legacy(settings, samples / "full.db", clock=lambda: NOW)
    assert imported.backup == str(settings.home / "backups" / "coordination-20270115T080000.000000Z.db")
    backup = Path(imported.backup)
    assert list(backup.parent.iterdir()) == [backup]
    assert dump(backup) == before != dump(settings.database)
    assert column(backup, "PRAGMA integrity_check") == ["ok"]
    open_store(backup).close()


def test_without_a_backup_nothing_is_brought(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    (settings.home / "backups").write_text("in the way")
    before = dump(settings.database)
    error = refused(settings, samples / "full.db")
    assert (type(error), error.code) == (Unavailable, "BACKUP_FAILED")
    assert dump(settings.database) == before


# Whole or not at all.


def test_a_row_that_the_store_refuses_leaves_nothing_behind(samples: Path, settings: Settings) -> None:
    open_store(settings.database).close()
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("""CREATE TRIGGER house_rule BEFORE INSERT ON contexts WHEN new.id = 'c-2'
            BEGIN SELECT RAISE(ABORT, 'not in this house'); END""")
    before = dump(settings.database)
    error = refused(settings, samples / "small.db")
    assert (type(error), error.code, error.details) == (Conflict, "LEGACY_REFUSED", {"reason": "not in this house"})
    assert dump(settings.database) == before
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("DROP TRIGGER house_rule")
    assert import_legacy(settings, samples / "small.db").tables["contexts"].added == 3


# The old file.


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_old_file_is_left_byte_for_byte_as_it_was(samples: Path, settings: Settings, sample: str) -> None:
    source = samples / f"{sample}.db"
    before, files = (source.read_bytes(), source.stat().st_mtime_ns), sorted(samples.iterdir())
    import_legacy(settings, source)
    import_legacy(settings, source)
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before
    assert sorted(samples.iterdir()) == files


def test_what_the_old_server_has_only_in_its_log_is_brought_while_it_runs(samples: Path, settings: Settings) -> None:
    source = samples / "small.db"
    with closing(sqlite3.connect(source)) as server:
        server.execute("PRAGMA journal_mode = WAL")
        before = source.read_bytes()
        with server:
            insert(server, "projects", id="p-new", name="New")
        assert import_legacy(settings, source).tables["projects"].added == 2
        assert source.read_bytes() == before


def test_a_file_whose_name_has_marks_of_an_address_is_opened_as_named(samples: Path, settings: Settings) -> None:
    source = samples / "what? #1 %41.db"
    (samples / "small.db").rename(source)
    assert added(import_legacy(settings, source))["agents"] == 3


# While others work.


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
async def test_it_runs_in_a_process_that_has_the_store_open_and_in_a_thread_with_a_loop(
    samples: Path, workbench: Workbench
) -> None:
    assert added(import_legacy(workbench.settings, samples / "small.db"))["agents"] == 3
    assert Path(import_legacy(workbench.settings, samples / "registered.db").backup or "").exists()
    await workbench.call("register", name="Afterwards")
    assert column(workbench.settings.database, "PRAGMA integrity_check") == ["ok"]


# What is refused.


def empty(path: Path) -> None:
    path.write_bytes(b"")


def words(path: Path) -> None:
    path.write_text("These are only words. " * 50)


def another(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE sessions (id TEXT)")


def our_own(path: Path) -> None:
    open_store(path).close()


def without_ids(path: Path) -> None:
    with database(path, "first") as db:
        db.execute("ALTER TABLE teams RENAME COLUMN id TO team")


def damaged(path: Path) -> None:
    make_legacy.full(path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xa5" * 8192)


def cut_off(path: Path) -> None:
    make_legacy.full(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def crashed(path: Path) -> None:
    """As a server leaves it that ends within a transaction: with a journal that must be rolled back first."""
    running = path.with_name("running.db")
    make_legacy.small(running)
    with closing(sqlite3.connect(running)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.executemany("INSERT INTO projects (id) VALUES (?)", [(f"{n}" * 50,) for n in range(1000, 2000)])
        shutil.copy(running, path)
        shutil.copy(f"{running}-journal", f"{path}-journal")
        db.rollback()


@pytest.mark.parametrize(
    ("made", "error", "code", "says"),
    [
        (Path.mkdir, NotFound, "LEGACY_NOT_FOUND", "no file"),
        (lambda path: None, NotFound, "LEGACY_NOT_FOUND", "no file"),
        (words, BadInput, "NOT_A_DATABASE", "not an SQLite database"),
        (empty, BadInput, "NOT_LEGACY", "no table agents, projects, sessions, teams"),
        (another, BadInput, "NOT_LEGACY", "no table agents, projects, teams"),
        (our_own, BadInput, "NOT_LEGACY", "a store of Workbench already"),
        (without_ids, BadInput, "NOT_LEGACY", "table teams has no column id"),
        (damaged, Unavailable, "LEGACY_CORRUPT", "damaged"),
        (cut_off, Unavailable, "LEGACY_CORRUPT", "damaged"),
        (crashed, Unavailable, "LEGACY_UNREADABLE", "if that crashed"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_no_sound_legacy_database_is_refused_before_anything_is_touched(
    old: Path, settings: Settings, made: Callable[[Path], None], error: type[WorkbenchError], code: str, says: str
) -> None:
    made(old)
    found = refused(settings, old)
    assert (type(found), found.code) == (error, code)
    assert says in found.message
    assert not settings.home.exists()


# Any rows at all.

WORDS = st.sampled_from(["a", "b", "A b", "", " ", "pending_1", "operator", "a-2", "é\0"])
VALUES = st.one_of(WORDS, st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary(max_size=3))
TIMES = st.one_of(st.none(), st.sampled_from(["2024-01-01", "2024-01-02T00:00:00Z", "soon", ""]), st.integers(0, 9))
REFERENCES = ("project_id", "session_id", "team_id", "agent_id", "assigned_agent_id")
COLUMNS = {
    **dict.fromkeys(("id", "name", "title", *REFERENCES), VALUES),
    **dict.fromkeys(("created_at", "updated_at", "deleted_at", "last_active"), TIMES),
    "sequence_number": st.one_of(st.none(), st.integers(0, 3), VALUES),
    "registration_status": st.sampled_from(["pending", "assigned", None]),
    "selected_tool": st.sampled_from(["register", "read", "write", "all", None]),
    "metadata": VALUES,
    "capabilities": VALUES,
}
ROWS = st.lists(st.fixed_dictionaries({}, optional=COLUMNS), max_size=6)


@pytest.fixture(scope="module")
def empty_store() -> Iterator[Connection]:
    """A database with every table and no rows of a project."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=Connection)) as db:
        db.row_factory = sqlite3.Row
        migrate(db, scripts(), 0)
        db.execute("PRAGMA foreign_keys = ON")
        yield db


@hypothesis_settings(deadline=None)
@given(rows=st.fixed_dictionaries(dict.fromkeys(TABLES, ROWS)))
def test_whatever_the_rows_are_the_store_takes_each_of_them_once(
    empty_store: Connection, rows: dict[str, list[dict[str, Any]]]
) -> None:
    legacy = Legacy("any.db", {table: [Old(table, row) for row in rows[table]] for table in TABLES}, [])
    empty_store.execute("BEGIN")
    try:
        tx = SqliteTx(empty_store, NOW, "operator")
        plan = decide(legacy, target.present(tx), NOW)
        target.add(tx, plan, legacy)
        assert {table: len(plan.rows[table]) for table in TABLES[1:]} == {t: len(rows[t]) for t in TABLES[1:]}
        assert len(plan.rows["projects"]) >= len(rows["projects"])
        assert not decide(legacy, target.present(tx), NOW + SECOND).adds
        assert numbers_are_counted(tx)
    finally:
        empty_store.execute("ROLLBACK")


def numbers_are_counted(tx: SqliteTx) -> bool:
    """Whether each session knows the last number it has given out."""
    present = target.present(tx)
    return all(number <= present.last[session] for session, number in present.numbers)


# The samples themselves.


def test_the_samples_are_the_same_each_time_and_the_full_one_has_hundreds_of_rows(
    samples: Path, tmp_path: Path
) -> None:
    again = make_legacy.make(tmp_path / "again")
    assert [dump(path) for path in again] == [dump(samples / path.name) for path in again]
    assert sum(read(samples / "full.db").found.values()) == 562


def test_the_script_makes_them_and_says_where(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, make_legacy.__file__, tmp_path / "out"], check=True, capture_output=True)
    assert json.loads(done.stdout) == [str(tmp_path / "out" / f"{name}.db") for name in SAMPLES]


def main(arguments: Iterable[str]) -> None:
    """What a process of its own does: bring a database, and say what was imported."""
    project, source = map(Path, arguments)
    print(import_legacy(Settings(project=project), source).model_dump_json(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
