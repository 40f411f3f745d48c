"""The files of a project as one archive, from which a machine that does not see the project makes a copy.

The archive has what git tracks, as it is now, and new files that git does not ignore: ignored ones, which may be
secret, stay here. Without a repository it has everything but the state of Workbench. Equal files make equal archives,
so a worker that has an archive with a hash need not be sent it again.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import BadInput, Unavailable, why_unreadable
from workbench.git.run import run
from workbench.state.root import STATE

GIT_SECONDS = 60.0
_LEFT_OUT = (".git", STATE, "__pycache__", ".ipynb_checkpoints")
_TIME = 315_532_800
"""Of all files, 1980: a ZIP file has no earlier ones, and equal files are to make equal archives."""


@dataclass(frozen=True)
class Archive:
    """The archive of a project's files."""

    path: Path
    sha256: str
    bytes: int


def pack(project: Path, limit: int, path: Path) -> Archive:
    """Write the archive of a project's files.

    Args:
        limit: bytes of the files, together.

    Raises:
        BadInput: ``SWEEP_FILES_TOO_LARGE``.
        Unavailable: ``PROJECT_UNWRITABLE``, ``SWEEP_FILES_UNREADABLE``, and what git raises.
    """
    names = _names(project)
    total = sum((project / name).lstat().st_size for name in names if (project / name).is_file())
    if total > limit:
        raise BadInput(
            "SWEEP_FILES_TOO_LARGE",
            f"The project's files have {total:,} bytes, and a sweep sends at most {limit:,} (max_sweep_files_bytes). "
            "Let git ignore large files that the notebook does not read, or raise the setting.",
            bytes=total,
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", 1, file, 0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in names:
                _add(archive, project, name)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error
    with path.open("rb") as written:
        return Archive(path, hashlib.file_digest(written, "sha256").hexdigest(), written.seek(0, os.SEEK_END))


def unpack(archive: Path, directory: Path) -> None:
    """Make the copy of a project's files in an empty directory.

    Links come last, so that nothing is written through one, and nothing outside of the directory.

    Raises:
        OSError, tarfile.TarError.
    """
    with tarfile.open(archive) as files:
        members = files.getmembers()
        for member in members:
            place = directory / member.name
            if ".." in place.parts or Path(member.name).is_absolute():
                raise tarfile.TarError(f"{member.name!r} leads out of the project")
            place.parent.mkdir(parents=True, exist_ok=True)
            if (source := files.extractfile(member) if member.isreg() else None) is not None:
                with source, place.open("xb") as file:
                    shutil.copyfileobj(source, file)
                place.chmod(member.mode)
        for member in members:
            if member.issym():
                (directory / member.name).symlink_to(member.linkname)


def _names(project: Path) -> list[str]:
    """The paths of the files, relative to the project."""
    tracked = run(["ls-files", "-z"], project, {}, GIT_SECONDS)
    if tracked.code and "not a git repository" in tracked.err:
        return _all_names(project)
    new = run(["ls-files", "-z", "--others", "--exclude-standard"], project, {}, GIT_SECONDS).expect((0,)).fields
    names = {name for name in map(os.fsdecode, new) if STATE not in Path(name).parts}
    return sorted(names | {*map(os.fsdecode, tracked.expect((0,)).fields)})


def _all_names(project: Path) -> list[str]:
    names = []
    for place, below, files in os.walk(project):
        below[:] = [name for name in below if name not in _LEFT_OUT]
        names += [str((Path(place) / name).relative_to(project)) for name in files]
    return sorted(names)


def _add(archive: tarfile.TarFile, project: Path, name: str) -> None:
    """Add a file, or a link that stays in the project. What is neither, such as a submodule, is left out.

    Raises:
        Unavailable: ``SWEEP_FILES_UNREADABLE``.
    """
    path, member = project / name, tarfile.TarInfo(name)
    member.mtime = _TIME
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
            if not Path(member.linkname).is_absolute() and path.resolve().is_relative_to(project):
                archive.addfile(member)
        elif stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                member.size, member.mode = os.fstat(file.fileno()).st_size, 0o755 if status.st_mode & 0o100 else 0o644
                archive.addfile(member, file)
    except FileNotFoundError:  # removed without telling git
        return
    except OSError as error:
        raise Unavailable(
            "SWEEP_FILES_UNREADABLE",
            f"{path} cannot be read: {why_unreadable(error)}. Correct that, or let git ignore it, and begin again.",
        ) from None
