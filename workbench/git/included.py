"""Copies ignored files of the person's checkout into a new worktree: the files that a workplace includes.

The copies are the worktree's own: a hard link would let a worker change the person's file. No link is followed, neither
in the checkout nor in the worktree, whose branch may have one in the way.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workbench.errors import BadInput, Conflict, Unavailable
from workbench.git.plumbing import Plumbing
from workbench.git.run import displayed

_CLONE = 0x40049409
"""FICLONE: the copy shares its blocks with the original until one of them changes."""
_OWN = (".git", ".aiswarm")
_LISTED = ("ls-files", "--others", "--ignored", "-z")


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """A file or link to copy, by its path below the checkout; `bytes` is 0 for a link."""

    path: str
    bytes: int


def find(repository: Plumbing, patterns: Sequence[str], most_bytes: int) -> list[IncludedFile]:
    """The ignored files of a checkout that patterns as in ``.gitignore`` select. Blocks.

    Raises:
        BadInput: ``INCLUDE_REFUSED``: one is a device or the like, a repository of its own, or a link that leads out of
            the project.
        BadInput: ``INCLUDE_TOO_LARGE``.
    """
    if not patterns:
        return []
    for pattern in patterns:
        _check_named(repository.root, pattern)
    ignored = set(repository.read(*_LISTED, "--exclude-standard").fields)
    chosen = repository.read(*_LISTED, *(f"--exclude={pattern}" for pattern in patterns)).fields
    files = [file for path in chosen if path in ignored for file in _check(repository.root, os.fsdecode(path))]
    total = sum(file.bytes for file in files)
    if total > most_bytes:
        largest = max(files, key=lambda file: file.bytes)
        raise BadInput(
            "INCLUDE_TOO_LARGE",
            f"include selects {len(files):,} files of {total:,} bytes, more than max_include_bytes ({most_bytes:,}) "
            f"allows; the largest is {displayed(os.fsencode(largest.path))}. Name large data in read instead, which "
            "copies nothing, or raise the setting.",
            bytes=total,
        )
    return files


def _check_named(root: Path, pattern: str) -> None:
    """Refuse a pattern that names what git does not list, and so would be left out without a word."""
    path = pattern.strip("/")
    parts = PurePosixPath(path).parts
    if pattern.startswith("/") and len(parts) > 1 and os.path.lexists(pattern) and not (root / parts[0]).exists():
        raise _refused(pattern, "is outside of the project. Name it in read")
    for parent in reversed(PurePosixPath(path).parents):
        if (root / parent).is_symlink():
            raise _refused(path, f"is behind the link {parent}, which is not followed. Name what it leads to in read")
    list(_check(root, path, is_listed=False))


def _check(root: Path, path: str, is_listed: bool = True) -> Iterator[IncludedFile]:
    """The file or link at a path that git lists, or that a pattern names; any other kind of file is refused."""
    parts = PurePosixPath(path).parts
    if any(part in _OWN for part in parts):
        return
    try:
        facts = os.lstat(root / path)
    except (OSError, ValueError):  # gone meanwhile, or a pattern
        return
    if stat.S_ISLNK(facts.st_mode):
        target = Path(os.path.normpath(Path(path).parent / (root / path).readlink()))
        if target.is_absolute() or ".." in target.parts:
            raise _refused(path, "is a link that leads out of the project. Name what it leads to in read")
        yield IncludedFile(path, 0)
    elif stat.S_ISREG(facts.st_mode):
        yield IncludedFile(path, facts.st_size)
    elif is_listed or not stat.S_ISDIR(facts.st_mode):
        what = "a repository of its own" if stat.S_ISDIR(facts.st_mode) else "no file: a device, socket or pipe"
        raise _refused(path, f"is {what}. Leave it out of include")


def _refused(path: str, why: str) -> BadInput:
    return BadInput("INCLUDE_REFUSED", f"{displayed(os.fsencode(path))} {why}.", path=path)


def copy(source: Path, target: Path, files: Sequence[IncludedFile]) -> list[str]:
    """Copy files of a checkout into a worktree; the paths of those that were copied. What is there stays. Blocks.

    Raises:
        Conflict: ``INCLUDE_IN_THE_WAY``: the worktree has a file or link where a directory is wanted.
        Unavailable: ``INCLUDE_FAILED``: such as a full disk.
    """
    copied: list[str] = []
    for file in files:
        try:
            if _copy(source, target, PurePosixPath(file.path)):
                copied.append(file.path)
        except (NotADirectoryError, FileExistsError):
            raise Conflict(
                "INCLUDE_IN_THE_WAY",
                f"{displayed(os.fsencode(file.path))} cannot be brought into the worktree: its branch has a file or "
                "link where a directory is wanted. Remove that from the branch, or the pattern from include.",
                path=file.path,
            ) from None
        except OSError as error:
            raise Unavailable(
                "INCLUDE_FAILED", f"{displayed(os.fsencode(file.path))} cannot be copied: {error.strerror}."
            ) from error
    return copied


def _copy(source: Path, target: Path, path: PurePosixPath) -> bool:
    """Copy a file or link whose parents are real directories, on both sides; False if something is there."""
    with ExitStack() as stack:
        here = _walk(stack, source, path.parts[:-1], make=False)
        there = _walk(stack, target, path.parts[:-1], make=True)
        facts = os.stat(path.name, dir_fd=here, follow_symlinks=False)
        with suppress(FileNotFoundError):
            os.stat(path.name, dir_fd=there, follow_symlinks=False)
            return False
        if stat.S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(path.name, dir_fd=here), path.name, dir_fd=there)
            return True
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        reader = stack.enter_context(os.fdopen(os.open(path.name, flags, dir_fd=here), "rb"))
        if not stat.S_ISREG(os.fstat(reader.fileno()).st_mode):
            return False
        flags, mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IMODE(facts.st_mode) & 0o777
        writer = stack.enter_context(os.fdopen(os.open(path.name, flags, mode | 0o200, dir_fd=there), "wb"))
        try:
            fcntl.ioctl(writer.fileno(), _CLONE, reader.fileno())
        except OSError:  # another file system, or one that cannot share blocks
            shutil.copyfileobj(reader, writer, 1 << 20)
        os.utime(writer.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
        return True


def _walk(stack: ExitStack, root: Path, names: Sequence[str], *, make: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    place = os.open(root, flags)
    stack.callback(os.close, place)
    for name in names:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=place)
        place = os.open(name, flags | os.O_NOFOLLOW, dir_fd=place)
        stack.callback(os.close, place)
    return place
