"""Finds the root of a project. Runs no program, because the repository may come from a stranger."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from workbench.errors import BadInput, Unavailable

PROJECT_VARIABLE = "WORKBENCH_PROJECT"
STATE = ".aiswarm"
"""The name of the state directory."""


def find_project(start: Path | None = None) -> Path:
    """The root of the project that a directory is in, by default the current one.

    It is `WORKBENCH_PROJECT` if set. Otherwise it is the nearest directory with an `.aiswarm/` of this user, but none
    above the repository that `start` is in; else the top level of that repository; else `start` itself. What lies
    inside an `.aiswarm/` of this user, such as a worktree, belongs to the project of that `.aiswarm/`.

    Raises:
        BadInput: ``NOT_A_DIRECTORY``: the current directory was removed.
    """
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).resolve()
    here = (start or _current()).resolve()
    if (around := _around_state(here)) is not None:
        return around
    repository = enclosing_repository(here)
    above = _up_to(repository, (here, *here.parents))
    return next((path for path in above if _is_own_directory(path / STATE)), repository or here)


def identity(state: Path) -> str | None:
    """Which directory a state directory is, whatever its path: a renamed one stays the same, a copy is another one.

    None: it does not exist, or cannot be seen.
    """
    try:
        found = state.stat()
    except OSError:
        return None
    return f"{found.st_dev:x}.{found.st_ino:x}"


class OpenedState:
    """A state directory that this process uses, and which directory it was when this object was made."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.identity = identity(home)

    def has_moved(self) -> bool:
        """Whether what is at its path is not what was opened, such as a copy that took its place."""
        return self.identity is not None and identity(self._home) != self.identity

    def require_unmoved(self) -> None:
        """Refuse to act on what has taken its place.

        Raises:
            Unavailable: ``PROJECT_MOVED``.
        """
        if self.has_moved():
            raise Unavailable(
                "PROJECT_MOVED",
                f"The state of {self._home.parent} was moved, removed or replaced while process {os.getpid()} used it. "
                "Stop that process, then start Workbench where the project is now.",
            )


def enclosing_repository(here: Path) -> Path | None:
    """The nearest directory, from `here` upwards, that holds a `.git`; None if there is none.

    A `.git` that belongs neither to this user nor to the owner of `here` does not count.
    """
    owners = {os.geteuid(), _owner(here)}
    return next((path for path in (here, *here.parents) if _owner(path / ".git") in owners), None)


def _current() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise BadInput(
            "NOT_A_DIRECTORY", "The current directory no longer exists. Change to another one, or give --project."
        ) from None


def _around_state(here: Path) -> Path | None:
    """The project whose state directory `here` is in. The outermost one: workers can create others below it."""
    inside = [path for path in (here, *here.parents) if path.name == STATE and _is_own_directory(path)]
    return inside[-1].parent if inside else None


def _up_to(last: Path | None, paths: Sequence[Path]) -> Iterable[Path]:
    return paths if last is None else paths[: paths.index(last) + 1]


def _is_own_directory(path: Path) -> bool:
    # os.path.isdir does not raise where a directory above may not be entered.
    return os.path.isdir(path) and _owner(path) == os.geteuid()  # noqa: PTH112


def _owner(path: Path) -> int | None:
    """The user that owns an entry, which may be a link; None if there is none, or it cannot be seen."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None
