"""Faults of the disk, the file or another process: a clear error with a code, and the rest continues."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.store.exhaustion import no_descriptors, reader_busy
from workbench.app import Workbench
from workbench.errors import Unavailable, WorkbenchError
from workbench.state.settings import Settings
from workbench.store import log_sync, sqlite
from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after, last_event_id
from workbench.store.queries import Query
from workbench.store.sqlite import READERS, SqliteStore, open_store
from workbench.store.sqlite_connection import LOG_BYTES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(50, method="thread"),
]  # a writer that hangs would hang the teardown too

MEGABYTE = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the store."""
    return tmp_path / ".aiswarm" / "coordination.db"


@pytest.fixture
async def open_path(path: Path) -> AsyncIterator[SqliteStore]:
    """A store at `path`."""
    store = open_store(path)
    yield store
    store.close()


def say(text: str) -> Callable[[Tx], None]:
    """A change that adds an event of about the text's size."""
    return lambda tx: tx.emit("note.added", "note:1", text=text)


def said(tx: Reader) -> list[str]:
    return [event.data["text"] for event in events_after(tx, 0, limit=100_000)]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def refused(path: Path) -> WorkbenchError:
    """The error that opening a store ends with; nothing stays open."""
    before = open_files()
    with pytest.raises(WorkbenchError) as error:
        open_store(path).close()
    assert open_files() == before
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("workbench")] == []
    return error.value


async def code_of(store: Store, change: Callable[[Tx], Any]) -> str:
    """The code of the error that a change ends with."""
    with pytest.raises(Unavailable) as error:
        await store.write(change)
    return error.value.code


@contextmanager
def overwritten(path: Path, at: int, data: bytes) -> Iterator[None]:
    """Damage a file for a while."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + data + whole[at + len(data) :])
    yield
    path.write_bytes(whole)


def sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with a database."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# Opening.


@pytest.mark.parametrize("file", ["", ".aiswarm"])
async def test_a_project_that_is_a_file_is_unwritable(tmp_path: Path, file: str) -> None:
    project = tmp_path / "project"
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("not a directory")
    with pytest.raises(Unavailable) as error:
        async with Workbench.open(Settings(project=project)):
            pass
    assert error.value.code == "PROJECT_UNWRITABLE"
    assert error.value.details == {"path": str(project / ".aiswarm")}
    assert (project / file).read_text() == "not a directory"


def test_a_directory_or_link_in_place_of_the_database_or_its_lock_is_refused(path: Path, tmp_path: Path) -> None:
    lock = path.with_name(path.name + ".lock")
    lock.mkdir(parents=True)
    assert refused(path).code == "PROJECT_UNWRITABLE"
    lock.rmdir()
    lock.symlink_to(tmp_path / "elsewhere")
    assert refused(path).code == "PROJECT_UNWRITABLE"
    assert not (tmp_path / "elsewhere").exists()
    lock.unlink()
    path.mkdir()
    assert refused(path).code == "STORE_UNREADABLE"


def test_a_damaged_database_is_refused_and_not_touched(path: Path) -> None:
    open_store(path).close()
    for at, data in ((0, b"garbage garbage!"), (0, b"\x00" * 100), (100, b"\xff" * 400)):
        with overwritten(path, at, data):
            damaged = path.read_bytes()
            assert refused(path).code == "STORE_CORRUPT"
            assert path.read_bytes() == damaged
        open_store(path).close()
    path.write_text("Dear diary, " * 1_000)
    assert refused(path).code == "STORE_CORRUPT"
    assert path.read_text() == "Dear diary, " * 1_000


def test_a_failing_migration_lets_go_of_everything(path: Path) -> None:
    open_store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE migration_history SET script_hash = 'other'")
        db.commit()
    assert refused(path).code == "MIGRATION_DRIFT"


# Disks.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mounted)], capture_output=True)
    if mount.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mount.stderr.decode().strip()}")
    yield mounted
    subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def fill(disk: Path) -> Path:
    """Use up all the space there is."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                return ballast


async def test_a_full_disk_is_an_error_and_the_store_works_again_once_there_is_space(disk: Path) -> None:
    with closing(open_store(disk / "coordination.db")) as store:
        await store.write(say("before"))
        ballast = fill(disk)
        neighbours = [store.write(say("x" * 100_000)) for _ in range(5)]
        outcome = await asyncio.gather(*neighbours, return_exceptions=True)
        assert {one.code for one in outcome if isinstance(one, Unavailable)} == {"STORE_FULL"}
        assert len({id(one) for one in outcome}) == 5, "each who asked gets an error of its own"
        assert await store.read(said) == ["before"]
        assert await code_of(store, say("x" * 100_000)) == "STORE_FULL"

        since, until = store.stats().full or (0, 0)
        assert (since > 0, until) == (True, None)
        ballast.unlink()
        await store.write(say("after"))
        assert await store.read(said) == ["before", "after"]
        assert store.stats().full == (since, store.stats().full[1])
        assert store.stats().full[1] >= since, "it says from when until when it was full"
    assert sound(disk / "coordination.db")


async def test_a_disk_that_fills_up_while_many_write_loses_nothing_acknowledged(disk: Path) -> None:
    kept: list[str] = []
    codes: set[str] = set()

    async def write(name: str) -> None:
        for number in range(400):
            text = f"{name} {number} " + "x" * 5_000
            try:
                await store.write(say(text))
            except Unavailable as error:
                codes.add(error.code)
                return
            kept.append(text)

    with closing(open_store(disk / "coordination.db")) as store:
        await asyncio.gather(*(write(name) for name in "abcd"))
        assert codes == {"STORE_FULL"}
        assert sorted(await store.read(said)) == sorted(kept)
    assert sound(disk / "coordination.db")


@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_is_full_or_read_only_is_said_when_a_project_is_opened(disk: Path, there: bool) -> None:
    if there:
        open_store(disk / "coordination.db").close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert refused(disk / "coordination.db").code == "PROJECT_UNWRITABLE"
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    ballast = fill(disk)
    assert refused(disk / "coordination.db").code == "STORE_FULL"
    ballast.unlink()
    open_store(disk / "coordination.db").close()


# Other processes.


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process has the lock of a store."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    os.close(lock)


@contextmanager
def by_hand(path: Path) -> Iterator[None]:
    """A person writes to the file of a store."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")


@pytest.mark.long
@pytest.mark.parametrize("occupied", [locked, by_hand])
async def test_a_store_locked_by_another_program_is_busy_and_unharmed(
    open_path: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, occupied: Any
) -> None:
    if occupied is locked:
        monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with occupied(path):
        assert await code_of(open_path, say("too early")) == "STORE_BUSY"
        assert await open_path.read(said) == []
    await open_path.write(say("in time"))
    assert await open_path.read(said) == ["in time"]


def test_a_store_that_another_process_is_making_is_not_touched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite does not wait for who else makes the same file: it fails."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path.parent.mkdir()
    with locked(path):
        assert refused(path).code == "STORE_BUSY"
        assert not path.exists()
    open_store(path).close()


# The write-ahead log.


def wal_of(path: Path) -> int:
    """The size of the log."""
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


async def test_the_log_is_folded_into_the_database_when_it_has_grown(open_path: SqliteStore, path: Path) -> None:
    grown = 0
    for _ in range(30):
        await open_path.write(say("x" * MEGABYTE))
        assert wal_of(path) <= LOG_BYTES
        grown = max(grown, wal_of(path))
    assert grown > MEGABYTE
    assert path.stat().st_size > 20 * MEGABYTE
    assert len(await open_path.read(said)) == 30


async def test_a_long_reader_neither_blocks_writers_nor_sees_what_they_write(
    open_path: SqliteStore, path: Path
) -> None:
    """Were each fold to wait for the reader, this would take a minute."""
    seen, gate = threading.Event(), threading.Event()

    def read_long(tx: Reader) -> tuple[int, int]:
        first = last_event_id(tx)
        seen.set()
        gate.wait()
        return first, last_event_id(tx)

    await open_path.write(say("before"))
    reading = asyncio.create_task(open_path.read(read_long))
    await asyncio.to_thread(seen.wait)
    try:
        for _ in range(30):
            await open_path.write(say("x" * MEGABYTE))
        assert wal_of(path) > 3 * LOG_BYTES
        assert len(await open_path.read(said)) == 31
    finally:
        gate.set()
    assert await reading == (1, 1)
    await open_path.write(say("folded in"))
    await open_path.write(say("begun anew"))
    assert wal_of(path) <= LOG_BYTES
    assert len(await open_path.read(said)) == 33


# The log is synced after the fence is free.


@pytest.fixture
def announced(open_path: SqliteStore) -> list[str]:
    """The texts of what the store has announced as committed."""
    texts: list[str] = []
    open_path.on_commit(lambda events: texts.extend(json.loads(event["data"])["text"] for event in events))
    return texts


async def test_a_change_is_acknowledged_once_it_is_synced_and_nobody_waits_for_that(
    open_path: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, gate = threading.Event(), threading.Event()

    def slowly(fd: int) -> None:
        assert os.fstat(fd).st_ino == path.with_name(path.name + "-wal").stat().st_ino
        syncing.set()
        gate.wait()

    told: list[str] = []
    open_path.on_visible(lambda events: told.append("visible"))
    open_path.on_commit(lambda events: told.append("committed"))
    with monkeypatch.context() as patched, closing(open_store(path)) as other:
        patched.setattr(log_sync, "_fdatasync", slowly)
        writing = asyncio.create_task(open_path.write(say("mine")))
        await asyncio.to_thread(syncing.wait)
        patched.undo()
        try:
            await other.write(say("theirs"))
            assert await other.read(said) == ["mine", "theirs"]
            assert (writing.done(), told) == (False, ["visible"])
        finally:
            gate.set()
        await writing
    assert told == ["visible", "committed"]


async def test_a_change_that_need_not_be_durable_is_acknowledged_before_its_sync(
    open_path: SqliteStore, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, gate = threading.Event(), threading.Event()

    def slowly(fd: int) -> None:
        syncing.set()
        gate.wait()

    monkeypatch.setattr(log_sync, "_fdatasync", slowly)
    try:
        await open_path.write(say("begun"), durable=False)
        assert await open_path.read(said) == ["begun"]
        await asyncio.to_thread(syncing.wait)
        ending = asyncio.create_task(open_path.write(say("ended")))
        assert (announced, ending.done()) == ([], False)
    finally:
        gate.set()
    await ending
    assert announced == ["begun", "ended"]


async def test_a_change_that_need_not_be_durable_is_synced_with_the_next_durable_one(
    open_path: SqliteStore, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(log_sync, "WAIT_SECONDS", 60)
    monkeypatch.setattr(log_sync, "_fdatasync", synced.append)
    for text in ("begun", "continued"):
        await open_path.write(say(text), durable=False)
    assert (len(synced), announced) == (0, [])
    await open_path.write(say("ended"))
    assert (len(synced), announced) == (1, ["begun", "continued", "ended"])
    await open_path.write(say("begun again"), durable=False)
    await asyncio.to_thread(open_path.close)
    assert (len(synced), announced[3:]) == (2, ["begun again"])


async def test_a_change_that_need_not_be_durable_waits_a_limited_time(
    open_path: SqliteStore, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sync, "WAIT_SECONDS", 0)
    for text in ("one", "two"):
        await open_path.write(say(text), durable=False)
    assert announced[0] == "one"


async def test_a_change_that_need_not_be_durable_fails_alone_and_at_once(open_path: SqliteStore) -> None:
    def fail(tx: Tx) -> None:
        raise ValueError("no")

    kept, failed = await asyncio.gather(
        open_path.write(say("kept"), durable=False), open_path.write(fail, durable=False), return_exceptions=True
    )
    assert (kept, str(failed)) == (None, "no")
    assert await open_path.read(said) == ["kept"]


async def test_a_log_that_cannot_be_synced_is_an_error_or_else_logged_and_the_store_goes_on(
    open_path: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()

    def failing(fd: int) -> None:
        failed.set()
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(log_sync, "_fdatasync", failing)
        await open_path.write(say("begun"), durable=False)
        await asyncio.to_thread(failed.wait)
        assert await code_of(open_path, say("ended")) == "STORE_UNSYNCED"
    assert [record.message for record in caplog.records] == ["what was committed is not durable yet"]
    await open_path.write(say("safe"))
    assert await open_path.read(said) == ["begun", "ended", "safe"]


# Another process with a newer Workbench.


async def test_a_column_added_by_a_newer_process_does_not_mix_up_columns(open_path: SqliteStore, path: Path) -> None:
    everything = Query("everything", "SELECT * FROM events")
    await open_path.write(say("hello"))
    before = await open_path.read(lambda tx: tx.one(everything))
    with closing(sqlite3.connect(path, isolation_level=None)) as newer:
        newer.execute("ALTER TABLE events ADD COLUMN place TEXT DEFAULT 'here'")
    assert before is not None
    assert await open_path.read(lambda tx: tx.one(everything)) == {**before, "place": "here"}


# No more files.


async def test_a_store_whose_readers_are_open_answers_when_there_are_no_files_left(open_path: SqliteStore) -> None:
    open_path.open_readers()
    await open_path.write(say("hello"))
    with no_descriptors():
        async with AsyncExitStack() as busy:
            for _ in range(READERS):
                assert await open_path.read(last_event_id) == 1
                assert await open_path.read_inline(last_event_id) == 1
                await busy.enter_async_context(reader_busy(open_path))
            assert await open_path.read_inline(last_event_id) == 1
