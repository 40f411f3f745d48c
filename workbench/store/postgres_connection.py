"""Connections to a PostgreSQL database, how values are written and read (as they are on SQLite), and its clock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import psycopg
from psycopg import adapt, conninfo, pq
from psycopg.pq.abc import PGresult

from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.state.database_url import OLDEST_SERVER
from workbench.store.base import Values
from workbench.store.postgres_errors import PASSING, READ_ONLY, opening_error
from workbench.store.queries import Dialect, Query

LOCK = 0x776F726B62656E63
"""The advisory lock of whoever writes or migrates; advisory locks are each database's own."""
TAKE_LOCK = f"SELECT pg_advisory_xact_lock({LOCK})"
LOCK_SECONDS = 15
"""How long a writer waits for others."""
IDLE_SECONDS = 12
"""The server ends a transaction whose process, or whose machine's network, has been silent for so long: sooner than the
other writers, which it blocks, are refused."""
PATIENCE_SECONDS = 5.0
"""How long lost connections are tried again before a request is refused."""
LONGEST_PAUSE_SECONDS = 1.0
ROWS = 1_000
"""Of very many rows, so many are fetched before other threads may have a turn."""
PIPELINED = 64
"""How many changes are sent before their results are read, which must fit into the buffers of the connection."""
_DONE = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY})
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


def _parameters(names: Iterable[str], values: Values) -> list[bytes | None]:
    try:
        return [_written(values[name]) for name in names]
    except KeyError as error:
        raise psycopg.ProgrammingError(f"there is no value for the parameter {error}") from error


def _written(value: Any) -> bytes | None:
    """A parameter as text. It has no type: the server finds it from the statement, as it was when it was checked."""
    if isinstance(value, str):
        if "\0" in value:
            raise BadInput("TEXT_HAS_NUL", "A text has a NUL character, which PostgreSQL cannot keep. Leave it out.")
        return value.encode()
    if value is None or value != value:  # what is no number is NULL, as on SQLite
        return None
    if isinstance(value, (int, float)):
        return repr(value + 0).encode()  # also of enumerations and truth values
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, list):
        return b"{%b}" % b",".join(map(_element, value))
    raise TypeError(f"a {type(value).__name__} cannot be a parameter")


def _element(value: Any) -> bytes:
    written = _written(value)
    return b"NULL" if written is None else b'"%b"' % written.replace(b"\\", rb"\\").replace(b'"', rb"\"")


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
        self._pg = raw.pgconn
        self._transformer = adapt.Transformer(raw)
        self._columns: dict[str, tuple[str, ...]] = {}
        self._prepared: dict[str, bytes | None] = {}
        self._numbers = count()

    @property
    def is_in_transaction(self) -> bool:
        """Whether there is something to roll back."""
        return self._pg.transaction_status != pq.TransactionStatus.IDLE

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, here or by the server."""
        return self.raw.closed

    @property
    def has_failed(self) -> bool:
        """Whether a statement of the transaction has failed, so that it can only be rolled back."""
        return self._pg.transaction_status == pq.TransactionStatus.INERROR

    def run(self, query: Query, values: Values) -> PGresult:
        """Execute a query. It is prepared when it comes for the second time."""
        text, names = query.postgres
        given = _parameters(names, values)
        if text not in self._prepared:
            self._prepared[text] = None
            return self._checked(self._pg.exec_params(text.encode(), given))
        prepared = self._prepared[text] or self._prepare(text)
        return self._checked(self._pg.exec_prepared(prepared, given))  # type: ignore[arg-type]  # None is NULL

    def rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        """The rows of a result."""
        self._transformer.set_pgresult(result)
        rows: list[tuple[Any, ...]] = []
        for first in range(0, result.ntuples, ROWS):
            rows += self._transformer.load_rows(first, min(first + ROWS, result.ntuples), tuple)
        return rows

    def columns(self, query: Query, result: PGresult) -> tuple[str, ...]:
        """The column names of a result; not cached for `*`, as another process may migrate the table."""
        names = self._columns.get(query.text)
        if names is None:
            names = tuple((result.fname(number) or b"").decode() for number in range(result.nfields))
            if query.names_its_columns:
                self._columns[query.text] = names
        return names

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values, many in a round trip."""
        text, names = query.postgres
        prepared = self._prepared.get(text) or self._prepare(text)
        remaining = iter(rows)
        while some := [_parameters(names, row) for row in islice(remaining, PIPELINED)]:
            for result in self._pipelined(prepared, some):
                self._checked(result)

    def _pipelined(self, prepared: bytes, rows: Iterable[list[bytes | None]]) -> list[PGresult]:
        """The results of a statement with each of the values, the failed one first."""
        results = []
        self._pg.nonblocking = 0
        self._pg.enter_pipeline_mode()
        try:
            for row in rows:
                self._pg.send_query_prepared(prepared, row)
            self._pg.pipeline_sync()
            while (result := self._pg.get_result()) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
                if result is not None:
                    results.append(result)
                elif self._pg.status == pq.ConnStatus.BAD:
                    break
        finally:
            if self._pg.status == pq.ConnStatus.OK:
                self._pg.exit_pipeline_mode()
                self._pg.nonblocking = 1
        return results

    def _prepare(self, text: str) -> bytes:
        name = b"workbench_%d" % next(self._numbers)
        self._checked(self._pg.prepare(name, text.encode()))
        self._prepared[text] = name
        return name

    def _checked(self, result: PGresult) -> PGresult:
        """A result that is no failure."""
        if result.status in _DONE:
            return result
        if self._pg.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError(result.get_error_message())
        raise psycopg.errors.error_from_result(result)

    def execute(self, statement: str) -> None:
        """Execute statements without parameters in one round trip."""
        self._checked(self._pg.exec_(statement.encode()))

    def ask(self, statements: str) -> tuple[Any, ...]:
        """The same; the row of the last one."""
        (row,) = self.rows(self._checked(self._pg.exec_(statements.encode())))
        return row

    def query(self, query: Query, values: Mapping[str, Any] = {}, /) -> list[tuple[Any, ...]]:
        """Execute a query; its rows."""
        return self.rows(self.run(query, values))

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
    if version < OLDEST_SERVER * 10_000:
        raise Unavailable(
            "POSTGRES_TOO_OLD",
            f"The server is PostgreSQL {version // 10_000}; Workbench needs {OLDEST_SERVER} or newer. Use a newer "
            "server.",
        )
    if encoding != "UTF8":
        raise Unavailable(
            "STORE_UNREADABLE",
            f"The database has the encoding {encoding}; Workbench needs UTF8. Create one with ENCODING 'UTF8'.",
        )
    if is_read_only:
        raise Unavailable(*READ_ONLY)


def _microseconds_up() -> int:
    """Time that passes also while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000


class ServerClock:
    """The server's clock, microseconds UTC, as its clients know it without asking each time. It never goes backwards.

    Where the server's is set back, this one runs at half its speed until they agree again.

    Args:
        elapsed: the microseconds since any moment.
    """

    def __init__(self, elapsed: Callable[[], int] = _microseconds_up) -> None:
        self._elapsed = elapsed
        self._offset: int | None = None
        self._set_at = 0

    def __call__(self) -> int:
        """The time."""
        assert self._offset is not None
        return self._elapsed() + self._offset

    def set(self, server_time: int) -> None:
        """Note the time that the server has just told. Only one thread does."""
        here = self._elapsed()
        offset = server_time - here
        if self._offset is not None:
            offset = max(offset, self._offset - (here - self._set_at) // 2)
        self._offset, self._set_at = offset, here
