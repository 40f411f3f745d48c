"""A store that lost what it had acknowledged is refused by everybody who opens it, and a person decides what then."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests import given
from tests.store.test_faults import open_files, said, say
from tests.users import NOBODY
from workbench.errors import WorkbenchError
from workbench.store import backups, mark
from workbench.store.examination import require_whole
from workbench.store.log_sync import log_of
from workbench.store.mark import StoreMark, mark_file, read_mark
from workbench.store.snapshot import read_snapshot
from workbench.store.sqlite import SqliteStore, open_store
from workbench.system import atomic_file

pytestmark = pytest.mark.anyio

NOTES = 40
NOW = 1_800_000_000_000_000
STORE = "coordination.db"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a store as kill -9 leaves it, all in its log; beside it an older copy, and another project's."""
    place = tmp_path_factory.mktemp("killed")
    asyncio.run(_filled(place / "other" / STORE, NOTES))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mark, "SECONDS", 0.0)
        asyncio.run(_killed(place))
    return place


async def _killed(place: Path) -> None:
    with closing(open_store(place / "open" / STORE)) as store:
        for number in range(NOTES):
            if number == NOTES // 2:
                backups.back_up(store.path, NOW)
            await store.write(say(str(number)))
        await given.until(lambda: (read_mark(store.path) or StoreMark(0, 0, 0)).event == NOTES)
        shutil.copytree(place / "open", place / "killed")


async def _filled(path: Path, notes: int) -> None:
    with closing(open_store(path)) as store:
        for number in range(notes):
            await store.write(say(str(number)))


@pytest.fixture
def store(killed: Path) -> Iterator[Path]:
    """The store of a process that was killed, in a place that every user can reach."""
    place = Path(tempfile.mkdtemp())
    shutil.copytree(killed / "killed", place / ".aiswarm")
    yield place / ".aiswarm" / STORE
    shutil.rmtree(place)


def cut(share: float) -> Callable[[Path, Path], object]:
    return lambda store, _: os.truncate(log_of(store), int(log_of(store).stat().st_size * share))


def spoilt(share: float) -> Callable[[Path, Path], object]:
    """A damage in the log at a share of its length."""

    def spoil(store: Path, _: Path) -> None:
        whole = log_of(store).read_bytes()
        at = int(len(whole) * share)
        log_of(store).write_bytes(whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 64]) + whole[at + 64 :])

    return spoil


def alone(store: Path) -> None:
    for what in ("wal", "shm"):
        store.with_name(f"{store.name}-{what}").unlink(missing_ok=True)


def gone(store: Path) -> None:
    alone(store)
    store.unlink()


def replaced(store: Path, by: Path) -> None:
    alone(store)
    shutil.copy(by, store)


def no_database(store: Path, _: Path) -> None:
    """A store that was closed, with the first 100 bytes gone: where the log has them, nothing is lost."""
    opens(store)
    store.write_bytes(b"X" * 100 + store.read_bytes()[100:])


def page_spoilt(store: Path, _: Path) -> None:
    """A damage in the file of a store, whose log holds only what came then."""
    with closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("UPDATE events SET actor = 'x' WHERE id = 1")
        db.commit()
        left = {path: path.read_bytes() for path in (store, log_of(store))}
    for path, content in left.items():
        path.write_bytes(content)
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_by_subject'").fetchone()
    with store.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\x05" * 4096)


DAMAGES: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "first 100 bytes": ("STORE_CORRUPT", no_database),
    "a page": ("STORE_CORRUPT", page_spoilt),
    "emptied": ("STORE_INCOMPLETE", lambda store, _: store.write_bytes(b"")),
    "gone, with its log": ("STORE_INCOMPLETE", lambda store, _: store.unlink()),
    "gone, without a log": ("STORE_INCOMPLETE", lambda store, _: gone(store)),
    "without its log": ("STORE_INCOMPLETE", lambda store, _: alone(store)),
    **{f"log cut at {share:.0%}": ("STORE_INCOMPLETE", cut(share)) for share in (0.9, 0.5, 0.0)},
    **{f"log damaged at {share:.0%}": ("STORE_INCOMPLETE", spoilt(share)) for share in (0.9, 0.5, 0.0)},
    "an older copy": (
        "STORE_INCOMPLETE",
        lambda store, _: replaced(store, next((store.parent / "backups").glob("*.db"))),
    ),
    "another project's": ("STORE_INCOMPLETE", lambda store, other: replaced(store, other)),
}


def files_of(store: Path) -> dict[str, bytes]:
    """The content of a store's file and of its log."""
    return {path.name: path.read_bytes() for path in (store, log_of(store)) if path.exists()}


def opens(store: Path) -> None:
    open_store(store).close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_everybody_who_opens_a_damaged_store_says_the_same_and_changes_nothing(
    store: Path, killed: Path, damage: str
) -> None:
    code, harm = DAMAGES[damage]
    harm(store, killed / "other" / STORE)
    before, descriptors = files_of(store), open_files()
    refused = [given.refused(code, opener, store) for opener in (opens, require_whole)]
    if damage != "a page":  # who only reads the store of another project does not look at all of it
        refused.append(given.refused(code, read_snapshot, store, said))
    assert files_of(store) == before
    assert open_files() == descriptors
    (backup,) = (store.parent / "backups").glob("*.db")
    assert {error.message for error in refused} == {refused[0].message}
    assert f"`workbench restore` brings back the newest backup, {backup}." in refused[0].message

    aside = backups.replace(store, backups.newest_backup(store), NOW)
    assert {path.name: path.read_bytes() for path in aside.iterdir() if "-shm" not in path.name} == before
    with closing(open_store(store)) as opened:
        assert len(_said(opened)) == NOTES // 2
    opens(store)


def _said(store: SqliteStore) -> list[str]:
    return store._answer_read(said)


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"first 100 bytes"}))
def test_a_damaged_store_can_be_accepted_and_opened(store: Path, killed: Path, damage: str) -> None:
    DAMAGES[damage][1](store, killed / "other" / STORE)
    backups.accept(store, NOW)
    opens(store)


def test_a_file_that_is_no_database_is_replaced_with_an_empty_store(store: Path) -> None:
    no_database(store, store)
    given.refused("STORE_CORRUPT", backups.accept, store, NOW)
    given.refused("STORE_CORRUPT", opens, store)
    backups.replace(store, None, NOW + 1)
    with closing(open_store(store)) as opened:
        assert _said(opened) == []


def test_a_store_that_was_killed_and_is_whole_is_opened(store: Path) -> None:
    with closing(open_store(store)) as opened:
        assert len(_said(opened)) == NOTES
        given.refused("STORE_IN_USE", backups.replace, store, None, NOW)


def test_an_unreadable_store_is_reported_as_unreadable(store: Path) -> None:
    store.chmod(0)
    with _as_somebody(store):
        for opener in (opens, require_whole, lambda path: read_snapshot(path, said)):
            given.refused("STORE_UNREADABLE", opener, store)


@contextmanager
def _as_somebody(store: Path) -> Iterator[None]:
    """Act as a user whom permissions restrict, unlike root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (store.parents[1], store.parent, *store.parent.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_the_mark_lags_behind_by_a_second_and_is_exact_once_the_store_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    monkeypatch.setattr(atomic_file, "replace", lambda *_, **__: written.append(1))
    with closing(open_store(tmp_path / STORE)) as store:
        for number in range(10):
            await store.write(say(str(number)))
        assert len(written) == 1  # when it was opened
        monkeypatch.undo()
    assert (read_mark(tmp_path / STORE) or StoreMark(0, 0, 0)).event == 10
    mark_file(tmp_path / STORE).write_text("[]")
    opens(tmp_path / STORE)  # a mark that cannot be read says nothing


async def test_events_that_a_person_pruned_are_not_missed(tmp_path: Path) -> None:
    await _filled(tmp_path / STORE, 3)
    with closing(sqlite3.connect(tmp_path / STORE)) as db, db:
        db.execute("DELETE FROM events")
    opens(tmp_path / STORE)


def test_a_backup_that_is_damaged_is_not_put_in_the_place_of_the_store(store: Path) -> None:
    (backup,) = (store.parent / "backups").glob("*.db")
    backup.write_bytes(b"X" * 5_000)
    before = files_of(store)
    with pytest.raises(WorkbenchError):
        backups.replace(store, backup, NOW)
    assert files_of(store) == before
