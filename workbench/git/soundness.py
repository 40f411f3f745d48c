"""Whether git can run on a worktree's own repository at all: a worker may have put anything in place of its files.

Git opens what it finds: a FIFO holds it up until its time limit, and a link or `commondir` leads it elsewhere. Git
itself makes regular files and directories only, besides the socket of a file system monitor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import Unavailable

MOST = 500_000
"""So many entries are looked at."""
_SOCKETS = frozenset({"fsmonitor--daemon.ipc"})


def require(git_dir: Path) -> None:
    """Refuse a repository with anything but regular files and directories, or that refers to another one.

    Nothing is opened and no link is followed.

    Raises:
        Unavailable: ``REPOSITORY_DAMAGED``.
    """
    if problem := next(_problems(git_dir), None):
        name = git_dir.name
        raise Unavailable(
            "REPOSITORY_DAMAGED",
            f"The repository of the worktree {name} is damaged: {problem}. Its branch has what was imported before. "
            f"`workbench worktrees discard {name} --force` moves its files to the trash as they are.",
            path=str(git_dir),
        )


def _problems(git_dir: Path) -> Iterator[str]:
    if git_dir.is_symlink():
        yield "it is a link"
    if os.path.lexists(git_dir / "commondir"):
        yield "commondir refers to another repository"
    waiting, seen = [str(git_dir)], 0
    while waiting and seen < MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and entry.name not in _SOCKETS:
                        kind = "a link" if entry.is_symlink() else "no regular file"
                        yield f"{os.path.relpath(entry.path, git_dir).encode(errors='replace').decode()} is {kind}"
        except FileNotFoundError:  # git has removed it meanwhile
            continue
        except OSError as error:
            yield f"it cannot be read ({error.strerror})"
