"""Questions about a project, answered by DuckDB from a copy that follows the store by event id.

The first question loads all rows; later ones only load the rows that events since then are about. In this process the
store is read through its own library: a second SQLite library in the process would break its file locks, so no DuckDB
extension opens the file.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import state_directory
from workbench.analytics.bulk.children import ExtractionFailed
from workbench.analytics.bulk.load import SMALLEST, Load
from workbench.analytics.bulk.segments import outline
from workbench.analytics.changes import START, Update, after_event, read_update
from workbench.analytics.replica import Replica
from workbench.errors import BadInput, Refused
from workbench.settings import Settings
from workbench.store.base import Store
from workbench.store.feed import last_event_id
from workbench.store.sqlite import SqliteStore

if TYPE_CHECKING:
    import duckdb
    import pandas

FILES_ADVICE = "To let the query read and write files, use --files, or in Python wb.sql(…, files=True)."

log = logging.getLogger(__name__)


class Live:
    """Answers queries about one store; callable from any thread.

    Args:
        files: queries may read and write files and load extensions; otherwise DuckDB refuses both.
    """

    def __init__(self, files: bool = False) -> None:
        self.replica = Replica(files)
        self._asking = threading.Lock()

    def answer(self, update: Update, query: str, frames: Mapping[str, object] | None = None) -> duckdb.DuckDBPyRelation:
        """Apply an update and run a query, which may not change the tables; its rows are a snapshot.

        Args:
            frames: DataFrames that the query may use as tables, by name; Workbench's own tables take precedence.

        Raises:
            BadInput: ``SQL_FAILED``, with DuckDB's explanation. Refused: ``FILES_NOT_ALLOWED``.
        """
        import duckdb

        with self._asking:
            self.replica.apply(update)
            reader = self.replica.connection()
            try:
                for name, frame in _mentioned(reader, query, frames or {}):
                    reader.register(name, frame)
                reader.execute("BEGIN TRANSACTION READ ONLY")
                relation = reader.sql(query)
                found = None if relation is None else relation.materialize()
            except duckdb.PermissionException as error:
                raise Refused("FILES_NOT_ALLOWED", f"{error}\n{FILES_ADVICE}") from None
            except duckdb.Error as error:
                raise BadInput("SQL_FAILED", str(error)) from None
            finally:
                with suppress(duckdb.Error):
                    reader.execute("ROLLBACK")
        if found is None:
            raise BadInput("SQL_FAILED", "The statement returns no rows. Use SELECT.")
        return found


def _mentioned(db: duckdb.DuckDBPyConnection, query: str, frames: Mapping[str, object]) -> list[tuple[str, object]]:
    """The DataFrames that a query mentions, without those that have the name of a table or view."""
    words = set(re.findall(r"\w+", query.lower()))
    tables = {name for (name,) in db.execute("SELECT lower(table_name) FROM information_schema.tables").fetchall()}
    return [
        (name, frame)
        for name, frame in frames.items()
        if name.lower() in words - tables and any(kind.__name__ == "DataFrame" for kind in type(frame).__mro__)
    ]


def as_frame(found: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The rows of an answer. Times have a time zone, that of the computer."""
    with warnings.catch_warnings():
        # DuckDB calls `DataFrame.drop` as pandas 4 no longer allows.
        warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop", DeprecationWarning)
        frame: pandas.DataFrame = found.df()
    return frame


async def refresh(live: Live, store: Store) -> Update:
    """Read what `live` has not applied yet. All but the last part of very much is applied here."""
    replica = live.replica
    position = replica.position
    if not await store.read(position.fits):
        replica.reset(position)  # a backup, or another store, has taken the place of this one
    if replica.position == START and isinstance(store, SqliteStore):
        await _fill(replica, store)
    while True:
        update = await store.read(partial(read_update, position=replica.position))
        if update.is_last:
            return update
        await asyncio.to_thread(replica.apply, update)


async def _fill(replica: Replica, store: SqliteStore) -> None:
    """Fill an empty copy of a large store. If that fails, the copy stays empty, and is filled page by page."""
    if await store.read(last_event_id) < SMALLEST:
        return
    found, position = await store.read(lambda tx: ((made := outline(tx)), after_event(tx, made.last)))
    load = Load(store.path, found)
    try:
        await asyncio.to_thread(replica.fill, load.into, position)
    except ExtractionFailed as error:
        log.warning("the store is read page by page, which takes longer: %s", error)
    finally:
        load.stop()


def read_closed(live: Live, settings: Settings) -> Update:
    """Read what `live` has not applied yet, without a server. Call it in a thread that has no event loop.

    Raises:
        Unavailable, Conflict: see `open_store`. Refused: see `state_directory.check`.
    """
    from workbench.store.sqlite import open_store

    with state_directory.database(settings) as path, closing(open_store(path)) as store:
        return asyncio.run(refresh(live, store))


def ask(settings: Settings, query: str, files: bool = False) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one query in a process that is not the server: column names and rows. See `Live`.

    Raises:
        BadInput: ``SQL_FAILED``. Refused: ``FILES_NOT_ALLOWED``. Others: see `read_closed`.
    """
    live = Live(files)
    found = live.answer(read_closed(live, settings), query)
    return list(found.columns), found.fetchall()
