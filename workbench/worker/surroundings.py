"""Explains which files a failed command may have lacked where it ran; its error ends with the explanation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from workbench.confinement import environments
from workbench.worker.attempt import NOT_STARTED, AttemptOutcome

NO_WORKTREE = (
    "The task has no worktree, and the project no repository with a commit, so its command ran in a new, empty "
    "directory."
)
READ_ONLY = (
    "The task has no worktree, so its command ran in a checkout of the target that it may only read, without what git "
    "ignores. If it has to change files, give the task a worktree."
)
_SHOWN = 3
_MISSES = re.compile(
    r"no such file|not found|(cannot|can't|could not|unable to) (find|open)|does not exist|doesn't exist|ENOENT"
    r"|no module named|no tests|0 items|no rule to make|not a git repository",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"no module named '?(\w+)|([\w.+-]+): (?:command )?not found", re.IGNORECASE)
"""A module of Python, or a program of a shell."""
_ABSENT_PACKAGE = re.compile(r"cannot find (?:module|package) '(@[\w.-]+/[\w.-]+|\w[\w.-]*)", re.IGNORECASE)
"""A package of Node.js."""


def misses_something(outcome: AttemptOutcome) -> bool:
    """Whether a command has failed and said that it had not found something."""
    return not outcome.ok and outcome.error_class != NOT_STARTED and _MISSES.search(outcome.error) is not None


def tells_of_missing(line: str) -> bool:
    """Whether a line of a failed command's output says that something was not found."""
    return _MISSES.search(line) is not None


def named(paths: Iterable[str], output: str, place: str) -> list[str]:
    """The paths that an output names, relative or below a directory `place`."""
    begin = rf"(?:(?<![\w./-])(?:\./)?|{re.escape(place)}/)"
    return [path for path in paths if re.search(rf"{begin}{re.escape(path)}(?![\w-])", output)]


def environments_with(ignored: Iterable[str], named: Collection[str], output: str, project: Path) -> list[str]:
    """Environments among ignored paths of a project: those named, or with a program or module that was not found."""
    absent = {module or program for module, program in _ABSENT.findall(output)}
    return [
        path
        for path in ignored
        if environments.is_environment(project / path)
        and (path in named or any(environments.has(project / path, name) for name in absent))
    ]


def node_modules_with(ignored: Iterable[str], output: str, project: Path) -> list[str]:
    """The directories of Node.js packages among ignored paths of a project that have one that was not found."""
    absent = set(_ABSENT_PACKAGE.findall(output))
    places = [path for path in ignored if Path(path).name == "node_modules"]
    return [path for path in places if any((project / path / name).is_dir() for name in absent)]


def of_worktree(submodules: Sequence[str], ignored: Sequence[str], unused: Sequence[str] = ()) -> str:
    """Sentences about what a worktree lacks: the files of submodules, what git ignores, and unused environments."""
    sentences = []
    if submodules:
        sentences.append(f"The worktree does not have the files of submodules: {_summarise(submodules)}.")
    if ignored:
        has = f"Worktrees do not have what git ignores: the project has {_summarise(ignored)}."
        sentences.append(f"{has} The keys read and include of the workplace bring it in.")
    if unused:
        has = f"The project has what was not found in {_summarise(unused)}"
        sentences.append(f"{has}: the key environment of the workplace brings an environment in.")
    return " ".join(sentences)


def _summarise(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
