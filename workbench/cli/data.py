"""Data: `export`, `import`, `migrate`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import is_zipfile

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import (
    Fn,
    Note,
    Shown,
    Text,
    agreed,
    counted,
    output_unwritable,
    pass_client,
    raw_option,
    size,
)
from workbench.errors import BadInput, NotFound
from workbench.model import iso
from workbench.present.tables import Table
from workbench.state.settings import Settings
from workbench.system import atomic_file
from workbench.trust import state_directory

RESOURCES = offers.RESOURCES
IMPORTABLE = offers.IMPORTABLE
OTHER_EXPORTS = {
    "plans": "`workbench plan {file}` creates an exported plan, and with --update changes the one that there is.",
    "definitions": "`workbench define import {file}` creates an exported definition.",
    "conversations": "An exported conversation is to be read. `workbench backup FILE` keeps conversations with the "
    "rest of the project, and `workbench restore FILE` restores them.",
}
"""What is exported by commands of their own, and what reads it."""
FORMATS = ("csv", "json")
VIEW_FORMATS = (*FORMATS, "jsonl", "parquet")
SHOWN = 20
"""The most rows that are shown before they are imported."""


def _into(form: str, help: str) -> Callable[[Fn], Fn]:
    """An option that names the directory of an export in a form."""
    return click.option(f"--{form}", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY", help=help)


@root.command("export")
@click.argument("resource", required=False, metavar="[RESOURCE|VIEW]", shell_complete=offers.exports)
@click.option(
    "--format",
    "form",
    type=click.Choice(VIEW_FORMATS),
    default=None,
    help="By default, that of the file's name, or csv; jsonl and parquet for views only.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@_into("parquet", "Save every view and table as Parquet files in this directory instead.")
@_into("csv", "Likewise as CSV.")
@_into("jsonl", "Likewise as JSON lines.")
@click.option("--force", is_flag=True, help="Replace the files that are in the directory.")
@raw_option
@pass_client
def export_rows(
    client: OperatorClient,
    resource: str | None,
    form: str | None,
    output: Path | None,
    raw: bool,
    force: bool,
    **directories: Path | None,
) -> Shown:
    """Print all rows of a resource or a view, or save them. Or save everything that `sql` can query.

    Resources have the form that `import` reads: agents, teams, contexts, sessions, projects, tasks; and events, which
    are history. `views` lists the views.
    """
    exports = [(suffix, directory) for suffix, directory in directories.items() if directory is not None]
    if exports and (resource or form or output or len(exports) > 1):
        raise click.UsageError("--parquet, --csv and --jsonl save everything: give only one of them, and no resource.")
    if exports:
        return _save_all(client, *exports[0], force)
    if resource is None:
        raise click.UsageError(
            f"Name one of {', '.join(RESOURCES)}, or a view, or save everything with --parquet DIRECTORY."
        )
    if force:
        raise click.UsageError("--force goes with --parquet, --csv or --jsonl.")
    named_form = _form(output, VIEW_FORMATS) if output else None
    if output and output.suffix and not (form or named_form):
        raise click.UsageError(f"{output} is not named {', '.join(f'.{one}' for one in VIEW_FORMATS)}. Give --format.")
    form = form or named_form or "csv"
    if resource not in RESOURCES or form not in FORMATS:
        return _view(client, resource, form, output, raw)
    export = client.call("export", resource=resource, format=form)
    if output is None:
        content = export["content"].rstrip("\r\n")
        return Text(content if raw else content.replace("\r\n", "\n"), export, raw)
    try:
        with atomic_file.replacing(output) as file:
            file.write_text(export["content"], "utf-8", newline="")
    except OSError as error:
        raise output_unwritable(str(output), error) from None
    return Note(f"Saved {resource} to {output}.", export)


@root.command("import")
@click.argument("resource", shell_complete=offers.importable)
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help="By default, that of FILE's name.")
@click.option("--yes", is_flag=True, help="Import without a question.")
@pass_client
def import_rows(client: OperatorClient, resource: str, file: Path, form: str | None, yes: bool) -> Shown:
    """Import rows that `export` saved. Shows first what would be added: all of it is, or none.

    What is here already stays as it is. Import projects first, then sessions, teams, agents, contexts and tasks. Of
    everything else that an export writes, it says which command reads it.
    """
    if resource not in IMPORTABLE or file.is_dir():
        raise _read_otherwise(resource, file) or click.UsageError(f"RESOURCE is one of {', '.join(IMPORTABLE)}.")
    if (named_form := form or _form(file)) is None:
        why = f"{file} is not named .csv or .json. Give --format."
        raise _read_otherwise(resource, file) or click.UsageError(why)
    try:
        source = {"resource": resource, "format": named_form, "content": _text(file)}
        preview = client.call("import_records", **source, dry_run=True)
    except BadInput as error:
        raise _read_otherwise(resource, file) or error from None
    if not preview["added"]:
        return Note(" ".join(["Nothing to import.", _say_present(preview), *preview["notes"]]), preview)
    if not yes and not agreed(f"{_preview(preview)}\n\nImport this?"):
        return _preview(preview, f"Nothing was changed. To import this: import {resource} {file} --yes")
    records = client.call("import_records", **source, dry_run=False)
    tokens = "`token AGENT` issues a token to each." if resource == "agents" else ""
    sentence = f"Imported {counted(len(records['added']), resource.removesuffix('s'))}."
    return Note(" ".join(filter(None, [sentence, _say_present(records), *records["notes"], tokens])), records)


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
        return _import_old(client.settings, file)
    with ThreadPoolExecutor(
        1, thread_name_prefix="workbench-migrate"
    ) as apart:  # this thread may run a notebook's loop
        history = apart.submit(asyncio.run, _read_migrations(client.settings)).result()
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


def _read_otherwise(resource: str, file: Path) -> BadInput | None:
    """The error that says which command reads an export; None: it is no export that another command reads."""
    from workbench.analytics import exported

    named, kind = quote(str(file)), f"{resource.removesuffix('s')}s"
    if file.is_file() and is_zipfile(file):
        return _not_imported(f"{file} is a whole project. `workbench restore {named}` restores it.")
    if kind in OTHER_EXPORTS:
        return _not_imported(OTHER_EXPORTS[kind].format(file=named))
    try:
        tables = exported.tables_in(file)
    except BadInput as error:
        return error if resource in exported.SAVED and resource not in IMPORTABLE else None
    if not tables:
        return None
    view = "tasks" if "tasks" in tables else tables[0]
    what = "views" if file.is_dir() else f"the view {view}"
    rows = f" `workbench export {resource} -o {resource}.json` saves the rows that are imported."
    return _not_imported(
        f"{file} has {what}: history of the project that it is of, which no other can take over. `workbench sql "
        f'--project old={named} "FROM old.{view}"` queries it beside this one.{rows if resource in IMPORTABLE else ""}'
    )


def _not_imported(sentences: str) -> BadInput:
    return BadInput("NOT_IMPORTED", sentences)


def _save_all(client: OperatorClient, form: str, directory: Path, force: bool) -> Table:
    """Save everything that can be queried."""
    from workbench.analytics.export import export, in_thread

    client.require_operator("export")
    state_directory.require(client.settings)
    files = in_thread(partial(export, client.settings, directory, form, force))
    rows = [[file.file, f"{file.rows:,}", size(file.bytes)] for file in files]
    note = f"Saved {counted(len(files), 'file')} to {directory}."
    return Table(["file", "rows", "size"], rows, data=[asdict(file) for file in files], note=note)


def _view(client: OperatorClient, name: str, form: str, output: Path | None, raw: bool) -> Shown:
    """Print or save a view."""
    from workbench.analytics import views
    from workbench.analytics.export import export_view, in_thread

    try:
        view = views.find(name).name
    except NotFound as unknown:
        raise click.UsageError(f"{unknown.message} Resources: {', '.join(RESOURCES)}.") from None
    client.require_operator("export")
    state_directory.require(client.settings)
    if output is None and form == "parquet":
        raise click.UsageError("Parquet is not text. Name a file: -o FILE.parquet.")
    with TemporaryDirectory(prefix="workbench-export-") as scratch:
        file = output or Path(scratch) / f"{view}.{form}"
        exported = in_thread(partial(export_view, client.settings, view, file.absolute(), form))
        if output is None:
            content = file.read_text("utf-8")
            return Text(content.rstrip("\r\n"), {"view": view, "format": form, "content": content}, raw)
    return Note(f"Saved {counted(exported.rows, 'row')} of {view} to {output}.", asdict(exported))


def _form(file: Path, forms: Sequence[str] = FORMATS) -> str | None:
    """The format that a file's name ends with."""
    form = file.suffix.removeprefix(".").lower()
    return form if form in forms else None


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadInput("NOT_TEXT", f"{file} is not UTF-8 text: {error.reason}.") from None


def _preview(preview: Mapping[str, Any], *notes: str) -> Table:
    """The rows that would be added."""
    added = preview["added"]
    rows = [[label or "(without a title)"] for label in added[:SHOWN]]
    more = [f"… and {len(added) - SHOWN:,} more"] if len(added) > SHOWN else []
    note = "\n".join([*more, f"To add: {len(added):,}. {_say_present(preview)}", *preview["notes"], *notes])
    return Table([preview["resource"]], rows, data=preview, note=note)


def _say_present(preview: Mapping[str, Any]) -> str:
    return f"Already here: {preview['present']:,}."


def _import_old(settings: Settings, file: Path) -> Table:
    from workbench.legacy import import_legacy

    outcome = import_legacy(settings, file)
    rows = [[table, counts.found, counts.added] for table, counts in outcome.tables.items()]
    backup = [f"A backup of the store from before is {outcome.backup}."] if outcome.backup else []
    note = "\n".join([*outcome.notes, *backup])
    return Table(["table", "found", "added"], rows, data=outcome.model_dump(mode="json"), note=note)


async def _read_migrations(settings: Settings) -> list[dict[str, Any]]:
    """The history of migrations; opening the store applies missing ones."""
    from workbench.store import migrate as migrations
    from workbench.trust.project_store import open_store

    state_directory.check(settings.project)
    if not state_directory.has_store(settings):
        return []
    store = await asyncio.to_thread(open_store, settings)
    try:
        rows = await store.read(migrations.applied_migrations)
    finally:
        await asyncio.to_thread(store.close)
    return [dict(row) | {"applied_at": iso(row["applied_at"]), "success": bool(row["success"])} for row in rows]
