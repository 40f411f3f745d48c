"""The planned import of legacy rows: ids, names, numbers, times and references of any kind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from data.legacy.make_legacy import database, insert
from tests.conftest import Admit
from tests.legacy.conftest import NOW, added, asked, column, dump, rows
from workbench.app import Workbench
from workbench.legacy import import_legacy, target
from workbench.legacy.plan import decide
from workbench.legacy.source import TABLES, Legacy, Old
from workbench.model import SECOND
from workbench.state.settings import Settings
from workbench.store.migrate import migrate, scripts
from workbench.store.sqlite import SqliteTx
from workbench.store.sqlite_connection import SqliteConnection

# Ids and names.


def test_agents_keep_their_ids_except_those_that_name_other_actors(old: Path, settings: Settings) -> None:
    kept = ["Ada Lovelace", "Ada-Lovelace", "é", "@home/ada", "null", "x" * 200]
    changed = {"Operator": "agent-Operator", "pending_7": "agent-pending_7", "a#b": "a-b", "a\nb": "a-b-2", " a": "a"}
    with database(old, "first") as db:
        for number, agent_id in enumerate([*kept, *changed]):
            insert(db, "agents", id=agent_id, name="A", created_at=f"2024-03-{number + 1:02}")
    imported = import_legacy(settings, old)
    rows = asked(settings.database, "SELECT id, assigned_agent_id AS agent_id FROM agents")
    assert {row["id"]: row["agent_id"] for row in rows} == {agent_id: agent_id for agent_id in kept} | changed
    assert len(imported.notes) == len(changed)
    assert "Agent 'Operator': its id is in use here or not allowed; its new id is 'agent-Operator'." in imported.notes


@pytest.mark.anyio
async def test_an_imported_agent_gets_another_id_if_its_own_is_taken(
    samples: Path, workbench: Workbench, admit: Admit
) -> None:
    await admit("a-ada")
    imported = import_legacy(workbench.settings, samples / "small.db")
    names = column(workbench.settings.database, "SELECT assigned_agent_id FROM agents ORDER BY id_only, id")
    assert names == ["a-ada", "a-ada-2", "a-bob", "a-eve"]
    assert imported.notes == ["Agent 'a-ada': its id is in use here or not allowed; its new id is 'a-ada-2'."]


def test_an_active_agent_keeps_its_id_before_a_deleted_one(old: Path, settings: Settings) -> None:
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
    names = ["Monday", "Monday (2)", "Monday", "Monday"]
    assert column(settings.database, "SELECT name FROM sessions ORDER BY id") == names
    assert column(settings.database, "SELECT name FROM teams ORDER BY id") == ["t0", "t1", "t2"]
    assert imported.notes == ["Session 's1' (Monday): its name 'Monday' is in use here; its new name is 'Monday (2)'."]


def test_two_legacy_databases_with_equal_ids_are_both_imported_whole(tmp_path: Path, settings: Settings) -> None:
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
    assert rows(settings.database, question) == [
        ("Project 0", "Context 0", 1),
        ("Project 1", "Context 1", 1),
    ]
    before = dump(settings.database)
    assert [added(import_legacy(settings, source)) for source in sources] == [{}, {}]
    assert dump(settings.database) == before


# What is not as it should be.


def test_a_row_with_a_dangling_reference_is_kept_without_it(old: Path, settings: Settings) -> None:
    with database(old, "first", "contexts") as db:
        insert(db, "teams", id="t", name="Team", session_id="gone")
        insert(db, "agents", id="a", name="Ada", session_id="gone", team_id="gone")
        insert(db, "contexts", id="c", title="Note", project_id="gone", session_id="gone", agent_id="gone")
    imported = import_legacy(settings, old)
    assert column(settings.database, "SELECT session_id FROM teams") == [None]
    assert rows(settings.database, "SELECT session_id, team_id, access_level FROM agents") == [
        (None, None, "self_only")
    ]
    question = "SELECT project_id, session_id, agent_id, sequence_number FROM contexts"
    assert rows(settings.database, question) == [(None, None, None, None)]
    assert len(imported.notes) == 6
    assert "Team 't' (Team): its session_id 'gone' does not exist and is omitted." in imported.notes


def test_sessions_without_a_project_get_one_that_says_so_and_their_contexts_are_in_it(
    old: Path, settings: Settings
) -> None:
    with database(old, "first", "contexts") as db:
        for number, project in enumerate(["gone", "gone", None]):
            insert(db, "sessions", id=f"s{number}", name=f"S{number}", project_id=project)
        insert(db, "projects", id="p", name="P")
        insert(db, "sessions", id="s3", name="S", project_id="p")
        insert(db, "contexts", id="c", session_id="s3")
    imported = import_legacy(settings, old)
    question = "SELECT s.id, p.name FROM sessions s JOIN projects p ON p.id = s.project_id ORDER BY s.id"
    projects = [("s0", "gone"), ("s1", "gone"), ("s2", "Sessions without a project"), ("s3", "P")]
    assert rows(settings.database, question) == projects
    assert column(settings.database, "SELECT project_id FROM contexts") == ["p"]
    assert not [note for note in imported.notes if note.startswith("Context")]
    assert imported.tables["projects"].model_dump() == {"found": 1, "added": 3}
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


def test_invalid_times_are_replaced_and_deleted_rows_stay_deleted(old: Path, settings: Settings) -> None:
    with database(old, "first") as db:
        insert(db, "projects", id="a", name="A", created_at="long ago", updated_at="1970-01-01 00:00:02")
        insert(db, "projects", id="b", name="B", created_at=None, deleted_at="")
        insert(db, "agents", id="c", name="C", created_at=None, last_active=7)
    imported = import_legacy(settings, old, clock=lambda: NOW)
    times = rows(settings.database, "SELECT created_at, updated_at, deleted_at FROM projects ORDER BY id")
    assert times == [(2 * SECOND, 2 * SECOND, None), (NOW, NOW, NOW)]
    times = rows(settings.database, "SELECT registered_at, last_heartbeat FROM agents")
    assert times == [(7 * SECOND, 7 * SECOND)]
    assert len(imported.notes) == 2
    assert "Project 'a' (A): its created_at 'long ago' is not a time; another of its times is used." in imported.notes


def test_metadata_that_is_no_json_object_is_wrapped_in_one(old: Path, settings: Settings) -> None:
    metadata: list[tuple[Any, Any]] = [
        (None, {}),
        (" ", {}),
        ('{"a": [1]}', {"a": [1]}),
        ("[1]", {"legacy": [1]}),
        ("plain words", {"legacy": "plain words"}),
        ('{"n": NaN}', {"legacy": '{"n": NaN}'}),
        ("[" * 100_000, {"legacy": "[" * 100_000}),
        (b"\xff", {"legacy": "\N{REPLACEMENT CHARACTER}"}),
    ]
    with database(old, "first", "contexts") as db:
        for number, (written, _) in enumerate(metadata):
            insert(db, "contexts", id=f"c{number}", title="A\0B", metadata=written)
    import_legacy(settings, old)
    contexts = rows(settings.database, "SELECT title, metadata FROM contexts ORDER BY id")
    assert [json.loads(kept) for _, kept in contexts] == [kept for _, kept in metadata]
    assert {title for title, _ in contexts} == {"A\N{REPLACEMENT CHARACTER}B"}


def test_an_import_notes_the_tables_and_columns_it_omits(old: Path, settings: Settings) -> None:
    with database(old, "first", "registration") as db:
        db.execute("CREATE TABLE invoices (id TEXT)")
        db.execute("ALTER TABLE teams ADD COLUMN colour TEXT")
        db.execute("UPDATE agent_tools SET enabled = 0 WHERE id = 'write'")
    assert import_legacy(settings, old).notes == [
        "invoices is not imported: the old server did not use it.",
        "teams.colour is not imported: the old server did not use it.",
        "The tool write was disabled. Disable it here with update_agent_tool.",
    ]


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
def new_store() -> Iterator[SqliteConnection]:
    """A database with every table and no rows of a project."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=SqliteConnection)) as db:
        db.row_factory = sqlite3.Row
        migrate(db, scripts(), 0)
        db.execute("PRAGMA foreign_keys = ON")
        yield db


@hypothesis_settings(deadline=None)
@given(written=st.fixed_dictionaries(dict.fromkeys(TABLES, ROWS)))
def test_any_legacy_rows_are_added_to_the_store_once(
    new_store: SqliteConnection, written: dict[str, list[dict[str, Any]]]
) -> None:
    legacy = Legacy("any.db", {table: [Old(table, row) for row in written[table]] for table in TABLES}, [])
    new_store.execute("BEGIN")
    try:
        tx = SqliteTx(new_store, NOW, "operator")
        plan = decide(legacy, target.present(tx), NOW)
        target.add(tx, plan, legacy)
        assert {table: len(plan.rows[table]) for table in TABLES[1:]} == {t: len(written[t]) for t in TABLES[1:]}
        assert len(plan.rows["projects"]) >= len(written["projects"])
        present = target.present(tx)
        assert not decide(legacy, present, NOW + SECOND).adds
        assert all(number <= present.last[session] for session, number in present.numbers)
    finally:
        new_store.execute("ROLLBACK")
