"""What `workbench restore FILE` refuses of an archive: one coded line, and nothing is changed."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sqlite3
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.cli.conftest import Type, code
from tests.conftest import git
from workbench.archives.archive import MANIFEST, REFS, STORE, opened
from workbench.errors import WorkbenchError
from workbench.store.copying import hash_tables

pytestmark = [pytest.mark.long, pytest.mark.sqlite("an archive is the same on every store")]

LOG = "state/logs/worker.log"


class Editor:
    """An archive that is written anew with other members."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        with zipfile.ZipFile(archive) as members:
            self.content = {name: members.read(name) for name in members.namelist()}
        self.manifest: dict[str, Any] = json.loads(self.content.pop(MANIFEST))
        self.modes: dict[str, int] = {}
        self.method = zipfile.ZIP_STORED

    def put(self, name: str, content: bytes) -> None:
        """Have it have a file, of which its manifest knows."""
        self.content[name] = content
        digest = hashlib.sha256(content).hexdigest()
        self.manifest["files"][name] = {"bytes": len(content), "sha256": digest, "mode": 0o600}

    def save(self) -> None:
        """Write it."""
        with zipfile.ZipFile(self._archive, "w") as members:
            for name, content in {**self.content, MANIFEST: json.dumps(self.manifest).encode()}.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = self.modes.get(name, 0) << 16
                info.compress_type = self.method
                members.writestr(info, content)


def put(name: str, mode: int, editor: Editor) -> None:
    """Have a file of some name and kind."""
    editor.put(name, b"/etc/passwd")
    editor.modes[name] = mode


def says(values: dict[str, Any], editor: Editor) -> None:
    """Say something else in the manifest."""
    editor.manifest |= values


def lack(editor: Editor) -> None:
    """Lack a file."""
    del editor.content[LOG]


def other_bytes(editor: Editor) -> None:
    """Have another store than the manifest says."""
    editor.content[STORE] += b" "


def packed_otherwise(editor: Editor) -> None:
    """Be packed by a method that unpacks to thousands of times the size."""
    editor.method = zipfile.ZIP_LZMA


def more_than_it_says(editor: Editor) -> None:
    """Have a file that is larger than the manifest says."""
    editor.content[LOG] = b"\0" * 50_000_000
    editor.method = zipfile.ZIP_DEFLATED


def larger_than_allowed(editor: Editor) -> None:
    """Say that a file is larger than any disk."""
    editor.manifest["files"][LOG]["bytes"] = 10**18


def of_the_future(editor: Editor) -> None:
    """Have a store with a migration that this program does not know."""
    with sqlite3.connect(":memory:") as db:
        db.deserialize(editor.content[STORE])
        db.execute("UPDATE migration_history SET migration_name = '999' ORDER BY id DESC LIMIT 1")
        db.commit()
        editor.put(STORE, db.serialize())
    (file := Path(os.environ["WORKBENCH_PROJECT"]).parent / "future.db").write_bytes(editor.content[STORE])
    editor.manifest["tables"] = hash_tables(file)


def tracking_state(editor: Editor) -> None:
    """Have a repository that tracks a part of the state directory."""
    place = Path(os.environ["WORKBENCH_PROJECT"]).parent
    (place / "refs").write_bytes(editor.content[REFS])
    git("clone", "-q", "-b", "main", str(place / "refs"), str(clone := place / "tracking"), cwd=place)
    (clone / ".aiswarm").mkdir()
    (clone / ".aiswarm" / "secrets.key").write_text("x")
    git("add", "-f", ".aiswarm", cwd=clone)
    git("commit", "-q", "-m", "Track it", cwd=clone)
    git("bundle", "create", "-q", str(place / "refs"), "refs/heads/main", cwd=clone)
    editor.put(REFS, (place / "refs").read_bytes())
    editor.manifest |= {"refs": {"refs/heads/main": git("rev-parse", "main", cwd=clone)}}


FAULTS: dict[str, tuple[Callable[[Editor], object], str]] = {
    "has other bytes": (other_bytes, "ARCHIVE_DAMAGED"),
    "has other rows": (partial(says, {"tables": {"tasks": [1, "0"]}}), "ARCHIVE_DAMAGED"),
    "has other references": (partial(says, {"refs": {"refs/heads/main": "1" * 40}}), "ARCHIVE_DAMAGED"),
    "has none that is checked out": (partial(says, {"head": "refs/heads/none"}), "ARCHIVE_DAMAGED"),
    "lacks a file": (lack, "ARCHIVE_DAMAGED"),
    "is of a newer version": (partial(says, {"format": 2, "more": 1}), "ARCHIVE_NEWER"),
    "has a newer store": (of_the_future, "ARCHIVE_NEWER"),
    "has more than it says": (more_than_it_says, "ARCHIVE_DAMAGED"),
    "takes more than it may": (larger_than_allowed, "ARCHIVE_TOO_LARGE"),
    "leaves its place": (partial(put, "state/logs/../../../x", 0), "ARCHIVE_UNSAFE"),
    "has an absolute path": (partial(put, "/tmp/x", 0), "ARCHIVE_UNSAFE"),
    "has an absolute path below": (partial(put, "state/logs//tmp/x", 0), "ARCHIVE_UNSAFE"),
    "brings a key": (partial(put, "state/secrets.key", 0), "ARCHIVE_UNSAFE"),
    "brings a name by another case": (partial(put, "state/Logs/x", 0), "ARCHIVE_UNSAFE"),
    "has a file below a file": (partial(put, f"{LOG}/x", 0), "ARCHIVE_UNSAFE"),
    "has a link": (partial(put, "state/logs/x", stat.S_IFLNK | 0o777), "ARCHIVE_UNSAFE"),
    "has a device": (partial(put, "state/logs/x", stat.S_IFCHR | 0o666), "ARCHIVE_UNSAFE"),
    "has a directory": (partial(put, "state/logs/x/", stat.S_IFDIR | 0o700), "ARCHIVE_UNSAFE"),
    "is packed otherwise": (packed_otherwise, "ARCHIVE_UNSAFE"),
    "is to be in git's directory": (partial(says, {"within": ".Git/hooks"}), "ARCHIVE_UNSAFE"),
    "has a link in its repository": (
        partial(says, {"within": "way", "head": "refs/heads/agent/island"}),
        "ARCHIVE_UNSAFE",
    ),
    "tracks state": (tracking_state, "ARCHIVE_UNSAFE"),
}


@pytest.fixture
def place(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, into which archives are restored."""
    (place := tmp_path / "place").mkdir()
    monkeypatch.setenv("WORKBENCH_PROJECT", str(place))
    return place


def test_a_bad_archive_is_refused_in_one_line_and_nothing_is_written(archive: Path, run: Type, place: Path) -> None:
    sound = archive.read_bytes()
    for fault, (make, expected) in FAULTS.items():
        archive.write_bytes(sound)
        make(editor := Editor(archive))
        editor.save()
        ran = run("restore", str(archive))
        assert (fault, code(ran), ran.err.count("\n")) == (fault, expected, 1)
        assert (fault, list(place.iterdir())) == (fault, [])
    archive.write_bytes(sound)
    with zipfile.ZipFile(archive, "a") as members, pytest.warns(UserWarning, match="Duplicate"):
        members.writestr(LOG, "another one")
    assert code(run("restore", str(archive))) == "ARCHIVE_DAMAGED"


def test_an_archive_that_is_cut_or_changed_anywhere_is_refused(archive: Path) -> None:
    sound, random = archive.read_bytes(), chance("archive")
    with opened(archive) as whole:
        manifest = whole.manifest
    with zipfile.ZipFile(archive) as members:
        begins = [info.header_offset for info in members.infolist()] + [members.start_dir]
    inner = [begin + len(MANIFEST) + 30 for begin in begins]
    for cut in [*begins, *inner, *(random.randrange(len(sound)) for _ in range(50 + 1000 * SOAK)), len(sound) - 1]:
        archive.write_bytes(sound[:cut])
        with pytest.raises(WorkbenchError) as refused, opened(archive):
            pass
        assert (cut, refused.value.code) == (cut, "ARCHIVE_DAMAGED")
    for _ in range(100 + 5000 * SOAK):
        place = random.choice([random.randrange(len(sound)), random.randrange(begins[-2], len(sound))])
        value = bytes([sound[place] ^ 1 << random.randrange(8)])
        archive.write_bytes(sound[:place] + value + sound[place + 1 :])
        try:
            with opened(archive) as other:
                other.verify()
        except WorkbenchError as error:
            assert (place, error.code[:8]) == (place, "ARCHIVE_")
        else:
            assert (place, other.manifest) == (place, manifest)


@contextmanager
def files_of(most: int) -> Iterator[None]:
    """No file can have more bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_everything_as_it_is(
    archive: Path, run: Type, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, random = archive.with_name("other.archive"), chance("full disk")
    with zipfile.ZipFile(archive) as members:
        largest = members.getinfo(STORE).file_size
    for most in (100, 30_000, *(random.randrange(largest) for _ in range(3))):
        with files_of(most):
            assert (most, code(run("restore", str(archive)))) == (most, "RESTORE_FAILED")
            monkeypatch.setenv("WORKBENCH_PROJECT", str(archive.parent / "project"))
            # Between two sizes, SQLite has no room for the memory that its processes share, and reads nothing.
            assert code(run("backup", str(other))) in ("BACKUP_FAILED", "STORE_FULL"), most
            monkeypatch.setenv("WORKBENCH_PROJECT", str(place))
        assert (list(place.iterdir()), [file for file in archive.parent.iterdir() if "other" in file.name]) == ([], [])
    assert run("restore", str(archive)).status == 0


def test_an_archive_is_not_restored_over_something_else(archive: Path, run: Type, place: Path, tmp_path: Path) -> None:
    archive.rename(there := place / "README.md")  # which the repository has, too
    assert code(run("restore", str(there))) == "PLACE_NOT_EMPTY"
    assert [path.name for path in place.iterdir()] == ["README.md"]
    there.rename(archive)
    (place / "mine.txt").write_text("mine")
    assert code(run("restore", str(archive))) == "PLACE_NOT_EMPTY"
    git("init", "-q", cwd=place)
    git("add", ".", cwd=place)
    git("commit", "-q", "-m", "Another", cwd=place)
    assert code(run("restore", str(archive))) == "ARCHIVE_OF_ANOTHER"
    os.mkfifo(tmp_path / "pipe")
    assert code(run("restore", str(tmp_path / "pipe"))) == "ARCHIVE_DAMAGED"
    assert sorted(path.name for path in place.iterdir()) == [".git", "mine.txt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives a file to somebody else")
def test_an_archive_of_another_user_is_refused(archive: Path, run: Type) -> None:
    os.chown(archive, 65_534, -1)
    assert code(run("restore", str(archive), "--yes")) == "ARCHIVE_NOT_YOURS"
