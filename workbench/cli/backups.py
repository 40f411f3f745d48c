"""Backups of the project or its store: `backup` makes one, `restore` puts one in its place."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.client import OperatorClient, require_unserved
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, confirmed, counted, pass_client
from workbench.errors import BadInput, Conflict, NotFound, WorkbenchError
from workbench.model import wall_clock
from workbench.present.inert import inert_line
from workbench.state.database_note import DatabaseNote
from workbench.state.settings import Settings
from workbench.trust import state_directory

NOT_ARCHIVED = "since they may hold secrets, or no archive can have their names"


@root.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@pass_client
def backup(client: OperatorClient, file: Path | None) -> Shown:
    """Back up the whole project to FILE; without one, its store alone to .aiswarm/backups, as a file of SQLite.

    A server may run meanwhile. FILE is one archive: the store, the repository's references with all their commits,
    definitions, settings, logs, transcripts and results. It is verified, and has no keys and tokens.
    """
    from workbench.store.backups import back_up
    from workbench.store.copying import back_up_postgres
    from workbench.store.examination import require_whole

    client.require_operator("backup")
    settings = client.settings
    state_directory.require(settings)
    if file is not None:
        return _archived(settings, file.absolute())
    if settings.database_url is not None:
        path = back_up_postgres(settings.database_url.conninfo, settings.database)
    else:
        require_whole(settings.database)
        path = back_up(settings.database, wall_clock())
    return Note(f"The store is backed up to {path}.", {"backup": str(path)})


@root.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--as-it-is", is_flag=True, help="Go on with the store that is there, whatever it lacks.")
@click.option("--empty", is_flag=True, help="Go on with an empty store.")
@click.option("--yes", is_flag=True, help="Replace a store that is whole without a question.")
@pass_client
def restore(client: OperatorClient, file: Path | None, as_it_is: bool, empty: bool, yes: bool) -> Shown:
    """Put a backup in the place of the store, by default the newest. What was there is kept aside.

    FILE is a file of SQLite, or an archive: that becomes a whole project in an empty directory; in a clone of its
    repository, or in the project itself, it brings the state and the references that are missing.
    """
    from workbench.archives.archive import is_archive
    from workbench.store.backups import accept, replace

    client.require_operator("restore")
    settings = client.settings
    state_directory.check(settings.project)
    if sum((file is not None, as_it_is, empty)) > 1:
        raise BadInput("CONFLICTING_OPTIONS", "Give one of a file, --as-it-is and --empty.")
    if file is not None and is_archive(file):
        return _restored(client, settings, file.absolute(), yes)
    if not settings.home.is_dir():
        raise NotFound("NO_PROJECT", f"{settings.project} is no project yet. Run `workbench init` there.")
    _require_on_sqlite(settings)
    if as_it_is:
        aside, sentence = accept(settings.database, wall_clock()), "The store is used as it is."
        return _note(aside, sentence, None)
    source = None if empty else file or _newest(settings)
    if _is_whole(settings):
        confirmed(f"The store is whole. {f'{source} takes' if source else 'An empty one takes'} its place.", yes)
    aside = replace(settings.database, source, wall_clock())
    return _note(aside, f"{source} is the store now." if source else "The next command begins an empty store.", source)


def _archived(settings: Settings, file: Path) -> Note:
    from workbench.archives.making import back_up

    manifest = back_up(settings, file)
    rows = sum(count for count, _ in manifest.tables.values())
    says = (
        f"The project is backed up to {file}: {counted(rows, 'row')}, {counted(len(manifest.refs), 'reference')} and "
        f"{counted(len(manifest.files), 'file')}; verified."
    )
    if manifest.left_out:
        says += f" Left out, {NOT_ARCHIVED}: {inert_line(', '.join(manifest.left_out))}."
    data = {"backup": str(file), "rows": rows, "refs": len(manifest.refs), "files": len(manifest.files)}
    return Note(says, data | {"left_out": manifest.left_out})


def _restored(client: OperatorClient, settings: Settings, file: Path, yes: bool) -> Note:
    from workbench.archives.restoring import restore

    require_unserved(client)
    done = restore(settings, file, lambda question: confirmed(question, yes))
    says = [f"{done.project} has what {file} has; all rows are equal."]
    if done.aside:
        says.append(f"What was there before is in {done.aside}.")
    if done.moved:
        moved = counted(len(done.moved), "reference")
        says.append(f"{moved} had moved, or another was in the way; what is here stayed. What the archive has of them:")
        says.append(", ".join(done.moved.values()) + ".")
    if done.manifest.left_out:
        says.append(f"Not in the archive, {NOT_ARCHIVED}: {inert_line(', '.join(done.manifest.left_out))}.")
    says.append("`workbench trust` shows what of its settings and profiles is to be used here.")
    data = {"project": str(done.project), "backup": str(file), "aside": str(done.aside) if done.aside else None}
    return Note(" ".join(says), data | {"moved": done.moved, "left_out": done.manifest.left_out})


def _require_on_sqlite(settings: Settings) -> None:
    note = DatabaseNote.of(settings.home)
    if settings.database_url is not None or note is not None:
        raise Conflict(
            "STORE_ON_POSTGRESQL",
            f"The project's store is in the database {settings.database_url or (note and note.url)}, and nothing was "
            "changed. Copy a backup into an empty database: `workbench db copy --to URL --file BACKUP`.",
        )


def _note(aside: Path, sentence: str, source: Path | None) -> Note:
    data = {"backup": str(source) if source else None, "aside": str(aside)}
    return Note(f"{sentence} What was there before is in {aside}.", data)


def _newest(settings: Settings) -> Path:
    from workbench.store.backups import newest_backup

    if (backup := newest_backup(settings.database)) is None:
        raise NotFound(
            "NO_BACKUP",
            f"There is no backup in {settings.home / 'backups'}. Name one, or go on with --as-it-is or --empty.",
        )
    return backup


def _is_whole(settings: Settings) -> bool:
    from workbench.store.examination import require_there, require_whole

    try:
        require_whole(settings.database)
        return require_there(settings.database)
    except WorkbenchError:
        return False
