"""`workbench backup FILE` and `restore FILE`: a project in one file, and what is refused of such a file."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.chance import SOAK, chance
from tests.cli.conftest import ARCHIVED, ARCHIVED_SECRET, Type, code, data
from tests.conftest import NewDatabase, git, in_environment
from workbench.app import Workbench
from workbench.archives.archive import KEPT, STORE, opened
from workbench.archives.making import back_up
from workbench.state.restore_note import PLACE
from workbench.state.settings import Settings
from workbench.store.copying import copy_as_file, hash_tables
from workbench.store.opening import open_store

pytestmark = pytest.mark.long


def rows(settings: Settings, place: Path) -> dict[str, tuple[int, str]]:
    """The hashes of the rows of a project's store."""
    if settings.database_url is None:
        return hash_tables(settings.database)
    copy_as_file(settings.database_url.conninfo, place / "rows.db")
    return hash_tables(place / "rows.db")


def references(project: Path) -> str:
    """All references of a repository, and what is checked out."""
    return git("for-each-ref", cwd=project) + git("symbolic-ref", "HEAD", cwd=project)


def secrets_in(archive: Path, home: Path) -> list[str]:
    """The files of an archive with a secret that was planted, or with what a file has that belongs to no archive."""
    files = [path for path in home.iterdir() if path.is_file() and path.name not in KEPT]
    secret = {text.strip() for path in files if "coordination" not in path.name if (text := path.read_text())}
    with zipfile.ZipFile(archive) as members:
        content = {name: members.read(name) for name in members.namelist()}
    assert len(secret) > 2
    return [
        name
        for name, bytes_ in content.items()
        if any(value.encode() in bytes_ for value in secret | {ARCHIVED_SECRET, "Tn4kQ8wZr2Lx"})
    ]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The inodes of what this process has waited for until it was on the disk."""
    inodes, fsync = set[int](), os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        inodes.add(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    return inodes


def lost_in_a_power_cut(paths: Iterable[Path], synced: set[int]) -> list[Path]:
    """The files that are not certain to be on the disk, or whose names are not."""
    return [path for path in paths if not {path.stat().st_ino, path.parent.stat().st_ino} <= synced]


def test_an_archive_becomes_the_same_project_in_an_empty_directory(
    synced: set[int],
    archive: Path,
    run: Type,
    migrated: Settings,
    tmp_path: Path,
    new_database: NewDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    database = new_database()
    for name, value in in_environment(database).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WORKBENCH_PROJECT", str(place))
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert not secrets_in(archive, migrated.home)
    assert lost_in_a_power_cut([archive], synced) == []
    data(run("--json", "restore", str(archive)))
    brought = [*(place / ".aiswarm" / name for name in ARCHIVED), place / "README.md", *(place / ".git").rglob("*")]
    assert lost_in_a_power_cut([*brought, place / ".aiswarm" / "agents", place / ".git"], synced) == []
    restored = Settings.load(place)
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    assert rows(restored, tmp_path / "after") == rows(migrated, tmp_path / "before")
    assert references(place) == references(migrated.project)
    assert not (place / ".git" / "worktrees").exists()
    assert git("status", "--porcelain", cwd=place) == git("status", "--porcelain", cwd=migrated.project)
    assert {name: (restored.home / name).read_text() for name in ARCHIVED} == ARCHIVED
    assert sorted(path.name for path in place.iterdir()) == [".aiswarm", ".git", "README.md"]
    assert len(data(run("--json", "tasks"))) == 2
    assert code(run("backup", str(archive))) == "ARCHIVE_EXISTS"


@pytest.mark.sqlite("replaces the store's file")
def test_an_archive_takes_the_place_of_the_state_of_its_own_project(
    archive: Path, run: Type, migrated: Settings, synced: set[int]
) -> None:
    root = migrated.project
    assert run("cancel", "1").status == 0
    (migrated.home / "logs" / "worker.log").write_text("newer")
    git("update-ref", "-d", "refs/workbench/attempts/1/1", cwd=root)
    git("branch", "-m", "agent/island", "agent/island/north", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "Newer", cwd=root)
    newer = git("rev-parse", "main", cwd=root)
    migrated.database.write_bytes(b"X" * 100)
    assert code(run("restore", str(archive))) == "NOT_CONFIRMED"
    done = data(run("--json", "restore", str(archive), "--yes"))
    aside = Path(done["aside"])
    put = [migrated.home / "logs" / "worker.log", migrated.database, aside]
    assert lost_in_a_power_cut(put, synced) == []
    assert {path.stat().st_ino for path in (aside, aside / "logs")} <= synced
    assert ((aside / "logs" / "worker.log").read_text(), (aside / "coordination.db").read_bytes()) == (
        "newer",
        b"X" * 100,
    )
    assert {task["status"] for task in data(run("--json", "tasks"))} == {"pending"}
    assert set(done["moved"]) == {"refs/heads/main", "refs/heads/agent/island"}
    moved = {name: git("rev-parse", f"{place}^{{commit}}", cwd=root) for name, place in done["moved"].items()}
    assert git("rev-parse", "main", cwd=root) == newer
    assert moved["refs/heads/main"] == git("rev-parse", "main~", cwd=root)
    assert moved["refs/heads/agent/island"] == git("rev-parse", "agent/island/north", cwd=root)
    assert git("rev-parse", "refs/workbench/attempts/1/1", cwd=root) == moved["refs/heads/agent/island"]
    again = data(run("--json", "restore", str(archive), "--yes"))
    assert (again["moved"], git("rev-parse", "main", cwd=root)) == (done["moved"], newer)


def test_a_store_that_is_used_or_a_database_that_has_one_keeps_everything_as_it_is(
    archive: Path, run: Type, migrated: Settings
) -> None:
    assert run("cancel", "1").status == 0
    git("update-ref", "-d", "refs/workbench/attempts/1/1", cwd=migrated.project)
    (log := migrated.home / "logs" / "worker.log").write_text("newer")
    before = references(migrated.project)
    if migrated.database_url is None:
        with closing(open_store(migrated.database)):
            assert code(run("restore", str(archive), "--yes")) == "STORE_IN_USE"
    else:
        assert code(run("restore", str(archive), "--yes")) == "COPY_NOT_EMPTY"
    assert (references(migrated.project), log.read_text()) == (before, "newer")


@pytest.mark.sqlite("an archive is the same on every store")
def test_a_project_within_its_repository_comes_back_where_it_was(
    repository: Path, run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "inner").mkdir()
    monkeypatch.setenv("WORKBENCH_PROJECT", str(repository / "inner"))
    run("init")
    (broken := repository / ".git/refs/workbench/attempts/98/1").parent.mkdir(parents=True)
    broken.write_text("1" * 40 + "\n")
    (archive := tmp_path / "elsewhere" / "inner.archive").parent.mkdir()
    assert run("backup", str(archive)).status == 0
    monkeypatch.setenv("WORKBENCH_PROJECT", str(archive.parent))
    assert data(run("--json", "restore", str(archive)))["project"] == str(archive.parent / "inner")
    assert (archive.parent / "inner" / ".aiswarm" / "coordination.db").exists()
    assert (archive.parent / "README.md").exists()


@pytest.mark.timeout(120)
def test_a_restore_that_is_killed_is_told_and_completed_by_the_next_one(
    archive: Path, migrated: Settings, tmp_path: Path, new_database: NewDatabase
) -> None:
    (place := tmp_path / "place").mkdir()
    git("clone", "-q", str(migrated.project), str(clone := tmp_path / "clone"), cwd=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "Newer", cwd=clone)
    (tmp_path / "counted").mkdir()
    moments, jobs = chance("kills"), list[dict[str, Any]]()

    def job(directory: Path, database: Mapping[str, Any], *words: str, at: float | None = None) -> None:
        environment = {**in_environment(database), "WORKBENCH_PROJECT": str(directory)}
        jobs.append({"words": ["--json", *words], "environment": environment, "at": at})

    job(tmp_path / "counted", new_database(), "restore", str(archive))
    directories = [place, clone] if SOAK else [moments.choice([place, clone])]
    databases = {directory: new_database() for directory in directories}
    for directory, database in databases.items():
        for _ in range(1 + 20 * SOAK):
            job(directory, database, "restore", str(archive), "--yes", at=moments.random())
            job(directory, database, "tasks")
            job(directory, database, "restore", str(archive), "--yes")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed"], input=json.dumps(jobs), text=True, capture_output=True, check=True
    )
    counted, *answers = map(json.loads, ran.stdout.splitlines())
    assert counted["status"] == 0
    for killed, seen, again in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
        assert (again["status"], again["err"]) == (0, ""), (killed, seen)
        if seen["status"]:
            assert json.loads(seen["err"])["code"] == "RESTORE_UNFINISHED"
        else:
            assert len(json.loads(seen["out"])) in (0, 2)
    ours = rows(migrated, tmp_path)
    for directory, database in databases.items():
        restored = Settings.load(directory).model_copy(update=database)
        assert rows(restored, directory) == ours
        kept = git("for-each-ref", "refs/workbench/attempts", cwd=directory)
        assert "attempts" in kept in references(migrated.project)
        assert directory is clone or references(directory) == references(migrated.project)
        assert {name: (restored.home / name).read_text() for name in ARCHIVED} == ARCHIVED
        assert not (directory / PLACE).exists()


@pytest.mark.anyio
async def test_an_archive_that_is_made_during_work_has_a_state_that_existed(
    workbench: Workbench, tmp_path: Path
) -> None:
    counted, backing_up = 0, asyncio.Event()

    async def work() -> None:
        nonlocal counted
        while not backing_up.is_set():
            await given.task(workbench)
            counted += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(work())
        while counted < 20:
            await asyncio.sleep(0)
        before = counted
        await asyncio.to_thread(back_up, workbench.settings, tmp_path / "archive")
        after = counted + 8
        backing_up.set()
    with opened(tmp_path / "archive") as archive:
        archive.unpack(tmp_path / "unpacked")
    with closing(sqlite3.connect(tmp_path / "unpacked" / STORE)) as db:
        (counts,) = db.execute(
            "SELECT (SELECT COUNT(*) FROM tasks), (SELECT MAX(id) FROM tasks), (SELECT COUNT(*) FROM task_status), "
            "(SELECT COUNT(*) FROM events WHERE kind = 'task.created')"
        )
    assert (len(set(counts)), before <= counts[0] <= after) == (1, True)
