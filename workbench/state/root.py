"""Finds the root of a project. Runs no program, because the repository may come from a stranger."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

from workbench.errors import BadInput, Refused, Unavailable
from workbench.state import outside
from workbench.system.users import owner, user_name

PROJECT_VARIABLE = "WORKBENCH_PROJECT"
STATE = ".aiswarm"
"""The name of the state directory."""


def find_project(start: Path | None = None) -> Path:
    """The root of the project that a directory is in, by default the current one.

    It is `WORKBENCH_PROJECT` if set. Otherwise it is the nearest directory with an `.aiswarm/` of this user, but none
    above the repository that `start` is in; else the top level of that repository; else `start` itself. A directory
    inside an `.aiswarm/` of this user, such as a worktree, belongs to the project of that `.aiswarm/`, and so does a
    worktree that lies outside of it.

    Raises:
        BadInput: ``NOT_A_DIRECTORY``: the current directory was removed.
    """
    if variable := os.environ.get(PROJECT_VARIABLE):
        return Path(variable).resolve()
    directory = (start or _current_directory()).resolve()
    if (project := _project_around(directory)) is not None:
        return project
    repository = enclosing_repository(directory)
    above = _cut_after(repository, (directory, *directory.parents))
    return next((path for path in above if _is_own_directory(path / STATE)), repository or directory)


def identity(state: Path) -> str | None:
    """Identifies a state directory independently of its path: a renamed one keeps its identity, a copy has another.

    None: it does not exist, or cannot be seen.
    """
    try:
        status = state.stat()
    except OSError:
        return None
    return f"{status.st_dev:x}.{status.st_ino:x}"


def require_own(project: Path) -> None:
    """Refuse a state directory of another user, or a link in its place, before anything in it is read.

    Raises:
        Refused: ``STATE_NOT_YOURS``.
    """
    state = project / STATE
    if os.path.islink(state):  # noqa: PTH114 (raises where a directory above may not be entered)
        raise Refused(
            "STATE_NOT_YOURS",
            f"{state} is a link, so nothing in it is used. Remove it, or choose another project with --project.",
        )
    if (user := owner(state)) not in (None, os.geteuid()):
        raise Refused(
            "STATE_NOT_YOURS",
            f"{state} belongs to another user ({user_name(user)}), so nothing in it is used. A project has one user; "
            f"work in a clone of your own (`git clone {project}`), or choose another project with --project.",
        )


class OpenedState:
    """A state directory that this process uses, with its identity when this object was created."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.identity = identity(home)

    def has_moved(self) -> bool:
        """Whether the opened directory is no longer at its path, such as when a copy took its place."""
        return self.identity is not None and identity(self._home) != self.identity

    def require_unmoved(self) -> None:
        """Refuse to act on a directory that has taken its place.

        Raises:
            Unavailable: ``PROJECT_MOVED``.
        """
        if self.has_moved():
            raise Unavailable(
                "PROJECT_MOVED",
                f"The state of {self._home.parent} was moved, removed or replaced while process {os.getpid()} used it. "
                "Nothing is changed any more. Stop it (`%workbench stop` in its notebook, Ctrl-C in its terminal), and "
                "then start Workbench where the project is now.",
            )


def enclosing_repository(here: Path) -> Path | None:
    """The nearest directory, from `here` upwards, that holds a `.git`; None if there is none.

    A `.git` that belongs neither to this user nor to the owner of `here` does not count.
    """
    owners = {os.geteuid(), owner(here)}
    return next((path for path in (here, *here.parents) if owner(path / ".git") in owners), None)


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise BadInput(
            "NOT_A_DIRECTORY", "The current directory no longer exists. Change to another one, or give --project."
        ) from None


def _project_around(here: Path) -> Path | None:
    """The project whose state directory `here` is in; of several, the outermost: workers can create inner ones."""
    state_directories = [path for path in (here, *here.parents) if path.name == STATE and _is_own_directory(path)]
    return state_directories[-1].parent if state_directories else outside.project_around(here)


def _cut_after(last: Path | None, paths: Sequence[Path]) -> Iterable[Path]:
    return paths if last is None else paths[: paths.index(last) + 1]


def _is_own_directory(path: Path) -> bool:
    # os.path.isdir does not raise where a directory above may not be entered.
    return os.path.isdir(path) and owner(path) == os.geteuid()  # noqa: PTH112


def state_around(path: Path) -> Path | None:
    """The state directory that an absolute path is in."""
    return next((parent for parent in path.parents if parent.name == STATE), None)


def shared_objects(borrowed: Iterable[Path], top: Path, state: Path) -> dict[Path, Path]:
    """The second path of each object directory within a checkout, by which the repositories of worktrees name it.

    Where a worktree stands at the checkout's path, that has another `.git`.
    """
    within = (path for path in borrowed if path.is_relative_to(top))
    return {path: _shared(path, top, state) for path in within}


def _shared(path: Path, top: Path, state: Path) -> Path:
    """A path that stays the same whatever else is borrowed. Git LFS finds its store beside the object directory."""
    home = path.parent.parent if path.parent.name == "lfs" else path.parent
    name = blake2b(os.fsencode(home.relative_to(top)), digest_size=6).hexdigest()
    return state / "objects" / name / path.relative_to(home)
