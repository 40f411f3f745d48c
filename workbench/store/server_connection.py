"""A connection to PostgreSQL beside the store, for what is done with the whole database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.store.migrate import extent
from workbench.store.opening import require_installed
from workbench.store.queries import beside

if TYPE_CHECKING:
    from workbench.store.postgres_connection import PostgresConnection

SQL = beside(__file__)


@contextmanager
def connected(address: str) -> Iterator[PostgresConnection]:
    """A connection, whose failures are coded errors. It does not migrate the store.

    Args:
        address: see `postgres.open_store`.

    Raises:
        Unavailable: see `postgres.open_store`.
    """
    require_installed()
    import psycopg

    from workbench.store.postgres_connection import Connector
    from workbench.store.postgres_errors import storage_error

    with closing(Connector(address).connect(patience=0)) as database:
        try:
            yield database
        except psycopg.Error as error:
            raise storage_error(error) or error from error


@dataclass(frozen=True)
class DatabaseStatus:
    """A database of PostgreSQL.

    Args:
        version: of its server.
        ours: the connections of Workbench to it; `all` those to the server, of which it allows `most`.
        migrations: how many have been applied, and the name of the latest.
    """

    version: str
    bytes: int
    ours: int
    all: int
    most: int
    migrations: int
    latest: str | None


def database_status(address: str) -> DatabaseStatus:
    """What a server says of a database. Blocks.

    Raises:
        Unavailable: see `connected`.
    """
    with connected(address) as database:
        ((version, size, ours, all_, most),) = database.query(SQL.status)
        migrations, latest = extent(database)
    return DatabaseStatus(version, size, ours, all_, most, migrations, latest)
