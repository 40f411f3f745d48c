"""Imports the database of the old server (spec 1, phase 4) into a project: `import_legacy(settings, legacy.db)`.

`source` reads the old database and never writes to it, `plan` maps each row to the new one, `target` backs up the
project's store and adds the rows, all in one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workbench.errors import Conflict
from workbench.legacy import target
from workbench.legacy.plan import MigrationPlan, decide
from workbench.legacy.source import Legacy, read
from workbench.model import Wire
from workbench.state.settings import Settings
from workbench.store.backups import back_up
from workbench.store.base import Reader, Store, Tx
from workbench.trust import project_store, state_directory


class Counted(Wire):
    """The rows of one table: how many the legacy database has, and how many were added."""

    found: int
    added: int


class LegacyImport(Wire):
    """What was imported. `backup` is a copy of the store from before, if there was a store and anything was added."""

    tables: dict[str, Counted]
    backup: str | None
    notes: list[str]


def import_legacy(settings: Settings, source: Path, *, clock: Callable[[], int] | None = None) -> LegacyImport:
    """Add every row of a legacy database that the project does not have yet: all of them, or none.

    It opens the store itself, as another process would, so servers may run meanwhile. It blocks, and may be
    called from any thread, also from one with a running event loop.

    Raises:
        NotFound: ``LEGACY_NOT_FOUND``.
        BadInput: ``NOT_A_DATABASE``, ``NOT_LEGACY``.
        Unavailable: ``LEGACY_CORRUPT``, ``LEGACY_UNREADABLE``, ``BACKUP_FAILED``, and see `project_store.open_store`.
        Conflict: ``LEGACY_REFUSED`` (the store does not take a row), and see `project_store.open_store`.
    """
    legacy = read(source)
    with ThreadPoolExecutor(1, thread_name_prefix="workbench-migrate") as apart:
        return apart.submit(asyncio.run, _import(settings, legacy, clock)).result()


async def _import(settings: Settings, legacy: Legacy, clock: Callable[[], int] | None) -> LegacyImport:
    state_directory.create(settings)
    existed = state_directory.has_store(settings)
    store = await asyncio.to_thread(project_store.open_store, settings, clock)
    try:
        plan, backup = await store.read(lambda tx: _plan(tx, legacy)), None
        if plan.adds:
            backup = await asyncio.to_thread(_back_up, settings, store.now()) if existed else None
            plan = await _add(store, legacy, _database_error(settings))
    finally:
        store.close()
    tables = {table: Counted(found=legacy.found[table], added=len(rows)) for table, rows in plan.rows.items()}
    return LegacyImport(tables=tables, backup=str(backup) if backup else None, notes=[*legacy.notes, *plan.notes])


def _back_up(settings: Settings, now: int) -> Path:
    if settings.database_url is None:
        return back_up(settings.database, now)
    from workbench.store.copying import back_up_postgres

    return back_up_postgres(settings.database_url.conninfo, settings.database)


def _database_error(settings: Settings) -> type[Exception]:
    """What the project's database raises for a statement that fails."""
    if settings.database_url is None:
        return sqlite3.Error
    import psycopg

    return psycopg.Error


def _plan(tx: Reader, legacy: Legacy) -> MigrationPlan:
    return decide(legacy, target.present(tx), tx.now)


async def _add(store: Store, legacy: Legacy, database_error: type[Exception]) -> MigrationPlan:
    def change(tx: Tx) -> MigrationPlan:
        plan = _plan(tx, legacy)  # again: other processes may have written since
        target.add(tx, plan, legacy)
        return plan

    try:
        return await store.write(change, actor="operator")
    except database_error as error:
        raise Conflict(
            "LEGACY_REFUSED",
            f"The store does not take what is in {legacy.name}: {error}. Nothing was changed. Correct the row in a "
            "copy of the legacy database, and migrate from the copy.",
            reason=str(error),
        ) from error
