"""`workbench backup FILE` and `restore FILE`: a project in one file, and what is refused of such a file."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Type, code, data
from tests.conftest import NewDatabase, git, in_environment
from workbench.archives.archive import MANIFEST, STORE
from workbench.state.settings import Settings
from workbench.store.copying import copy_as_file, hash_tables
from workbench.store.opening import open_store

pytestmark = pytest.mark.long

SECRET = "sk-ant-api03-" + "Zx9" * 20
FILES = {
    "logs/worker.log": "It counted 344.\n",
    "agent_sessions/1/session.jsonl": "{}\n",
    "runs/first/out.ipynb": "{}",
    "agents/counter.md": "---\nname: counter\n---\nCount.\n",
    "trash/old.bundle": "a bundle",
}


@pytest.fixture
def archive(run: Type, penguins: Path, migrated: Settings, tmp_path: Path) -> Path:
    """An archive of a project with two tasks, a kept attempt, a tag and files, and with secrets."""
    root, home = migrated.project, migrated.home
    (root / "count.txt").write_text("344\n")
    git("checkout", "-q", "-b", "agent/island", cwd=root)
    (root / "way").symlink_to(tmp_path)
    git("add", "count.txt", "way", cwd=root)
    git("commit", "-q", "-m", "Count", cwd=root)
    git("update-ref", "refs/workbench/attempts/1/1", "HEAD", cwd=root)
    git("tag", "-a", "first", "-m", "First", "main", cwd=root)
    git("checkout", "-q", "main", cwd=root)
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name in ("secrets.key", "environments/a.json", "koi/key.pem", "server.json"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(SECRET)
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"x": {"command": "x", "env": {"API_KEY": SECRET}}}}))
    told = run("backup", str(tmp_path / "project.archive"))
    assert (told.status, told.err) == (0, "")
    assert "Left out, since they may hold secrets: mcp.json." in told.out
    return tmp_path / "project.archive"


def rows(settings: Settings, place: Path) -> dict[str, tuple[int, str]]:
    """The hashes of the rows of a project's store."""
    if settings.database_url is None:
        return hash_tables(settings.database)
    copy_as_file(settings.database_url.conninfo, place / "rows.db")
    return hash_tables(place / "rows.db")


def references(project: Path) -> str:
    """All references of a repository, and what is checked out."""
    return git("for-each-ref", cwd=project) + git("symbolic-ref", "HEAD", cwd=project)


def test_an_archive_becomes_the_same_project_in_an_empty_directory(
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
    with zipfile.ZipFile(archive) as members:
        assert all(SECRET.encode() not in members.read(name) for name in members.namelist())
    data(run("--json", "restore", str(archive)))
    restored = Settings.load(place)
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    assert rows(restored, tmp_path / "after") == rows(migrated, tmp_path / "before")
    assert references(place) == references(migrated.project)
    assert git("status", "--porcelain", cwd=place) == git("status", "--porcelain", cwd=migrated.project)
    assert {name: (restored.home / name).read_text() for name in FILES} == FILES
    assert sorted(path.name for path in place.iterdir()) == [".aiswarm", ".git", "README.md"]
    assert len(data(run("--json", "tasks"))) == 2
    assert code(run("backup", str(archive))) == "ARCHIVE_EXISTS"


@pytest.mark.sqlite("replaces the store's file")
def test_an_archive_takes_the_place_of_the_state_of_its_own_project(
    archive: Path, run: Type, migrated: Settings
) -> None:
    root = migrated.project
    run("cancel", "1", "--yes")
    (migrated.home / "logs" / "worker.log").write_text("newer")
    git("update-ref", "-d", "refs/workbench/attempts/1/1", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "Newer", cwd=root)
    newer = git("rev-parse", "main", cwd=root)
    migrated.database.write_bytes(b"X" * 100)
    assert code(run("restore", str(archive))) == "NOT_CONFIRMED"
    done = data(run("--json", "restore", str(archive), "--yes"))
    aside = Path(done["aside"])
    assert ((aside / "logs" / "worker.log").read_text(), (aside / "coordination.db").read_bytes()) == (
        "newer",
        b"X" * 100,
    )
    assert {task["status"] for task in data(run("--json", "tasks"))} == {"pending"}
    (moved,) = done["moved"].items()
    assert (moved[0], git("rev-parse", "main", cwd=root)) == ("refs/heads/main", newer)
    assert git("rev-parse", moved[1], cwd=root) == git("rev-parse", "main~", cwd=root)
    assert git("rev-parse", "refs/workbench/attempts/1/1", cwd=root) == git("rev-parse", "agent/island", cwd=root)


def changed(archive: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Write an archive anew with other members."""
    with zipfile.ZipFile(archive) as members:
        content = {name: members.read(name) for name in members.namelist()}
    change(content)
    with zipfile.ZipFile(archive, "w") as members:
        for name, bytes_ in content.items():
            members.writestr(name, bytes_)


def told(content: dict[str, bytes], **values: Any) -> None:
    """Say something else in the manifest."""
    content[MANIFEST] = json.dumps(json.loads(content[MANIFEST]) | values).encode()


def moved(content: dict[str, bytes], name: str) -> None:
    """Give a file of the archive another name."""
    manifest = json.loads(content[MANIFEST])
    manifest["files"][name] = manifest["files"].pop("state/logs/worker.log")
    content[name] = content.pop("state/logs/worker.log")
    told(content, files=manifest["files"])


def link(archive: Path) -> None:
    """Add a link to the archive."""
    info = zipfile.ZipInfo("state/logs/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr(info, "/etc/passwd")


def of_the_future(content: dict[str, bytes]) -> None:
    """Give the store a migration that this program does not know."""
    with sqlite3.connect(":memory:") as db:
        db.deserialize(content[STORE])
        db.execute(
            "UPDATE migration_history SET migration_name = '999' WHERE id = (SELECT MAX(id) FROM migration_history)"
        )
        db.commit()
        content[STORE] = db.serialize()
    manifest = json.loads(content[MANIFEST])
    (file := Path(os.environ["WORKBENCH_PROJECT"]).parent / "future.db").write_bytes(content[STORE])
    manifest["files"][STORE] |= {"bytes": len(content[STORE]), "sha256": hashlib.sha256(content[STORE]).hexdigest()}
    told(content, files=manifest["files"], tables=hash_tables(file))


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "is cut": (lambda archive: os.truncate(archive, archive.stat().st_size * 2 // 3), "ARCHIVE_DAMAGED"),
    "is empty": (lambda archive: os.truncate(archive, 0), "ARCHIVE_DAMAGED"),
    "has other bytes": (
        lambda archive: changed(archive, lambda c: c.update({STORE: c[STORE] + b" "})),
        "ARCHIVE_DAMAGED",
    ),
    "has other rows": (
        lambda archive: changed(archive, lambda c: told(c, tables={"tasks": [1, "0"]})),
        "ARCHIVE_DAMAGED",
    ),
    "lacks a file": (lambda archive: changed(archive, lambda c: c.pop("state/logs/worker.log")), "ARCHIVE_DAMAGED"),
    "is of a newer version": (lambda archive: changed(archive, lambda c: told(c, format=2, more=1)), "ARCHIVE_NEWER"),
    "has a newer store": (lambda archive: changed(archive, of_the_future), "ARCHIVE_NEWER"),
    "leaves its place": (
        lambda archive: changed(archive, lambda c: moved(c, "state/logs/../../../x")),
        "ARCHIVE_UNSAFE",
    ),
    "has an absolute path": (lambda archive: changed(archive, lambda c: moved(c, "/tmp/x")), "ARCHIVE_UNSAFE"),
    "brings a key": (lambda archive: changed(archive, lambda c: moved(c, "state/secrets.key")), "ARCHIVE_UNSAFE"),
    "has a link in its repository": (
        lambda archive: changed(archive, lambda c: told(c, within="way", head="refs/heads/agent/island")),
        "ARCHIVE_UNSAFE",
    ),
    "has a link": (link, "ARCHIVE_UNSAFE"),
}


@pytest.mark.sqlite("an archive is the same on every store")
def test_a_bad_archive_is_refused_in_one_line_and_nothing_is_written(
    archive: Path, run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = archive.read_bytes()
    place = tmp_path / "empty"
    place.mkdir()
    monkeypatch.setenv("WORKBENCH_PROJECT", str(place))
    for fault, (make, expected) in FAULTS.items():
        archive.write_bytes(sound)
        make(archive)
        ran = run("restore", str(archive))
        assert (fault, code(ran), ran.err.count("\n")) == (fault, expected, 1)
        assert (fault, list(place.iterdir())) == (fault, [])


@pytest.mark.sqlite("an archive is the same on every store")
def test_an_archive_is_not_restored_over_something_else(
    archive: Path, run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("WORKBENCH_PROJECT", str(other))
    (other / "mine.txt").write_text("mine")
    assert code(run("restore", str(archive))) == "PLACE_NOT_EMPTY"
    git("init", "-q", cwd=other)
    git("add", ".", cwd=other)
    git("commit", "-q", "-m", "Another", cwd=other)
    assert code(run("restore", str(archive))) == "ARCHIVE_OF_ANOTHER"
    assert sorted(path.name for path in other.iterdir()) == [".git", "mine.txt"]


def test_a_store_that_is_used_or_a_database_that_has_one_keeps_everything_as_it_is(
    archive: Path, run: Type, migrated: Settings
) -> None:
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
    (archive := tmp_path / "elsewhere" / "inner.archive").parent.mkdir()
    assert run("backup", str(archive)).status == 0
    monkeypatch.setenv("WORKBENCH_PROJECT", str(archive.parent))
    assert data(run("--json", "restore", str(archive)))["project"] == str(archive.parent / "inner")
    assert (archive.parent / "inner" / ".aiswarm" / "coordination.db").exists()
    assert (archive.parent / "README.md").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives a file to somebody else")
@pytest.mark.sqlite("an archive is the same on every store")
def test_an_archive_of_another_user_is_refused(archive: Path, run: Type) -> None:
    os.chown(archive, 65_534, -1)
    assert code(run("restore", str(archive), "--yes")) == "ARCHIVE_NOT_YOURS"
