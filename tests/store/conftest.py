"""The databases that the store's contract is kept on, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workbench.store.sqlite import SqliteStore, open_store


@dataclass(frozen=True)
class Backend:
    """A database: how to open a project's store on it (again), and what it raises for bad SQL."""

    open: Callable[[], SqliteStore]
    sql_error: type[Exception]


@pytest.fixture(params=["sqlite"])
def backend(tmp_path: Path, empty_store: Path, clock: Callable[[], int]) -> Backend:
    """Each database in turn; every `open` is of the same store."""
    path = shutil.copy(empty_store, tmp_path / "coordination.db")
    return Backend(lambda: open_store(path, clock), sqlite3.Error)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[SqliteStore]:
    """An open store."""
    opened = backend.open()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A connection to an empty database of a PostgreSQL server that only these tests can reach."""
    psycopg = pytest.importorskip("psycopg")
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not paths:
        pytest.skip("there is no PostgreSQL in /usr/lib/postgresql")
    home = Path(tempfile.mkdtemp(prefix="wb-pg-"))
    user, initdb, server = _as_ordinary_user(home), str(paths[-1] / "initdb"), str(paths[-1] / "postgres")
    making = [*user, initdb, "-D", f"{home}/data", "-U", "tester", "--auth=trust", "--encoding=UTF8", "--no-sync"]
    options = ("listen_addresses=", f"unix_socket_directories={home}", "fsync=off", "log_min_messages=log")
    serving = [*user, server, "-D", f"{home}/data", *(f"--{option}" for option in options)]
    try:
        subprocess.run(making, check=True, capture_output=True, cwd=home, timeout=50)
        with subprocess.Popen(serving, stderr=subprocess.PIPE, text=True, cwd=home) as process:
            assert process.stderr is not None
            assert any("ready to accept connections" in line for line in process.stderr)
            try:
                with psycopg.connect(host=str(home), user="tester", dbname="postgres", autocommit=True) as connection:
                    yield connection
            finally:
                process.send_signal(signal.SIGQUIT)
    finally:
        shutil.rmtree(home)


def _as_ordinary_user(home: Path) -> list[str]:
    """The prefix of a command that ends with the tests and does not run as root, whom PostgreSQL refuses."""
    dying = ["setpriv", "--pdeathsig=QUIT"]
    if os.geteuid() != 0:
        return dying
    shutil.chown(home, "postgres", "postgres")
    return [*dying, "--reuid=postgres", "--regid=postgres", "--clear-groups"]
