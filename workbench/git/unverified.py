"""Looks into a worktree's own repository without running git. Workers can write to it: nothing in it is trusted.

They may have replaced its files by anything, and git opens whatever is there: a FIFO blocks it until its time limit, a
link or `commondir` leads it elsewhere. Git itself creates only regular files and directories, and the socket of a file
system monitor.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.errors import Unavailable
from workbench.git.names import is_name, is_object_id

_LONGEST = 4_096
_LARGEST_INDEX = 256 << 20
MOST = 500_000
"""How many entries are examined."""
_SOCKETS = frozenset({"fsmonitor--daemon.ipc"})


def require_sound(git_dir: Path) -> None:
    """Refuse a repository with anything but regular files and directories, or that refers to another one.

    Nothing is opened and no link is followed.

    Raises:
        Unavailable: ``REPOSITORY_DAMAGED``.
    """
    if problem := next(_find_problems(git_dir), None):
        name = git_dir.name
        raise Unavailable(
            "REPOSITORY_DAMAGED",
            f"The repository of the worktree {name} is damaged: {problem}. Its branch has what was imported before. "
            f"`workbench worktrees discard {name} --force` moves its files to the trash as they are.",
            path=str(git_dir),
        )


def _find_problems(git_dir: Path) -> Iterator[str]:
    if git_dir.is_symlink():
        yield "it is a link"
    if os.path.lexists(git_dir / "commondir"):
        yield "commondir refers to another repository"
    waiting, count = [str(git_dir)], 0
    while waiting and count < MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and entry.name not in _SOCKETS:
                        kind = "a link" if entry.is_symlink() else "no regular file"
                        yield f"{os.path.relpath(entry.path, git_dir).encode(errors='replace').decode()} is {kind}"
        except FileNotFoundError:  # git has removed it meanwhile
            continue
        except OSError as error:
            yield f"it cannot be read ({error.strerror})"


def branch(git_dir: Path, name: str) -> str | None:
    """The commit in a branch's loose reference file; None if there is none or it is invalid."""
    if not is_name(name):
        return None
    commit = _read_line(git_dir, ["refs", "heads", *name.split("/")])
    return commit if commit and is_object_id(commit) and commit == commit.lower() else None


def head(git_dir: Path) -> str | None:
    """The branch that HEAD refers to; None if it refers to none or is invalid."""
    line = _read_line(git_dir, ["HEAD"]) or ""
    name = line.removeprefix("ref: refs/heads/")
    return name if name != line else None


def _read_line(directory: Path, names: Sequence[str]) -> str | None:
    with suppress(OSError, ValueError), opened(directory, names) as file:
        if stat.S_ISREG(os.fstat(file).st_mode):
            return os.fsdecode(os.read(file, _LONGEST)).removesuffix("\n")
    return None


def copy_index(git_dir: Path, name: str) -> bool:
    """Copy the index to a new file beside it; False if there is no file that can be copied.

    The copy has the time of the index: by that, git knows of which files it may not have seen the last change.
    """
    with suppress(OSError), opened(git_dir, ["index"]) as file:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > _LARGEST_INDEX:
            return False
        place = os.open(git_dir, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
        try:
            new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
        finally:
            os.close(place)
        with os.fdopen(new, "wb") as copy, os.fdopen(os.dup(file), "rb") as index:
            shutil.copyfileobj(index, copy)
            copy.flush()
            os.utime(copy.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
        return True
    return False


@contextmanager
def opened(directory: Path, names: Sequence[str]) -> Iterator[int]:
    """Open a file below a directory without following links or blocking."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    place = os.open(directory, flags | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            child = os.open(name, flags | os.O_DIRECTORY, dir_fd=place)
            os.close(place)
            place = child
        file = os.open(names[-1], flags, dir_fd=place)
    finally:
        os.close(place)
    try:
        yield file
    finally:
        os.close(file)
