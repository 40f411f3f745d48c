"""The databases that the store's contract is kept on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import PostgresServer
from workbench.store.base import Store
from workbench.store.opening import open_store


@dataclass(frozen=True)
class Backend:
    """A database: how to open a project's store on it (again), where it is, and what it raises for bad SQL."""

    open: Callable[[], Store]
    target: Path | str
    sql_error: type[Exception]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Callable[[], int]) -> Backend:
    """Each database in turn; every `open` is of the same store."""
    if request.param == "postgres":
        import psycopg

        url = request.getfixturevalue("postgres_url")
        return Backend(lambda: open_store(url, clock), url, psycopg.Error)
    path = Path(shutil.copy(request.getfixturevalue("empty_store"), tmp_path / "coordination.db"))
    return Backend(lambda: open_store(path, clock), path, sqlite3.Error)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    """An open store."""
    opened = backend.open()
    yield opened
    opened.close()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[Any]:
    """A connection to an empty database of a PostgreSQL server that only these tests can reach."""
    with postgres_server.new_database() as name, postgres_server.connect(name) as connection:
        yield connection
