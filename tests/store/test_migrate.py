"""Migrations keep spec 3's guarantees: in order, each once, each whole or not at all, and written down."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.store.migrate import MIGRATIONS, Script, migrate, read_scripts, scripts
from workbench.store.sqlite import open_store

HISTORY = "SELECT migration_name, script_hash, applied_at, execution_time_ms, success, reason FROM migration_history"
OBJECTS = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"

ONE = Script("001_one", "CREATE TABLE one (x INTEGER);\nINSERT INTO one VALUES (1);\n")
TWO = Script("002_two", "ALTER TABLE one ADD COLUMN y INTEGER;\nUPDATE one SET y = x + 1;\n")
AGAIN = Script("003_again", "-- rerunnable\nDROP VIEW IF EXISTS again;\nCREATE VIEW again AS SELECT x FROM one;\n")
BROKEN = Script(
    "002_broken", "CREATE TABLE two (x INTEGER);\nINSERT INTO one VALUES (2);\nINSERT INTO nowhere VALUES (1);"
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An empty database."""
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None, timeout=20)) as connection:
        yield connection


def history(db: sqlite3.Connection) -> list[tuple[str, str, int, str]]:
    """The recorded migrations: name, hash, success, reason."""
    return [(name, sha, success, why) for name, sha, _, _, success, why in db.execute(f"{HISTORY} ORDER BY id")]


def objects(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute(OBJECTS)]


def ran(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """The scripts that were run, and whether each succeeded."""
    return [(name, success) for name, _, success, _ in history(db)]


def dump(db: sqlite3.Connection) -> list[str]:
    """Everything that is in a database."""
    return list(db.iterdump())


def refused(db: sqlite3.Connection, *wanted: Script) -> WorkbenchError:
    with pytest.raises(WorkbenchError) as error:
        migrate(db, wanted, 0)
    assert not db.in_transaction
    return error.value


def changed(script: Script, text: str = "\n-- a remark\n") -> Script:
    return Script(script.name, script.text + text)


def test_new_scripts_are_run_once_in_order_and_written_down(db: sqlite3.Connection) -> None:
    assert migrate(db, [ONE, TWO], now=77) == ["001_one", "002_two"]
    assert db.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]
    rows = db.execute(HISTORY).fetchall()
    assert [row[2] for row in rows] == [77, 77]
    assert all(isinstance(row[3], int) and row[3] >= 0 for row in rows)
    assert migrate(db, [ONE, TWO, AGAIN], 78) == ["003_again"]
    assert history(db) == [(s.name, s.sha256, 1, "New migration") for s in (ONE, TWO, AGAIN)]
    assert history(db)[0][1] == hashlib.sha256(ONE.text.encode()).hexdigest()
    before = dump(db)
    assert migrate(db, [ONE, TWO, AGAIN], 79) == []
    assert dump(db) == before


def test_a_changed_script_is_drift_and_nothing_is_changed(db: sqlite3.Connection) -> None:
    migrate(db, [ONE, AGAIN], 0)
    before = dump(db)
    error = refused(db, changed(ONE), TWO, AGAIN)
    assert isinstance(error, Conflict)
    assert (error.code, error.details) == ("MIGRATION_DRIFT", {"migration": "001_one"})
    assert "001_one" in error.message
    later = refused(db, ONE, TWO, Script(AGAIN.name, "SELECT 1;"))
    assert later.code == "MIGRATION_DRIFT", "drift of a later script keeps an earlier new one from running"
    assert dump(db) == before


def test_a_changed_script_that_may_be_rerun_is_run_again_with_a_warning_and_a_reason(
    db: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    migrate(db, [ONE, TWO, AGAIN], 0)
    wider = Script(AGAIN.name, AGAIN.text.replace("SELECT x", "SELECT x, y"))
    with caplog.at_level(logging.WARNING):
        assert migrate(db, [ONE, TWO, wider], 1) == ["003_again"]
    assert "003_again was modified" in caplog.text
    assert db.execute("SELECT * FROM again").fetchall() == [(1, 2)]
    assert history(db)[-1] == ("003_again", wider.sha256, 1, "Script modified")
    assert migrate(db, [ONE, TWO, wider], 2) == []
    assert migrate(db, [ONE, TWO, AGAIN], 3) == ["003_again"]
    assert [row[3] for row in history(db)[-3:]] == ["New migration", "Script modified", "Script modified"]


def test_a_script_that_fails_leaves_nothing_behind_is_written_down_and_tried_again(db: sqlite3.Connection) -> None:
    error = refused(db, ONE, BROKEN, AGAIN)
    assert isinstance(error, Unavailable)
    assert (error.code, error.details) == ("MIGRATION_FAILED", {"migration": "002_broken"})
    assert "nowhere" in error.message
    assert objects(db) == ["migration_history", "one"]
    assert db.execute("SELECT x FROM one").fetchall() == [(1,)]
    assert history(db)[0] == ("001_one", ONE.sha256, 1, "New migration")
    assert history(db)[1:] == [("002_broken", BROKEN.sha256, 0, "no such table: nowhere")]
    refused(db, ONE, BROKEN)
    repaired = Script(BROKEN.name, "CREATE TABLE two (x INTEGER);")
    assert migrate(db, [ONE, repaired], 5) == ["002_broken"]
    assert migrate(db, [ONE, repaired], 6) == []
    assert ran(db) == [("001_one", 1), ("002_broken", 0), ("002_broken", 0), ("002_broken", 1)]


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "); CREATE TABLE three (x INTEGER);",
        ");\nINSERT INTO one VALUES (1, 2, 3);",
        ");\nnonsense;",
    ],
)
def test_every_kind_of_failed_script_is_recorded(db: sqlite3.Connection, rest: str) -> None:
    assert refused(db, ONE, Script("002_bad", f"CREATE TABLE two (x INTEGER{rest}")).code == "MIGRATION_FAILED"
    assert objects(db) == ["migration_history", "one"]
    assert ran(db) == [("001_one", 1), ("002_bad", 0)]


def test_a_database_of_a_newer_program_is_refused_and_not_changed(db: sqlite3.Connection) -> None:
    migrate(db, [ONE, TWO, AGAIN], 0)
    before = dump(db)
    error = refused(db, ONE, changed(AGAIN))
    assert isinstance(error, Conflict)
    assert (error.code, error.details) == ("MIGRATION_UNKNOWN", {"migrations": ["002_two"]})
    assert dump(db) == before


def test_line_ends_do_not_matter(db: sqlite3.Connection, tmp_path: Path) -> None:
    windows = [Script(s.name, s.text.replace("\n", "\r\n")) for s in (ONE, TWO, AGAIN)]
    assert [s.sha256 for s in windows] == [s.sha256 for s in (ONE, TWO, AGAIN)]
    assert [s.rerunnable for s in windows] == [False, False, True]
    assert migrate(db, windows, 0) == ["001_one", "002_two", "003_again"]
    assert migrate(db, [ONE, TWO, AGAIN], 1) == []

    for script in (ONE, TWO, AGAIN):
        (tmp_path / f"{script.name}.sql").write_bytes(script.text.replace("\n", "\r\n").encode())
    assert migrate(db, read_scripts(tmp_path), 2) == []


def test_triggers_and_trailing_remarks_are_whole_statements(db: sqlite3.Connection) -> None:
    trigger = (
        "CREATE TRIGGER t AFTER INSERT ON one\nBEGIN\n    UPDATE one SET x = 9;\n    SELECT 1;\nEND;\n-- the end\n"
    )
    assert migrate(db, [ONE, Script("002_trigger", trigger)], 0) == ["001_one", "002_trigger"]
    db.execute("INSERT INTO one VALUES (3)")
    assert db.execute("SELECT x FROM one").fetchall() == [(9,), (9,)]


def test_the_shipped_scripts_have_numbers_of_their_own_and_are_read_in_order() -> None:
    names = [script.name for script in scripts()]
    assert names == sorted(path.stem for path in MIGRATIONS.glob("*.sql"))
    numbers = [name.partition("_")[0] for name in names]
    assert [f"{int(number):03}" for number in numbers] == numbers == sorted(set(numbers))


def test_a_fresh_project_is_migrated_when_it_is_opened(tmp_path: Path) -> None:
    for expected in ([script.name for script in scripts()], []):
        with closing(open_store(tmp_path / "deep" / "er" / "coordination.db")) as store:
            assert store.migrated == expected


# Several processes at once.


class Overtaken(sqlite3.Connection):
    """A connection that another one overtakes just before it begins its second transaction."""

    overtake: Callable[[], object]
    begun = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE":
            self.begun += 1
            if self.begun == 2:
                self.overtake()
        return super().execute(sql, *values)


def test_a_script_that_another_process_already_ran_is_not_run_again(db: sqlite3.Connection, tmp_path: Path) -> None:
    slow = sqlite3.connect(tmp_path / "some.db", isolation_level=None, factory=Overtaken)
    slow.overtake = lambda: migrate(db, [ONE, TWO], 1)
    assert migrate(slow, [ONE, TWO], 2) == []
    assert slow.begun > 1
    slow.close()
    assert ran(db) == [("001_one", 1), ("002_two", 1)]
    assert db.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]


GATED = """
import fcntl, sqlite3, sys
from pathlib import Path
from workbench.store.migrate import migrate, read_scripts
from workbench.store.sqlite import open_store
gate = open(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    print("waiting", flush=True)
    fcntl.flock(gate, fcntl.LOCK_SH)
    fcntl.flock(gate, fcntl.LOCK_UN)
    place = Path(line.strip())
"""
"""What each of several processes does with the directories it is told, once the gate opens."""
OPENS = """    store = open_store(place / "coordination.db")
    print("ran", *store.migrated, flush=True)
    store.close()
"""
MIGRATES = """    db = sqlite3.connect(place / "some.db", isolation_level=None, timeout=20)
    print("ran", *migrate(db, read_scripts(place), 0), flush=True)
    db.close()
"""
LONG = (
    "WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 100000) SELECT max(n) FROM count"
)
AtOnce = Callable[[Path], list[list[str]]]


@pytest.fixture
def five(child: Any, tmp_path: Path) -> Callable[[str], AtOnce]:
    """`five(code)(directory)`: have five processes do something at the same moment; what each of them ran."""

    def start(code: str) -> AtOnce:
        (tmp_path / "child.py").write_text(GATED + code)
        (tmp_path / "gate").touch()
        processes = [child(str(tmp_path / "child.py"), tmp_path / "gate") for _ in range(5)]
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 5

        def at_once(directory: Path) -> list[list[str]]:
            with (tmp_path / "gate").open() as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                for process in processes:
                    process.stdin.write(f"{directory}\n")
                assert [process.stdout.readline() for process in processes] == ["waiting\n"] * 5
            answers = [process.stdout.readline().split() for process in processes]
            assert [answer[:1] for answer in answers] == [["ran"]] * 5
            return [answer[1:] for answer in answers]

        return at_once

    return start


@pytest.mark.long
def test_five_processes_open_a_fresh_project_at_once(five: Callable[[str], AtOnce], tmp_path: Path) -> None:
    open_at_once = five(OPENS)
    names = [script.name for script in scripts()]
    for number in range(12):
        project = tmp_path / f"project {number}"
        assert sorted(open_at_once(project)) == [[], [], [], [], names]
        with closing(sqlite3.connect(project / "coordination.db")) as db:
            assert ran(db) == [(name, 1) for name in names]


def test_five_processes_that_migrate_at_once_run_each_script_once(
    five: Callable[[str], AtOnce], db: sqlite3.Connection, tmp_path: Path
) -> None:
    for number in range(1, 6):
        make = f"CREATE TABLE table{number} (n INTEGER);\nINSERT INTO table{number} {LONG};\n"
        (tmp_path / f"00{number}_make.sql").write_text(make)
    db.execute("PRAGMA journal_mode = WAL")
    names = [script.name for script in read_scripts(tmp_path)]
    assert sorted(itertools.chain(*five(MIGRATES)(tmp_path))) == names
    assert db.execute("SELECT n FROM table5").fetchall() == [(100_000,)]
    assert ran(db) == [(name, 1) for name in names]
