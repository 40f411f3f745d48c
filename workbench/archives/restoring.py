"""Restores an archive: a whole project into an empty directory, or the state of one that is there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.archives.archive import REFS, STATE, STORE, Archive, Manifest, damaged, newer, opened, unsafe
from workbench.errors import BadInput, Conflict, Unavailable
from workbench.git import Repository
from workbench.model import wall_clock
from workbench.state import outside
from workbench.state.database_note import DatabaseNote
from workbench.state.settings import Settings
from workbench.store.backups import hold_closed, new_aside, put
from workbench.store.copying import copy_to_postgres, hash_tables, require_empty
from workbench.store.examination import read_only
from workbench.store.mark import mark_of, read_mark
from workbench.store.migrate import migrate, scripts
from workbench.store.sqlite_connection import connect
from workbench.trust import project_store, state_directory


@dataclass
class Restored:
    """What was done.

    Args:
        project: the project's root.
        aside: the directory that has what was there before; None if nothing was.
        moved: references that are elsewhere now and stay, each with the one that has what the archive had.
    """

    manifest: Manifest
    project: Path
    aside: Path | None = None
    moved: dict[str, str] = field(default_factory=dict)


def restore(settings: Settings, path: Path, ask: Callable[[str], None]) -> Restored:
    """Restore an archive. Blocks.

    Everything is unpacked and verified before anything is changed. If it is killed, it can be done again.

    Args:
        ask: returns once the person agrees that a store that is there is replaced.

    Raises:
        BadInput, Refused, Conflict: see `archive.opened`. Conflict: ``ARCHIVE_OF_ANOTHER``, ``PLACE_NOT_EMPTY``,
            ``STORE_IN_USE``, ``COPY_NOT_EMPTY``. Unavailable: ``RESTORE_FAILED``.
    """
    with _failures(), opened(path) as archive:
        manifest = archive.manifest
        repository = _repository(settings.project)
        is_new = repository is None and bool(manifest.refs)
        _require_place(settings, archive, repository)
        project = settings.project / manifest.within if is_new else settings.project
        _require_room(settings.project, manifest)
        with TemporaryDirectory(prefix=".restoring-", dir=settings.project) as directory:
            unpacked = Path(directory)
            archive.unpack(unpacked)
            _require_store(archive, unpacked / STORE)
            done = Restored(manifest, project)
            _require_free(settings)
            if is_new:
                Repository.begin_from_bundle(unpacked / "new", unpacked / REFS, manifest.refs, manifest.head)
                if not (unpacked / "new" / manifest.within).resolve().is_relative_to(unpacked.resolve()):
                    raise unsafe(path, manifest.within)
            elif settings.database.exists() and settings.database_url is None:
                ask(f"{path} takes the place of the store of {project.name}, and its files that of files there.")
            if is_new:
                for entry in sorted((unpacked / "new").iterdir(), key=lambda path: path.name != ".git"):
                    entry.rename(settings.project / entry.name)
            elif repository is not None and manifest.refs:
                aside = f"refs/workbench/restored/{manifest.made_at}"
                done.moved = repository.restore_refs(unpacked / REFS, manifest.refs, aside)
            _put_state(_at(project, settings), unpacked, done)
        return done


def _at(project: Path, settings: Settings) -> Settings:
    """The settings of a project that may just have come, which names no other database than was asked for."""
    if project == settings.project:
        return settings
    project.mkdir(parents=True, exist_ok=True)  # git has no directory without files
    return Settings.load(project).model_copy(update={"database_url": settings.database_url})


def _put_state(settings: Settings, unpacked: Path, done: Restored) -> None:
    """Put files, then the store, in their places."""
    state_directory.create(settings)
    now = wall_clock()
    with hold_closed(settings.database):
        if _put_files(unpacked / STATE, settings, now):
            done.aside = new_aside(settings.database, now)
        if settings.database_url is None:
            done.aside = put(unpacked / STORE, settings.database, now) or done.aside
    if settings.database_url is not None:
        copy_to_postgres(unpacked / STORE, settings.database_url.conninfo)
        DatabaseNote(str(settings.database_url), done.manifest.created).write(settings.home)


def _put_files(unpacked: Path, settings: Settings, now: int) -> bool:
    """Put files below the state directory; whether others were put aside."""
    replaced = False
    for file in sorted(path for path in unpacked.rglob("*") if path.is_file()):
        name = file.relative_to(unpacked)
        target = settings.home / name
        if os.path.lexists(target):
            if not target.is_symlink() and target.read_bytes() == file.read_bytes():
                continue
            old = new_aside(settings.database, now) / name
            old.parent.mkdir(parents=True, exist_ok=True)
            target.rename(old)
            replaced = True
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.rename(target)
    return replaced


def _require_place(settings: Settings, archive: Archive, repository: Repository | None) -> None:
    """Refuse a place that has something else.

    Raises:
        Conflict: ``ARCHIVE_OF_ANOTHER``, ``PLACE_NOT_EMPTY``, ``DATABASE_NOT_SET``.
    """
    manifest, project = archive.manifest, settings.project
    state_directory.check(project)
    if settings.database_url is None and (note := DatabaseNote.of(settings.home)) is not None:
        raise project_store.not_set(settings, note)
    if repository is None and manifest.refs and (others := _others(project, archive.path)):
        raise Conflict(
            "PLACE_NOT_EMPTY",
            f"{project} has files ({others[0]}), and {archive.path} brings a repository. Restore it into an empty "
            "directory, or into a clone of that repository.",
        )
    is_ours = not repository or not manifest.roots or any(map(repository.has_object, manifest.roots))
    known = _created(settings)
    if known and manifest.created not in known and manifest.origin != outside.of(settings.home).name:
        is_ours = False
    if not is_ours:
        raise Conflict(
            "ARCHIVE_OF_ANOTHER",
            f"{archive.path} is of another project, {manifest.project[:80]!r}. Nothing was changed. Restore it into an "
            "empty directory, or into a clone of that project's repository.",
        )
    for name in manifest.files:
        _require_unlinked(archive, settings.home, name)


def _others(project: Path, archive: Path) -> list[str]:
    """What is in a directory besides the archive."""
    return sorted(entry.name for entry in project.iterdir() if not entry.samefile(archive))


def _require_free(settings: Settings) -> None:
    """Refuse a store that is in use, or a database that has one, before anything is changed.

    Raises:
        Conflict: ``STORE_IN_USE``, ``COPY_NOT_EMPTY``.
    """
    if settings.home.is_dir():
        with hold_closed(settings.database):
            pass
    if settings.database_url is not None:
        require_empty(settings.database_url.conninfo)


def _require_unlinked(archive: Archive, home: Path, name: str) -> None:
    above = (home / name.partition("/")[2]).parents if name.startswith(f"{STATE}/") else ()
    if link := next((path for path in above if path.is_relative_to(home) and path.is_symlink()), None):
        raise BadInput(
            "ARCHIVE_UNSAFE",
            f"{archive.path} has {name}, and {link} is a link to another place. Nothing was changed. Replace the link "
            "by the directory, and restore then.",
        )


def _created(settings: Settings) -> set[int]:
    """When the store that is or was here was created, as far as that is known."""
    mark = read_mark(settings.database)
    known = {mark.created} if mark else set()
    if (note := DatabaseNote.of(settings.home)) is not None:
        known.add(note.created)
    if settings.database.exists() and not known:
        with suppress(sqlite3.Error):  # it is damaged, so it is replaced
            known.add(read_only(settings.database, mark_of).created)
    return known


def _require_room(place: Path, manifest: Manifest) -> None:
    status = os.statvfs(place)
    if manifest.bytes > status.f_bavail * status.f_frsize:
        raise OSError(f"{manifest.bytes:,} bytes are needed in {place}, and fewer are free")


def _require_store(archive: Archive, store: Path) -> None:
    """Refuse a store whose rows are not those that were backed up; bring one of an older version up to date."""
    try:
        if hash_tables(store) != archive.manifest.tables:
            raise damaged(archive.path, "rows of the store differ from the manifest")
        with closing(connect(store)) as db:
            migrate(db, scripts(), wall_clock())
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise damaged(archive.path, f"the store: {error}") from error
    except Conflict as error:
        if error.code != "MIGRATION_UNKNOWN":
            raise
        raise newer(archive.path, archive.manifest.workbench) from error


def _repository(project: Path) -> Repository | None:
    try:
        return Repository.open(project)
    except BadInput as error:
        if error.code == "NOT_A_REPOSITORY":
            return None
        raise


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            "RESTORE_FAILED",
            f"The archive could not be restored: {error}. Do it again when that is mended.",
            reason=str(error),
        ) from error
