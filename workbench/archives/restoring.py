"""Restores an archive: a whole project into an empty directory, or the state of one that is there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from filecmp import cmp
from pathlib import Path

from workbench.archives.archive import (
    REFS,
    STATE,
    STORE,
    Archive,
    Manifest,
    alone,
    clear,
    damaged,
    newer,
    opened,
    require_size,
    unsafe,
)
from workbench.errors import BadInput, Conflict, Unavailable
from workbench.git import Repository, whole_bundles
from workbench.model import wall_clock
from workbench.present.inert import inert_line
from workbench.state import outside
from workbench.state.database_note import DatabaseNote
from workbench.state.restore_note import PLACE, RestoreNote, unfinished
from workbench.state.settings import Settings
from workbench.store.backups import hold_closed, new_aside, put
from workbench.store.copying import copy_to_postgres, hash_tables
from workbench.store.examination import read_only
from workbench.store.mark import mark_of, read_mark
from workbench.store.migrate import migrate, scripts
from workbench.store.sqlite_connection import connect
from workbench.system.atomic_file import sync
from workbench.system.tree_removal import remove_tree
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

    Everything is unpacked and verified beside its places, and whatever refuses it does so, before anything is changed.
    If it is killed while files are put in their places, the project is refused until it was done again: see
    `RestoreNote`. When it ends, all is on the disk.

    Args:
        ask: returns once the person agrees that a store that is there is replaced.

    Raises:
        BadInput, Refused, Conflict: see `archive.opened`. Conflict: ``ARCHIVE_OF_ANOTHER``, ``ARCHIVE_TOO_LARGE``,
            ``ARCHIVE_IN_WORK``, ``PLACE_NOT_EMPTY``, ``RESTORE_UNFINISHED``, ``STORE_IN_USE``, ``COPY_NOT_EMPTY``.
            Unavailable: ``RESTORE_FAILED``.
    """
    with _failures(), opened(path) as archive, alone(settings.project / PLACE):
        try:
            work = _prepare(settings, archive)
            if not work.is_new and (settings.database.exists() or DatabaseNote.of(settings.home)):
                ask(f"{path} takes the place of the store of {work.project.name}, and its files that of files there.")
            return _put_in_place(settings, archive, work)
        finally:
            if RestoreNote.of(settings.project) is None:
                remove_tree(settings.project / PLACE)


@dataclass
class _Work:
    """What is to be put in its place.

    Args:
        project: the root of the project, which may be within its repository.
        repository: the one that is there, whose references are to be completed; None if there is none to complete.
        is_new: whether the archive brings the repository, which is in `new` then.
    """

    project: Path
    place: Path
    repository: Repository | None
    is_new: bool

    @property
    def unpacked(self) -> Path:
        return self.place / "unpacked"

    @property
    def new(self) -> Path:
        return self.place / "new"


def _prepare(settings: Settings, archive: Archive) -> _Work:
    """Unpack an archive, and refuse it if it does not fit; goes on with one whose restoring was cut off."""
    top, manifest = settings.project, archive.manifest
    note = RestoreNote.of(top)
    if note and note.digest != manifest.digest:
        raise unfinished(top, note)
    repository = _repository(top)
    is_new = note.is_new if note else repository is None and bool(manifest.refs)
    work = _Work(top / manifest.within if is_new else top, top / PLACE, None if is_new else repository, is_new)
    if note is None:
        _require_place(settings, archive, repository)
    require_size(manifest, settings.max_archive_bytes)
    clear(work.place, *(("new", "note.json") if note else ()))
    _require_room(work.place, manifest)
    work.unpacked.mkdir()
    archive.unpack(work.unpacked)
    _require_store(archive, work.unpacked / STORE)
    if not manifest.refs or (is_new and note):
        return work
    if work.repository is not None:
        refs = whole_bundles.unbundle(work.repository, work.unpacked / REFS)
    else:
        refs = whole_bundles.begin(work.new, work.unpacked / REFS, manifest.head)
        _require_free_place(archive, work)
    if refs != whole_bundles.of_repository(manifest.refs):
        raise damaged(archive.path, "its references differ from the manifest")
    return work


def _require_free_place(archive: Archive, work: _Work) -> None:
    """Refuse a repository that has what is there, such as the archive, or the project's state, or links away."""
    place = work.new / archive.manifest.within
    if not place.resolve().is_relative_to(work.new.resolve()):
        raise unsafe(archive.path, archive.manifest.within)
    if place.is_dir() and (names := state_directory.tracked(place)):
        raise unsafe(archive.path, names[0])
    if taken := next(
        (entry.name for entry in work.new.iterdir() if os.path.lexists(work.place.parent / entry.name)), None
    ):
        raise _not_empty(work.place.parent, taken)


def _put_in_place(settings: Settings, archive: Archive, work: _Work) -> Restored:
    manifest, done = archive.manifest, Restored(archive.manifest, work.project)
    note = RestoreNote(str(archive.path), manifest.digest, work.is_new)
    _sync_tree(work.unpacked)
    if work.is_new:
        _sync_tree(work.new)
        _copy_to_database(work, settings)
        note.write(settings.project)
        _move_entries(work.new, settings.project)
    here = _at(work.project, settings)
    state_directory.create(here)
    now = wall_clock()
    with hold_closed(here.database):
        if not work.is_new:
            _copy_to_database(work, settings)
        note.write(settings.project)
        if work.repository is not None:
            aside = f"refs/workbench/restored/{manifest.made_at}"
            done.moved = whole_bundles.add_references(work.repository, manifest.refs, aside)
        if _put_files(work.unpacked / STATE, here, now):
            done.aside = new_aside(here.database, now)
        if here.database_url is None:
            done.aside = put(work.unpacked / STORE, here.database, now) or done.aside
        else:
            DatabaseNote(str(here.database_url), manifest.created).write(here.home)
    _sync_places(work, settings.project, here, done.aside)
    RestoreNote.file(settings.project).unlink()
    sync(work.place)
    return done


def _sync_tree(top: Path) -> None:
    """Wait until a directory is on the disk with all that is below it."""
    for directory, _, names in os.walk(top):
        for file in (Path(directory, name) for name in names):
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(Path(directory))


def _sync_places(work: _Work, top: Path, here: Settings, aside: Path | None) -> None:
    """Wait until the directories are on the disk, with the names in them, where something was put or put aside."""
    names = [Path(directory).relative_to(work.unpacked / STATE) for directory, *_ in os.walk(work.unpacked / STATE)]
    roots = [here.home, *([aside] if aside else ())]
    above = {parent for root in roots for parent in root.parents if parent.is_relative_to(top)}
    for place in {*(root / name for root in roots for name in names), *above}:
        if place.is_dir():
            sync(place)


def _copy_to_database(work: _Work, settings: Settings) -> None:
    """Copy the store to the empty database of the settings, if any.

    Raises:
        WorkbenchError: see `copy_to_postgres`.
    """
    if settings.database_url is None:
        return
    copy_to_postgres(work.unpacked / STORE, settings.database_url.conninfo)


def _move_entries(new: Path, top: Path) -> None:
    """Move a repository and its files to their place; goes on where that was cut off."""
    for entry in sorted(new.iterdir(), key=lambda path: path.name != ".git"):
        if os.path.lexists(top / entry.name):
            raise _not_empty(top, entry.name)
        entry.rename(top / entry.name)


def _at(project: Path, settings: Settings) -> Settings:
    """The settings of a project that may just have come, which names no other database than was asked for."""
    if project == settings.project:
        return settings
    project.mkdir(parents=True, exist_ok=True)  # git has no directory without files
    return Settings.load(project).model_copy(update={"database_url": settings.database_url})


def _put_files(unpacked: Path, settings: Settings, now: int) -> bool:
    """Put files below the state directory; whether others were put aside."""
    replaced = False
    for file in sorted(path for path in unpacked.rglob("*") if path.is_file()):
        name = file.relative_to(unpacked)
        target = settings.home / name
        if os.path.lexists(target):
            if target.is_file() and not target.is_symlink() and cmp(target, file, shallow=False):
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
        raise _not_empty(project, others[0])
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


def _not_empty(project: Path, name: str) -> Conflict:
    return Conflict(
        "PLACE_NOT_EMPTY",
        f"{project} has files ({inert_line(name)[:200]}), and the archive brings a repository. Restore it into an "
        "empty directory, or into a clone of that repository.",
    )


def _others(project: Path, archive: Path) -> list[str]:
    """What is in a directory besides the archive, and the place where that is unpacked."""
    return sorted(entry.name for entry in project.iterdir() if entry.name != PLACE and not _is(entry, archive))


def _is(entry: Path, other: Path) -> bool:
    return entry.exists() and entry.samefile(other)  # a link may lead nowhere


def _require_unlinked(archive: Archive, home: Path, name: str) -> None:
    above = (home / name.partition("/")[2]).parents if name.startswith(f"{STATE}/") else ()
    inner = (path for path in above if path.is_relative_to(home) and os.path.lexists(path))
    if wrong := next((path for path in inner if path.is_symlink() or not path.is_dir()), None):
        raise BadInput(
            "ARCHIVE_UNSAFE",
            f"{archive.path} has {inert_line(name)}, and {wrong} is a link or a file. Nothing was changed. Put a "
            "directory there, and restore then.",
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
