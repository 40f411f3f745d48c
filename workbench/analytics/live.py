"""Questions about a project, answered by DuckDB from a copy that follows the store by event id.

The first question loads all rows; later ones only load the rows that events since then are about. In this process the
store is read through its own library: a second SQLite library in the process would break its file locks, so no DuckDB
extension opens the file.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analytics.changes import START, Update, after_event, read_update
from workbench.analytics.first_load import SMALLEST, LoadFailed, first_load
from workbench.analytics.others import Others
from workbench.analytics.questions import SqlQuestion, answer
from workbench.analytics.replica import Replica
from workbench.errors import BadInput
from workbench.state.settings import Settings
from workbench.store import rolled_up
from workbench.store.base import Store
from workbench.store.feed import last_event_id
from workbench.trust import project_store

if TYPE_CHECKING:
    import duckdb

log = logging.getLogger(__name__)


class Live:
    """Answers queries about one store; callable from any thread.

    The rows of an answer come over the connection that all questions share: have `asking` until they are read.

    Temporary views stay from one query to the next, until another store takes the place of this one.

    Args:
        files: queries may read and write files and load extensions; otherwise DuckDB refuses both.
        scratch: a directory for what of the copy does not fit into little memory; None: all of it is in memory.
    """

    def __init__(self, files: bool = False, scratch: Path | None = None) -> None:
        self.replica = Replica(files, scratch)
        self._others = Others(self.replica)
        self.asking = threading.RLock()
        """Held for a question; by whoever reads the rows of an answer, until they are read."""
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._generation = 0

    def answer(
        self, update: Update, query: str, *, projects: Mapping[str, Path] | None = None, **options: Any
    ) -> duckdb.DuckDBPyRelation:
        """Apply an update and run a query that has rows. See `run`.

        Args:
            projects: for this query only, besides those that are known.

        Raises:
            BadInput: ``SQL_FAILED``. Others: see `questions.answer`, `Others.follow`.
        """
        with self.asking:
            self.replica.apply(update)
            with self._others.besides(projects or {}):
                relation = self._answer(SqlQuestion(query, **options))
        if relation is None:
            raise BadInput("SQL_FAILED", "The statement returns no rows. Use SELECT.")
        return relation

    def run(self, update: Update, question: SqlQuestion) -> duckdb.DuckDBPyRelation | None:
        """Apply an update and answer a question, which may change nothing; the rows of the answer are a snapshot.

        Raises:
            BadInput, Refused, Unavailable: see `questions.answer`. Others: see `Others.follow`.
        """
        with self.asking:
            self.replica.apply(update)
            self._others.follow(question.projects)
            return self._answer(question)

    def _answer(self, question: SqlQuestion) -> duckdb.DuckDBPyRelation | None:
        generation = self.replica.generation
        if self._connection is None or self._generation != generation:
            self._connection, self._generation = self.replica.connection(), generation
        return answer(self._connection, question)


async def refresh(live: Live, store: Store) -> Update:
    """Read what `live` has not applied yet. All but the last part of very much is applied here."""
    replica = live.replica
    position = replica.position
    if not await store.read(position.fits):
        replica.reset(position)  # a backup, or another store, has taken the place of this one
    if replica.position == START:
        await _fill(replica, store)
    while True:
        update = await store.read(partial(read_update, position=replica.position))
        if update.is_last:
            return update
        await asyncio.to_thread(replica.apply, update)


async def _fill(replica: Replica, store: Store) -> None:
    """Fill an empty copy of a large store. If that fails, the copy stays empty, and is filled page by page."""
    position = await store.read(lambda tx: after_event(tx, last_event_id(tx)))
    if position.cursor < SMALLEST:
        return
    old = await store.read(lambda tx: (rolled_up.last_id(tx), rolled_up.parquet_files(tx)))
    load = first_load(store.target, position.cursor, old)
    try:
        await asyncio.to_thread(replica.fill, load.into, position)
    except LoadFailed as error:
        log.warning("the store is read page by page, which takes longer: %s", error)
    finally:
        load.stop()
    if await store.read(rolled_up.last_id) != old[0]:  # rows that were rolled up meanwhile may be missing
        replica.reset(replica.position)


def read_closed(live: Live, settings: Settings) -> Update:
    """Read what `live` has not applied yet, without a server. Call it in a thread that has no event loop.

    Raises:
        Unavailable, Conflict: see `project_store.open_store`. Refused: see `state_directory.check`.
    """
    with project_store.opener(settings) as opener, closing(opener()) as store:
        return asyncio.run(refresh(live, store))


def ask(settings: Settings, question: SqlQuestion, files: bool = False) -> duckdb.DuckDBPyRelation | None:
    """Answer one question in a process that is not the server. See `Live`.

    Raises:
        BadInput, Refused, Unavailable: see `questions.answer`, `read_closed`.
    """
    live = Live(files)
    return live.run(read_closed(live, settings), question)
