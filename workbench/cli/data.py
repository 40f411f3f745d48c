"""Data: `sql`, `export`, `migrate`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from workbench import state_directory
from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, Text, output_unwritable, pass_client, raw_option
from workbench.model import iso
from workbench.settings import Settings
from workbench.tables import Table

RESOURCES = ["agents", "teams", "contexts", "sessions", "projects", "events"]


@root.command()
@click.argument("query")
@click.option("--files", is_flag=True, help="Let the query read and write files, and load extensions.")
@pass_client
def sql(client: OperatorClient, query: str, files: bool) -> Shown:
    """Run a DuckDB query. Its tables are tasks, attempts, agents, events, …"""
    from workbench.analytics.live import ask

    client.require_operator("sql")
    columns, rows = ask(client.settings, query, files)
    data = [dict(zip(columns, map(str, row), strict=True)) for row in rows]
    return Table(columns, rows, "No rows.", data)


@root.command("export")
@click.argument("resource", type=click.Choice(RESOURCES))
@click.option(
    "--format", "form", type=click.Choice(["csv", "json"]), default="csv", show_default=True, help="The format."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@raw_option
@pass_client
def export_rows(client: OperatorClient, resource: str, form: str, output: Path | None, raw: bool) -> Shown:
    """Print all rows of a resource, or save them."""
    made = client.call("export", resource=resource, format=form)
    if output is None:
        content = made["content"].rstrip("\r\n")
        return Text(content if raw else content.replace("\r\n", "\n"), made, raw)
    try:
        output.write_text(made["content"], "utf-8", newline="")
    except OSError as error:
        raise output_unwritable(str(output), error) from None
    return Note(f"Saved {resource} to {output}.", made)


@root.command()
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Import the database of the old server.",
)
@click.option("--status", "listed", is_flag=True, help="List the applied migrations.")
@pass_client
def migrate(client: OperatorClient, file: Path | None, listed: bool) -> Shown:
    """Update the store, or import an old database."""
    if file is not None and listed:
        raise click.UsageError("Use --from or --status, not both.")
    client.require_operator("migrate")
    if not listed:
        state_directory.require(client.settings)
    if file is not None:
        return _imported(client.settings, file)
    with ThreadPoolExecutor(
        1, thread_name_prefix="workbench-migrate"
    ) as apart:  # this thread may run a notebook's loop
        history = apart.submit(asyncio.run, _applied(client.settings)).result()
    if listed:
        columns = {
            "migration_name": "migration",
            "applied_at": "applied",
            "execution_time_ms": "ms",
            "success": "succeeded",
            "reason": "why",
        }
        return Table.of(history, columns, "No migration has been applied yet.")
    return Note(f"The store is up to date; its latest migration is {history[-1]['migration_name']}.", history)


def _imported(settings: Settings, file: Path) -> Table:
    from workbench.legacy import import_legacy

    made = import_legacy(settings, file)
    rows = [[table, counted.found, counted.added] for table, counted in made.tables.items()]
    backup = [f"A backup of the store from before is {made.backup}."] if made.backup else []
    note = "\n".join([*made.notes, *backup])
    return Table(["table", "found", "added"], rows, data=made.model_dump(mode="json"), note=note)


async def _applied(settings: Settings) -> list[dict[str, Any]]:
    """The history of migrations; opening the store applies missing ones."""
    from workbench.store import migrate as migrations
    from workbench.store.sqlite import open_store

    state_directory.check(settings.project)
    if not settings.database.exists():
        return []
    store = await asyncio.to_thread(open_store, settings.database)
    try:
        rows = await store.read(migrations.applied_migrations)
    finally:
        await asyncio.to_thread(store.close)
    return [dict(row) | {"applied_at": iso(row["applied_at"]), "success": bool(row["success"])} for row in rows]
