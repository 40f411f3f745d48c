"""Makes an archive of a project, which may be in use meanwhile."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from workbench.archives.archive import (
    FORMAT,
    KEPT,
    MOST_ROOTS,
    REFS,
    STATE,
    STORE,
    ArchiveWriter,
    Manifest,
    alone,
    clear,
    is_archivable,
    opened,
    require_size,
)
from workbench.errors import BadInput, Conflict
from workbench.git import Repository, whole_bundles
from workbench.git.run import run
from workbench.model import __version__, wall_clock
from workbench.rules.secrets.forms import masked_by_form
from workbench.state import outside
from workbench.state.settings import Settings
from workbench.store.backups import copy_file, failed
from workbench.store.copying import copy_as_file, hash_tables
from workbench.store.examination import read_only, require_whole
from workbench.store.mark import mark_of
from workbench.system.atomic_file import sync
from workbench.system.tree_removal import remove_tree

FINISHED = "archive"
GIT_SECONDS = 60.0

WRITTEN_BY_HAND = ("agents", "allowlist.txt", "mcp.json", "personas", "profiles", "settings.toml")
"""What a person writes, perhaps with a key in it."""


def back_up(settings: Settings, path: Path) -> Manifest:
    """Make an archive of a project, completely or not at all, and verify it. Blocks.

    The store is as it was at one moment. References and files are read after it, so what it names is in the archive,
    unless it was removed meanwhile.

    Raises:
        Conflict: ``ARCHIVE_EXISTS``, ``ARCHIVE_IN_WORK``, ``ARCHIVE_TOO_LARGE``, ``REPOSITORY_SHALLOW``.
        BadInput: the repository cannot be used. Unavailable: ``BACKUP_FAILED``; the store cannot be read.
    """
    place = path.with_name(f".{path.name}.unfinished")
    try:
        with alone(place):
            try:
                clear(place)
                if os.path.lexists(path):
                    raise Conflict(
                        "ARCHIVE_EXISTS", f"{path} exists already. Choose another name; nothing was changed."
                    )
                manifest = _make(settings, place)
                with opened(place / FINISHED) as archive:
                    archive.verify()
                sync(place / FINISHED)
                (place / FINISHED).rename(path)
                sync(path.parent)
            finally:
                remove_tree(place)
    except (OSError, sqlite3.Error) as error:
        raise failed(path, error) from error
    return manifest


def _make(settings: Settings, place: Path) -> Manifest:
    store, bundle = place / STORE, place / REFS
    _copy_store(settings, store)
    repository = _repository(settings)
    descriptor = os.open(place / FINISHED, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file, ArchiveWriter(file) as writer:
        writer.add(STORE, store)
        refs = whole_bundles.write(repository, bundle) if repository else {}
        if repository:
            writer.add(REFS, bundle)
        left_out = []
        for name, path in _files(settings.home):
            if not is_archivable(f"{STATE}/{name}"):
                left_out.append(name.encode("utf-8", "backslashreplace").decode())
            elif name.partition("/")[0] in WRITTEN_BY_HAND and holds_secret(path):
                left_out.append(name)
            else:
                writer.add(f"{STATE}/{name}", path)
        manifest = Manifest(
            format=FORMAT,
            workbench=__version__,
            made_at=wall_clock(),
            project=settings.project.name,
            within=settings.project.relative_to(repository.root.resolve()).as_posix() if repository else ".",
            origin=outside.of(settings.home).name,
            created=read_only(store, mark_of).created,
            tables=hash_tables(store),
            files=writer.files,
            refs=refs,
            head=_head(repository) if repository else "",
            roots=repository.roots()[:MOST_ROOTS] if repository else [],
            left_out=left_out,
        )
        require_size(manifest, settings.max_archive_bytes)
        writer.finish(manifest)
    return manifest


def _copy_store(settings: Settings, path: Path) -> None:
    if settings.database_url is not None:
        copy_as_file(settings.database_url.conninfo, path)
    else:
        require_whole(settings.database)
        copy_file(settings.database, path)


def _repository(settings: Settings) -> Repository | None:
    """The project's repository, if it has one with a commit.

    Raises:
        BadInput: it cannot be used, so its commits would not be in the archive.
    """
    try:
        return Repository.open(settings.project)
    except BadInput:
        if run(["for-each-ref", "--count=1"], settings.project, {}, GIT_SECONDS).out:
            raise
        return None


def _head(repository: Repository) -> str:
    branch = repository.current_branch()
    return f"refs/heads/{branch}" if branch else repository.commit("HEAD")


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    """The names of the files that are kept, and where each is. A person may link the entries; no other link counts."""
    for name in KEPT:
        if (top := home / name).is_file():
            yield name, top.resolve()
        for directory, directories, files in os.walk(top):
            directories.sort()
            paths = (Path(directory, file) for file in sorted(files))
            yield from ((path.relative_to(home).as_posix(), path) for path in paths if not path.is_symlink())


def holds_secret(path: Path) -> bool:
    """Whether a person's file has what looks like a secret."""
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text("utf-8")
        return masked_by_form(text) != text
    return False
