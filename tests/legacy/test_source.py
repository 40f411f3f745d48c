"""Reading a legacy database: it is left unchanged, or refused if it is unsound; and sample databases."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from data.legacy import make_legacy
from data.legacy.make_legacy import database, insert
from tests import given
from tests.legacy.conftest import SAMPLES, added, dump
from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError
from workbench.legacy import import_legacy
from workbench.legacy.source import read
from workbench.state.settings import Settings
from workbench.store.sqlite import open_store

# The old file.


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_old_file_is_left_byte_for_byte_as_it_was(samples: Path, settings: Settings, sample: str) -> None:
    source = samples / f"{sample}.db"
    before, files = (source.read_bytes(), source.stat().st_mtime_ns), sorted(samples.iterdir())
    for _ in range(2):
        import_legacy(settings, source)
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before
    assert sorted(samples.iterdir()) == files


def test_rows_in_the_log_of_the_running_old_server_are_imported(samples: Path, settings: Settings) -> None:
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


# What is refused.


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
    os.truncate(path, path.stat().st_size // 2 + 100)


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
        (Path.touch, BadInput, "NOT_LEGACY", "no table agents, projects, sessions, teams"),
        (another, BadInput, "NOT_LEGACY", "no table agents, projects, teams"),
        (our_own, BadInput, "NOT_LEGACY", "a store of Workbench already"),
        (without_ids, BadInput, "NOT_LEGACY", "table teams has no column id"),
        (damaged, Unavailable, "LEGACY_CORRUPT", "damaged"),
        (cut_off, Unavailable, "LEGACY_CORRUPT", "damaged"),
        (crashed, Unavailable, "LEGACY_UNREADABLE", "if that crashed"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_unsound_legacy_database_is_refused_before_anything_is_written(
    old: Path, settings: Settings, made: Callable[[Path], None], error: type[WorkbenchError], code: str, says: str
) -> None:
    made(old)
    found = given.refused(code, import_legacy, settings, old)
    assert type(found) is error
    assert says in found.message
    assert not settings.home.exists()


# The samples that come with the project.


def test_the_samples_are_the_same_each_time_and_the_full_one_has_hundreds_of_rows(
    samples: Path, tmp_path: Path
) -> None:
    again = make_legacy.make(tmp_path / "again")
    assert [dump(path) for path in again] == [dump(samples / path.name) for path in again]
    assert sum(read(samples / "full.db").found.values()) == 562


def test_the_script_makes_the_samples_and_names_their_files(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, make_legacy.__file__, tmp_path / "out"], check=True, capture_output=True)
    assert json.loads(done.stdout) == [str(tmp_path / "out" / f"{name}.db") for name in SAMPLES]
