"""The file: what it has, how it is written and verified, and what is refused of it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused
from workbench.git.names import is_object_id
from workbench.model import Wire
from workbench.present.inert import inert_line
from workbench.system import file_lock
from workbench.system.tree_removal import remove_tree

FORMAT = 1
"""Its version, which grows when an older Workbench could not restore it."""
MANIFEST = "manifest.json"
STORE = "store.db"
REFS = "refs.bundle"
LOCK = "lock"
"""The lock of a directory in which an archive is made or unpacked."""
STATE = "state"
"""The folder with the files of the state directory."""
KEPT = (
    *("agents", "personas", "profiles", "mcp.json", "settings.toml", "allowlist.txt"),
    *("logs", "runs", "executions", "agent_sessions", "artifacts", "trash"),
)
"""The entries of the state directory that are kept. All others hold secrets, or belong to processes and this place."""
LARGEST_MANIFEST = 64 << 20
"""Enough for 300,000 files."""
_CHUNK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, NotImplementedError, RuntimeError, ValueError),
    *(OverflowError, struct.error),
)
"""What reading a ZIP file, or JSON, of any bytes raises."""
_QUICK = 1
"""The level of compression: of a store, the best takes five times as long and saves a tenth."""


MOST_ROOTS = 100


class ArchivedFile(Wire):
    """A file in the archive."""

    bytes: int = Field(ge=0)
    sha256: str
    mode: int


class Manifest(Wire):
    """What an archive has.

    Args:
        workbench: the version that made it.
        within: where the project is in its repository; "." if at the top.
        origin: tells the state directory from others.
        created: when the store was created, microseconds UTC.
        tables: the count and the hash of each table's rows; see `store.copying.RowHash`.
        refs: the repository's references, and what each names.
        head: the branch that is checked out, by full name, or the commit; empty without a repository.
        roots: the repository's first commits, or some of them.
        left_out: files that may hold secrets, or whose names an archive cannot have.
    """

    format: int
    workbench: str
    made_at: int
    project: str
    within: str
    origin: str
    created: int
    tables: dict[str, tuple[int, str]]
    files: dict[str, ArchivedFile]
    refs: dict[str, str]
    head: str
    roots: list[str] = Field(max_length=MOST_ROOTS)
    left_out: list[str]

    @property
    def bytes(self) -> int:
        """What its files take when they are unpacked."""
        return sum(file.bytes for file in self.files.values())

    @property
    def digest(self) -> str:
        """Tells it from others."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class ArchiveWriter:
    """Writes an archive: its files first, the manifest last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._zip.close()

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK)
        self.files: dict[str, ArchivedFile] = {}

    def add(self, name: str, source: Path) -> None:
        """Add a regular file as far as it is now: a log may grow meanwhile. One that has gone is left out."""
        try:
            opened = os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        except FileNotFoundError:
            return
        with opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                return
            with self._zip.open(name, "w", force_zip64=True) as member:
                count, digest = _copy(opened, member, status.st_size)
        self.files[name] = ArchivedFile(bytes=count, sha256=digest, mode=status.st_mode & 0o755)

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest.

        Raises:
            Conflict: ``ARCHIVE_TOO_LARGE``.
        """
        text = manifest.model_dump_json()
        if len(text.encode()) > LARGEST_MANIFEST:
            raise too_large(f"{len(manifest.files):,} files are more than an archive can have.")
        self._zip.writestr(MANIFEST, text)


class Archive:
    """An archive that is open, and was found to be one of this user that this Workbench can restore."""

    def __init__(self, path: Path, members: zipfile.ZipFile, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._zip = members

    def verify(self) -> None:
        """Compare every file with the manifest.

        Raises:
            BadInput: ``ARCHIVE_DAMAGED``.
        """
        for name in self.manifest.files:
            with Path(os.devnull).open("wb") as nowhere:
                self._unpack(name, nowhere)

    def unpack(self, place: Path) -> None:
        """Write all its files into a directory.

        Raises:
            BadInput: ``ARCHIVE_DAMAGED``. OSError: they cannot be written.
        """
        for name, file in self.manifest.files.items():
            target = place / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file.mode & 0o700 | 0o600)
            with os.fdopen(descriptor, "wb") as output:
                self._unpack(name, output)

    def _unpack(self, name: str, output: BinaryIO) -> None:
        file = self.manifest.files[name]
        try:
            with self._zip.open(name) as member:
                found = _copy(member, output, file.bytes + 1)
        except _UNREADABLE as error:
            raise damaged(self.path, f"{name}: {error}") from error
        if found != (file.bytes, file.sha256):
            raise damaged(self.path, f"{name} is not what the manifest says")


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive.

    Raises:
        BadInput: ``ARCHIVE_DAMAGED``, ``ARCHIVE_UNSAFE``: a path in it leads elsewhere, or it has a link.
        Refused: ``ARCHIVE_NOT_YOURS``. Conflict: ``ARCHIVE_NEWER``. OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise Refused(
                "ARCHIVE_NOT_YOURS",
                f"{path} belongs to another user, and an archive has definitions and settings that run programs. If "
                "you trust it, make a copy of your own (`cp`), and restore that.",
            )
        try:
            members = zipfile.ZipFile(file)
        except _UNREADABLE as error:
            raise damaged(path, str(error)) from error
        with members:
            manifest = _manifest(path, members)
            _require_safe(path, members, manifest)
            yield Archive(path, members, manifest)


def is_archive(path: Path) -> bool:
    """Whether a file is to be taken for an archive: it is no database of SQLite."""
    if not path.is_file():
        raise damaged(path, "it is no file")
    with path.open("rb") as file:
        return not file.read(16).startswith(b"SQLite format 3")


def damaged(path: Path, reason: str) -> BadInput:
    """The error for a file that is no archive, or no longer whole."""
    return BadInput(
        "ARCHIVE_DAMAGED",
        f"{path} is no archive of `workbench backup`, or is damaged: {inert_line(reason)}. Nothing was changed. Use "
        "another copy of it, or another backup.",
    )


def _manifest(path: Path, members: zipfile.ZipFile) -> Manifest:
    try:
        with members.open(MANIFEST) as member:
            raw = json.loads(member.read(LARGEST_MANIFEST))
        if isinstance(raw, dict) and isinstance(raw.get("format"), int) and raw["format"] > FORMAT:
            raise newer(path, str(raw.get("workbench")))
        return Manifest.model_validate(raw)
    except _UNREADABLE as error:
        raise damaged(path, f"its manifest cannot be read ({type(error).__name__})") from error


def newer(path: Path, version: str) -> Conflict:
    """The error for an archive of a Workbench that is newer than this one."""
    return Conflict(
        "ARCHIVE_NEWER",
        f"{path} was made by a newer Workbench ({inert_line(version)[:40]}). Nothing was changed. Upgrade Workbench, "
        "and restore it then.",
    )


def too_large(reason: str) -> Conflict:
    """The error for an archive that would be larger, or take more space, than one may."""
    return Conflict("ARCHIVE_TOO_LARGE", f"{reason} Nothing was changed.")


def require_size(manifest: Manifest, most: int) -> None:
    """Refuse an archive that takes more bytes than `most` when it is unpacked.

    Raises:
        Conflict: ``ARCHIVE_TOO_LARGE``.
    """
    if manifest.bytes > most:
        raise too_large(f"Its files take {manifest.bytes:,} bytes, and max_archive_bytes is {most:,}: raise it.")


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Make a directory, unless it is there, and hold it: no other process works in it meanwhile.

    Raises:
        Conflict: ``ARCHIVE_IN_WORK``. Unavailable: ``PROJECT_UNWRITABLE``. OSError: it cannot be made.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink():
        raise OSError(f"{directory} is a link")
    with file_lock.held(directory / LOCK) as is_held:
        if not is_held:
            raise Conflict("ARCHIVE_IN_WORK", f"Another process works in {directory}. Wait until it has ended.")
        yield


def clear(directory: Path, *kept: str) -> None:
    """Remove what an earlier work left that was cut off."""
    for entry in directory.iterdir():
        if entry.name not in (LOCK, *kept):
            remove_tree(entry)


def unsafe(path: Path, name: str) -> BadInput:
    """The error for an archive with a name that leads elsewhere."""
    return BadInput(
        "ARCHIVE_UNSAFE",
        f"{path} has {inert_line(name)[:200]!r}, which leads out of the project or is no file that an archive has. "
        "Nothing was changed. Do not use it.",
    )


def _require_safe(path: Path, members: zipfile.ZipFile, manifest: Manifest) -> None:
    """Refuse names that leave the place where the archive is unpacked, and what is no regular file."""
    listed = members.infolist()
    wrong = [info.filename for info in listed if not _is_regular(info)]
    above = {str(parent) for name in manifest.files for parent in PurePosixPath(name).parents}
    wrong += [name for name in manifest.files if not _is_within(name) or name in above]
    if not _is_relative(manifest.within) or ".git" in PurePosixPath(manifest.within.lower()).parts:
        wrong.append(manifest.within)
    if wrong:
        raise unsafe(path, wrong[0])
    if manifest.refs and manifest.head not in manifest.refs and not is_object_id(manifest.head):
        raise damaged(path, "its manifest does not say what is checked out")
    if len(listed) != len(manifest.files) + 1 or {info.filename for info in listed} != {MANIFEST, *manifest.files}:
        raise damaged(path, "it has other files than its manifest says")


def _is_regular(info: zipfile.ZipInfo) -> bool:
    mode = info.external_attr >> 16
    return not info.is_dir() and stat.S_IFMT(mode) in (0, stat.S_IFREG) and info.compress_type in _METHODS


def is_archivable(name: str) -> bool:
    """Whether an archive can have a file of this name: it is UTF-8, as names in a ZIP file are, and no other path."""
    with suppress(UnicodeEncodeError):
        return bool(name.encode()) and _is_within(name)
    return False


def _is_within(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return name in (STORE, REFS) or (
        _is_relative(name)
        and len(parts) > 1
        and parts[0] == STATE
        and parts[1] in KEPT
        and str(PurePosixPath(name)) == name
    )


def _is_relative(name: str) -> bool:
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or set(name) & {"\0", "\\"} or not name)


def _copy(source: IO[bytes], target: IO[bytes], most: int) -> tuple[int, str]:
    """Copy at most so many bytes; their number, and their hash."""
    digest, count = hashlib.sha256(), 0
    while chunk := source.read(min(_CHUNK, most - count)):
        target.write(chunk)
        digest.update(chunk)
        count += len(chunk)
    return count, digest.hexdigest()
