"""Connections to a PostgreSQL database, how values are written and read (as they are on SQLite), and its clock."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import adapt, conninfo

from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.store.base import Values
from workbench.store.postgres_errors import PASSING, READ_ONLY, opening_error
from workbench.store.queries import Dialect, Query

OLDEST = 14
"""The oldest version of PostgreSQL that does."""
LOCK = 0x776F726B62656E63
"""The advisory lock of whoever writes or migrates; advisory locks are each database's own."""
TAKE_LOCK = f"SELECT pg_advisory_xact_lock({LOCK})"
LOCK_SECONDS = 15
"""How long a writer waits for others."""
IDLE_SECONDS = 60
"""The server ends a transaction whose process has been silent for so long: it would block the writers."""
PATIENCE_SECONDS = 5.0
"""How long lost connections are tried again before a request is refused."""
LONGEST_PAUSE_SECONDS = 1.0
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Parameters of libpq that the URL may set otherwise."""
# Plans are as on SQLite, for which the indexes are made: nested loops over them, whatever the server knows of tables
# and values. It would keep plans that it made while a table was small, and make one anew for each claim.
SESSION = f"""
SET client_encoding = 'UTF8';
SET lock_timeout = '{LOCK_SECONDS}s';
SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';
SET jit = off;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
SELECT current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('transaction_read_only')::bool
"""


class _TextDumper(adapt.Dumper):
    """Text without a type, so that the server finds the type from the statement: each is prepared only once."""

    def dump(self, obj: str) -> bytes:
        if "\0" in obj:
            raise BadInput("TEXT_HAS_NUL", "A text has a NUL character, which PostgreSQL cannot keep. Leave it out.")
        return obj.encode()


class _NumberDumper(adapt.Dumper):
    """Of enumerations and truth values, too."""

    def dump(self, obj: float) -> bytes | None:
        return repr(obj + 0).encode() if obj == obj else None  # what is no number is NULL, as on SQLite


class _NumericLoader(adapt.Loader):
    """Sums are whole, and averages are not, as on SQLite."""

    def load(self, data: adapt.Buffer) -> float:
        text = bytes(data)
        return int(text) if text.isdigit() or text[1:].isdigit() else float(text)


class _TruthLoader(adapt.Loader):
    def load(self, data: adapt.Buffer) -> int:
        return int(bytes(data) == b"t")


def _adapters() -> adapt.AdaptersMap:
    adapters = adapt.AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _TextDumper)
    for number in (int, float, bool):
        adapters.register_dumper(number, _NumberDumper)
    adapters.register_loader("numeric", _NumericLoader)
    adapters.register_loader("bool", _TruthLoader)
    return adapters


class _Adapting:
    """What psycopg takes adapters from."""

    adapters = _adapters()
    connection = None


class PostgresConnection:
    """A connection on which statements commit at once, unless they are in a transaction. For one thread at a time."""

    dialect = Dialect.POSTGRES
    error = psycopg.Error

    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.raw = raw
        self._cursor = raw.cursor()
        self._columns: dict[str, tuple[str, ...]] = {}

    @property
    def is_in_transaction(self) -> bool:
        """Whether there is something to roll back."""
        return self.raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, here or by the server."""
        return self.raw.closed

    @property
    def has_failed(self) -> bool:
        """Whether a statement of the transaction has failed, so that it can only be rolled back."""
        return self.raw.info.transaction_status == psycopg.pq.TransactionStatus.INERROR

    def run(self, query: Query, values: Values) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute a query; the cursor is good until the next one."""
        return self._cursor.execute(query.postgres.encode(), values)

    def many(self, query: Query, rows: Any) -> None:
        """Execute a change once for each set of values."""
        self._cursor.executemany(query.postgres.encode(), rows)

    def columns(self, query: Query) -> tuple[str, ...]:
        """The column names of the last query; not cached for `*`, as another process may migrate the table."""
        names = self._columns.get(query.text)
        if names is None:
            names = tuple(column.name for column in self._cursor.description or ())
            if query.names_its_columns:
                self._columns[query.text] = names
        return names

    def execute(self, statements: str) -> None:
        """Execute statements without parameters in one round trip."""
        self._cursor.execute(statements.encode(), prepare=False)

    def ask(self, statements: str) -> tuple[Any, ...]:
        """The same; the row of the last one."""
        self.execute(statements)
        while self._cursor.nextset():
            pass
        row = self._cursor.fetchone()
        assert row is not None
        return row

    def query(self, query: Query, values: Mapping[str, Any] = {}, /) -> list[tuple[Any, ...]]:
        """Execute a query; its rows."""
        cursor = self.run(query, values)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A transaction while which nobody else migrates or writes."""
        try:
            self.ask(f"BEGIN; {TAKE_LOCK}")
            yield
        except BaseException:
            self.roll_back()
            raise
        self.execute("COMMIT")

    def roll_back(self) -> None:
        """Roll back, if there is something; a connection that cannot is closed."""
        try:
            if self.is_in_transaction:
                self.execute("ROLLBACK")
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """Close it. May be called twice."""
        self.raw.close()


class Connector:
    """Opens connections to one database, patiently while its server is away."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._away_since: float | None = None

    def connect(self, patience: float | None = None) -> PostgresConnection:
        """Open a connection. After the server has been away for some seconds, it is tried only once.

        Args:
            patience: so many seconds instead of `PATIENCE_SECONDS`.

        Raises:
            Unavailable: ``STORE_UNAVAILABLE``, ``STORE_CROWDED``, ``STORE_READ_ONLY``, ``STORE_UNREADABLE``,
                ``DATABASE_MISSING``, ``DATABASE_REFUSES_USER``, ``POSTGRES_TOO_OLD``.
            BadInput: ``DATABASE_URL_INVALID``.
        """
        pause, patience = 0.05, PATIENCE_SECONDS if patience is None else patience
        while True:
            try:
                connection = _open(self._target)
            except WorkbenchError as error:
                now = time.monotonic()
                self._away_since = self._away_since or now
                if error.code not in PASSING or now + pause > self._away_since + patience:
                    raise
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            else:
                self._away_since = None
                return connection


def _open(target: str) -> PostgresConnection:
    try:
        parameters = {"application_name": "workbench", **_DEFAULTS, **conninfo.conninfo_to_dict(target)}
        raw = psycopg.connect(**parameters, autocommit=True, context=_Adapting())  # type: ignore[arg-type]
        try:
            raw.prepared_max = None
            connection = PostgresConnection(raw)
            _require_fit(raw.info.server_version, *connection.ask(SESSION))
        except BaseException:
            raw.close()
            raise
    except psycopg.Error as error:
        raise opening_error(target, error) from None  # its text may repeat the address
    return connection


def _require_fit(version: int, encoding: str, is_read_only: int) -> None:
    """Refuse a server on which a store cannot be.

    Args:
        version: as PostgreSQL numbers it: 150018 is 15.18.
    """
    if version < OLDEST * 10_000:
        raise Unavailable(
            "POSTGRES_TOO_OLD",
            f"The server is PostgreSQL {version // 10_000}; Workbench needs {OLDEST} or newer. Use a newer server.",
        )
    if encoding != "UTF8":
        raise Unavailable(
            "STORE_UNREADABLE",
            f"The database has the encoding {encoding}; Workbench needs UTF8. Create one with ENCODING 'UTF8'.",
        )
    if is_read_only:
        raise Unavailable(*READ_ONLY)


class ServerClock:
    """Microseconds UTC. It follows the server's clock, and never goes backwards.

    Where that clock is set back, this one runs at half its speed until they agree again.
    """

    def __init__(self) -> None:
        self._offset: int | None = None
        self._set_at = 0

    def __call__(self) -> int:
        """The time."""
        assert self._offset is not None
        return time.monotonic_ns() // 1_000 + self._offset

    def set(self, server_time: int) -> None:
        """Note the time that the server has just told. Only one thread does."""
        here = time.monotonic_ns() // 1_000
        offset = server_time - here
        if self._offset is not None:
            offset = max(offset, self._offset - (here - self._set_at) // 2)
        self._offset, self._set_at = offset, here
