"""Task queues on SQLite that do what a claim and a completion do, each made to commit with `synchronous=FULL`."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Queue(Protocol):
    """The calls of a peer that are measured."""

    def put(self, number: int) -> None:
        """Add a task."""
        ...

    def do(self) -> int | None:
        """Take a task, do nothing, and say that it is done; its number, or None when there is none left."""
        ...


class Huey:
    """huey's SqliteHuey: `dequeue` deletes the task's row, `execute` calls the function. It keeps no result here."""

    def __init__(self, directory: Path, fsync: bool = True) -> None:
        from huey import SqliteHuey

        self._huey = SqliteHuey(filename=str(directory / "huey.db"), fsync=fsync, timeout=60)
        self._done: list[int] = []
        self._task = self._huey.task()(self._done.append)

    def put(self, number: int) -> None:
        self._task(number)

    def do(self) -> int | None:
        task = self._huey.dequeue()
        if task is None:
            return None
        self._huey.execute(task)
        return self._done.pop()


class LiteQueue:
    """litequeue: `pop` and `done`."""

    def __init__(self, directory: Path, fsync: bool = True) -> None:
        from litequeue import LiteQueue as Theirs

        self._queue = Theirs(str(directory / "lite.db"), timeout=60)
        self._queue.conn.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'OFF'}")

    def put(self, number: int) -> None:
        self._queue.put(str(number))

    def do(self) -> int | None:
        message = self._queue.pop()
        if message is None:
            return None
        self._queue.done(message.message_id)
        return int(message.data)


class PersistQueue:
    """persist-queue's SQLiteAckQueue: `get` and `ack`. Several processes may be given the same task."""

    def __init__(self, directory: Path, fsync: bool = True) -> None:
        from persistqueue import Empty, SQLiteAckQueue

        self._empty = Empty
        self._queue = SQLiteAckQueue(str(directory), auto_resume=False, timeout=60, db_file_name="persist.db")
        self._queue._putter.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'OFF'}")

    def put(self, number: int) -> None:
        self._queue.put(number)

    def do(self) -> int | None:
        try:
            item = self._queue.get(block=False, raw=True)
        except self._empty:
            return None
        self._queue.ack(id=item["pqid"])
        return int(item["data"])


PEERS: dict[str, Callable[..., Queue]] = {"huey": Huey, "litequeue": LiteQueue, "persist-queue": PersistQueue}


def fill(peer: str, directory: Path, tasks: int, first: int = 0) -> None:
    """Add tasks, without waiting for the disk."""
    queue = PEERS[peer](directory, fsync=False)
    for number in range(first, first + tasks):
        queue.put(number)


def drain(queue: Queue) -> list[int]:
    """Do tasks until there is none left; which were done."""
    done: list[int] = []
    while True:
        try:
            number = queue.do()
        except sqlite3.OperationalError:  # locked: the peer does not wait for its turn by itself
            time.sleep(0.001)
            continue
        if number is None:
            return done
        done.append(number)


def drained(peer: str, directory: Path, tasks: int) -> float:
    """Tasks done a second, by one loop in this process on a fresh file."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    fill(peer, directory, tasks)
    queue = PEERS[peer](directory)
    started = time.perf_counter()
    done = drain(queue)
    seconds = time.perf_counter() - started
    assert len(set(done)) == tasks, f"{peer} lost tasks"
    return tasks / seconds
