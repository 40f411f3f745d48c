"""The database that has the store, copies of it, and a PostgreSQL server for trying out: `db`."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.client import OperatorClient, require_unserved
from workbench.cli.global_options import root
from workbench.cli.output import Note, PartialFailure, Shown, confirmed, counted, pass_client, size
from workbench.errors import BadInput, NotFound
from workbench.present.tables import Table
from workbench.state import shares
from workbench.state.database_note import DatabaseNote
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.trust import state_directory

if TYPE_CHECKING:
    from workbench.store.copying import ComparedTable

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="The server's directory; by default one of the project's own.",
)


@root.group()
def db() -> None:
    """The database of the project, and a PostgreSQL server of your own for trying out."""


@db.command()
@data_option
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0: any that is free, as the first time.")
@pass_client
def up(client: OperatorClient, data: Path | None, port: int | None) -> Shown:
    """Start a PostgreSQL server from the programs installed here, for trying out, and print its address.

    It listens on this machine only. Its password is in a file that only you can read, which the address names.
    """
    from workbench.store import own_server

    client.require_operator("db up")
    server = own_server.start(_place(client.settings, data, creates=True), port)
    begun = "runs" if server.is_new else "runs already"
    says = (
        f"PostgreSQL {server.version} {begun} (process {server.pid}) with its data in {server.data}. Its address, for "
        f"you alone:\n{server.url}\nTo use it, set WORKBENCH_DATABASE_URL to that, and copy what the project has there "
        f"with `workbench db copy --to`. `workbench db down{_option(data)}` stops it."
    )
    return Note(says, _as_data(asdict(server)))


@db.command()
@data_option
@pass_client
def down(client: OperatorClient, data: Path | None) -> Shown:
    """Stop the server that `db up` started. Its data stay."""
    from workbench.store import own_server

    client.require_operator("db down")
    place = _place(client.settings, data)
    stopped = own_server.stop(place)
    says = f"The server has stopped. Its data stay in {place}." if stopped else "No server was running."
    return Note(says, {"stopped": stopped, "data": str(place)})


@db.command()
@pass_client
def status(client: OperatorClient) -> Shown:
    """Show which database has the store, how large it is, and who uses it."""
    from workbench.store import own_server

    client.require_operator("db status")
    settings = client.settings
    state_directory.check(settings.project)
    facts = _facts_of_sqlite(settings) if settings.database_url is None else _facts(settings.database_url)
    server = own_server.find(own_server.default_data(settings.home))
    facts["own server"] = f"runs at {server.url}" if server else "none; `workbench db up` starts one"
    return Table(["", ""], [[name, str(value)] for name, value in facts.items()], data=facts)


@db.command()
@click.option("--to", "target", metavar="URL", is_flag=False, flag_value="", help="Copy from SQLite to this database.")
@click.option(
    "--from", "source", metavar="URL", is_flag=False, flag_value="", help="Copy from this database to SQLite."
)
@click.option("--check", is_flag=True, help="Only compare all rows of the two.")
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="SQLite's file; by default the project's own."
)
@click.option("--yes", is_flag=True, help="Replace a file that is there without a question.")
@pass_client
def copy(
    client: OperatorClient, target: str | None, source: str | None, check: bool, file: Path | None, yes: bool
) -> Shown:
    """Copy the whole store from SQLite to an empty PostgreSQL database (--to), or back (--from).

    Without a URL, the database is that of the settings. Every row is compared afterwards. Nothing may use either
    meanwhile; a copy that is interrupted leaves nothing.
    """
    from workbench.store import copying

    client.require_operator("db copy")
    if (target is None) == (source is None):
        raise click.UsageError("Give --to or --from, with the address of a PostgreSQL database.")
    url = _database(client.settings, target or source)
    store = file.absolute() if file else client.settings.database
    require_unserved(client)
    if source is None or check:
        _require_store(client.settings, store)
    if check:
        return _compared(copying.compare_stores(store, url.conninfo), f"{store} and {url}")
    begun = time.monotonic()
    if source is None:
        tables = copying.copy_to_postgres(store, url.conninfo)
        return _copied(tables, begun, url, _use_database(client.settings, url) if file is None else "")
    if file is None:
        state_directory.create(client.settings)
    if store.exists():
        confirmed(f"There is a store in {store}. The copy takes its place, and it is kept aside.", yes)
    tables, aside = copying.copy_from_postgres(url.conninfo, store)
    says = [f"What was there before is in {aside}."] if aside else []
    if file is None:
        DatabaseNote.file(client.settings.home).unlink(missing_ok=True)
        says += ["Without WORKBENCH_DATABASE_URL, the project uses it from now on."]
    return _copied(tables, begun, store, " ".join(says))


def _use_database(settings: Settings, url: DatabaseUrl) -> str:
    """Note that the project's store is in a database from now on; what the person has to do for that."""
    from workbench.store.examination import read_only
    from workbench.store.mark import mark_of

    DatabaseNote(str(url), read_only(settings.database, mark_of).created).write(settings.home)
    if url == settings.database_url:
        return "The project uses it from now on."
    return "The project uses it from now on: set WORKBENCH_DATABASE_URL to its address."


def _copied(tables: Sequence[ComparedTable], begun: float, place: object, more: str) -> Note:
    count = sum(table.rows for table in tables)
    lead = f"Copied {counted(count, 'row')} in {counted(len(tables), 'table')} to {place}; all are equal."
    data = {"to": str(place), "rows": count, "seconds": time.monotonic() - begun, "tables": list(map(asdict, tables))}
    return Note(f"{lead} {more}".strip(), data)


def _compared(tables: Sequence[ComparedTable], places: str) -> Shown:
    different = [table for table in tables if not table.is_equal]
    count = sum(table.rows for table in tables)
    data = [asdict(table) | {"is_equal": table.is_equal} for table in tables]
    if not different:
        return Table(
            ["", ""], [], f"{places} have the same {counted(count, 'row')} in {len(tables)} tables.", data=data
        )
    rows = [[table.table, f"{table.rows:,}", f"{table.other_rows:,}"] for table in different]
    return PartialFailure(["differs", "rows in SQLite", "in PostgreSQL"], rows, data=data)


def _database(settings: Settings, address: str | None) -> DatabaseUrl:
    try:
        typed = DatabaseUrl.of(address)
    except ValueError as error:
        raise BadInput("BAD_DATABASE_URL", f"The address of the database is wrong: {error}.") from None
    if typed is not None and typed.secrets:
        raise BadInput(
            "BAD_DATABASE_URL",
            "The address has a password, which everybody on this machine can see in the list of processes. Change the "
            "password, and put the new one into ~/.pgpass (or the file that PGPASSFILE names), or the whole address "
            "into WORKBENCH_DATABASE_URL.",
        )
    url = typed or settings.database_url
    if url is None:
        raise BadInput(
            "BAD_DATABASE_URL", "No database is named. Give its address, or set WORKBENCH_DATABASE_URL to it."
        )
    return url


def _require_store(settings: Settings, store: Path) -> None:
    from workbench.store.examination import require_there

    state_directory.check(settings.project)
    if not require_there(store):
        raise NotFound("NO_STORE", f"There is no store in {store}.")


def _facts(url: DatabaseUrl) -> dict[str, Any]:
    from workbench.store.server_connection import database_status

    status = database_status(url.conninfo)
    return {
        "store": str(url),
        "version": f"PostgreSQL {status.version}",
        "size": size(status.bytes),
        "connections": f"{status.ours} of Workbench to it; {status.all} of {status.most} to the server",
        "migrations": f"{status.migrations}, the latest {status.latest}" if status.latest else "none: it is empty",
    }


def _facts_of_sqlite(settings: Settings) -> dict[str, Any]:
    from workbench.store.examination import read_only
    from workbench.store.migrate import extent

    store, note = settings.database, DatabaseNote.of(settings.home)
    if note is not None:
        return {"store": f"{note.url}; set WORKBENCH_DATABASE_URL to its address to use it here"}
    facts: dict[str, Any] = {"store": str(store), "version": f"SQLite {sqlite3.sqlite_version}"}
    if not state_directory.has_store(settings):
        return facts | {"size": "none yet; `workbench init` makes it"}
    count, latest = read_only(store, extent)
    users = ", ".join(map(str, shares.holders(settings.shares)))
    return facts | {
        "size": size(store.stat().st_size),
        "connections": f"of processes {users}" if users else "none of servers and notebooks",
        "migrations": f"{count}, the latest {latest}",
    }


def _place(settings: Settings, data: Path | None, *, creates: bool = False) -> Path:
    """The directory of the person's own server."""
    from workbench.store import own_server

    if data is not None:
        return data
    state_directory.check(settings.project)
    if creates:
        state_directory.require(settings)
    return own_server.default_data(settings.home)


def _option(data: Path | None) -> str:
    return f" --data {shlex.quote(str(data))}" if data else ""


def _as_data(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
