"""Questions of a notebook's session about its project: `wb.sql` and `wb.report`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from kernel_ext.hosting import detached
from kernel_ext.hosting.host import forked
from kernel_ext.libraries import imported
from kernel_ext.objects.mistakes import checked
from workbench.analytics import results
from workbench.analytics.changes import Update
from workbench.analytics.live import Live, read_closed, refresh
from workbench.analytics.questions import SqlQuestion, ended_by_interrupt, query_interrupted
from workbench.analytics.reports import Report, report
from workbench.cli.analysis.reports import reports_table
from workbench.errors import Interrupted
from workbench.present.tables import Table
from workbench.state.settings import Settings
from workbench.trust import project_store

if TYPE_CHECKING:
    import duckdb

    from kernel_ext.hosting.host import KernelHost


class Querying:
    """The part of a session that queries its project. After a stop it reads what is stored."""

    _host: KernelHost | None

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._forget_queries()

    @property
    def host(self) -> KernelHost:
        """See `WorkbenchSession.host`."""
        raise NotImplementedError

    @property
    def settings(self) -> Settings:
        """See `WorkbenchSession.settings`."""
        raise NotImplementedError

    def _forget_queries(self) -> None:
        """Begin again: temporary views and other projects belonged to an earlier start."""
        self._live, self._live_with_files = Live(), Live(files=True)

    def _check_process(self) -> None:
        """Refuse to query in a process that was forked from the kernel: DuckDB's threads are not in it.

        Raises:
            Unavailable: ``FORKED``.
        """
        if self._pid != os.getpid():
            raise forked()

    def sql(
        self,
        query: str,
        *,
        files: bool = False,
        frames: Mapping[str, object] | None = None,
        as_: str = "pandas",
        projects: Mapping[str, str | Path] | None = None,
        **values: object,
    ) -> Any:
        """Query the project with DuckDB, live or, after a stop, as it was stored. Your DataFrames are tables too.

        The answer is a DataFrame; None for statements such as CREATE TEMP VIEW, which stays until the project changes.
        An interrupt ends the query, and so does the setting `sql_seconds`.

        Args:
            files: let the query read and write files, and load extensions.
            frames: DataFrames and values by name; by default the variables of the calling function and module.
            as_: the library of the answer: pandas, polars, or arrow.
            projects: roots of other projects, or files of exports, by name: with `{"other": "../b"}` a query can use
                `other.tasks`. They are only read. By default those of the last query.
            values: those of parameters: `persona="tester"` for `$persona` in the query. Others are variables of yours.

        Raises:
            BadInput: ``SQL_FAILED``, ``UNKNOWN_LIBRARY``. Refused: ``FILES_NOT_ALLOWED``.
            Unavailable: ``SQL_TOO_SLOW``, ``LIBRARY_MISSING``, ``FORKED``. About other projects: see `Others.follow`.
        """
        if frames is None:
            calling = sys._getframe(1)
            frames = {**calling.f_globals, **calling.f_locals}
        checked(query, str, "wb.sql", "a query as a text")
        results.check(as_)
        self._check_process()
        live = self._live_with_files if files else self._live
        others = None if projects is None else {name: Path(root) for name, root in projects.items()}
        question = SqlQuestion(query, {**frames, **values}, frames, self.settings.sql_seconds, others)
        with _interruptible(results.package(as_)), live.asking:
            relation = live.run(self._update(live), question)
            if relation is None:
                return None
            if as_ != "pandas":
                return results.converted(relation, as_)
            from workbench.analytics.answer import QueryAnswer

            return QueryAnswer(results.as_frame(relation))

    @overload
    def report(self, name: None = None, /) -> Table: ...
    @overload
    def report(self, name: str, /, *of: object, by: str | None = None) -> Report: ...
    def report(self, name: str | None = None, /, *of: object, by: str | None = None) -> Report | Table:
        """A standard report: its `sentence`, its `frame` and, for most, its `chart`; without a name, a list of them.

        Args:
            of: what `comparison` compares, such as two plans, and `runs` (ids) and `projects` (directories).
            by: what the report `comparison` compares: run, or a column of the view `tasks`, such as plan or persona.

        Raises:
            BadInput: ``UNKNOWN_REPORT``, ``NO_GROUPS``. About other projects: see `sql`.
        """
        if name is None:
            return reports_table()
        checked(name, str, "wb.report", "the name of a report")
        self._check_process()
        with _interruptible("pandas", "altair"), self._live.asking:
            return report(name, self._query, by, of)

    def _query(self, query: str, **options: Any) -> duckdb.DuckDBPyRelation:
        return self._live.answer(self._update(self._live), query, **options)

    def _update(self, live: Live) -> Update:
        """What has changed since the last query. After a stop it is read from the store; the servers stay stopped."""
        host = self._host
        if host is None or host.running:
            return self.host.wait(self._changes(live))
        return detached.in_thread(lambda: read_closed(live, host.settings))  # this thread has the kernel's loop

    async def _changes(self, live: Live) -> Update:
        if self.host.workbench is not None:
            self.host.workbench.require_unmoved()
            return await refresh(live, self.host.workbench.store)
        # Another process serves the project: open its store to read, and close it again.
        store = await asyncio.to_thread(project_store.open_store, self.settings)
        try:
            return await refresh(live, store)
        finally:
            await asyncio.to_thread(store.close)


@contextmanager
def _interruptible(*libraries: str) -> Iterator[None]:
    """Answer a question that needs some libraries: an interrupt is one line, whatever it ends.

    Raises:
        Interrupted: ``SQL_INTERRUPTED``.
    """
    try:
        imported("duckdb", "numpy", *libraries)
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise query_interrupted() from None
    except RuntimeError as error:
        if not ended_by_interrupt(error):
            raise
        raise query_interrupted() from None
