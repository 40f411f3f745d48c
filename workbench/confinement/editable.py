"""Editable installs of the project itself, which a command in a worktree would import instead of the worktree's files.

`pip install -e .` and `uv sync` put no files into an environment, but the path of the directory that they are in. A
test in a worktree that such an environment runs tries the person's own files, and passes whatever the worktree holds.
"""

from __future__ import annotations

import ast
import json
import os
import re
import site
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from workbench.confinement.box import Box
from workbench.errors import Conflict

_PACKAGES = ("lib/python3*/*-packages", "lib64/python3*/*-packages")
_MARKS = ("pyvenv.cfg", "conda-meta")
"""Files that mark the directory of an environment."""
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Editable:
    """An editable install: the file that records it (`noted`), and the directory that is imported."""

    noted: Path
    directory: Path


def require_own_files(box: Box, project: Path, search_path: str) -> None:
    """Refuse a command in a worktree whose environment imports the project's own files. Blocks for some milliseconds.

    If the worktree stands at the project's path, those are its files.

    Args:
        box: of the command.
        search_path: its PATH.

    Raises:
        Conflict: ``EDITABLE_ENVIRONMENT``.
    """
    if box.stands or (entry := next(installs(box, project, search_path), None)) is None:
        return
    raise Conflict(
        "EDITABLE_ENVIRONMENT",
        f"The environment of the worktree's commands has an editable install: {entry.noted} names {entry.directory}. "
        "Tests would try those files, not the worktree's, so nothing was run. Install the project there without -e "
        "(`pip install .`, `uv sync --no-editable`), or open no environment of the project to the box.",
        noted=str(entry.noted),
        directory=str(entry.directory),
    )


def installs(box: Box, project: Path, search_path: str) -> Iterator[Editable]:
    """The editable installs of directories of a project that a command in a box could import from."""
    project = project.resolve()
    program_directories = [Path(place) for place in search_path.split(os.pathsep) if place]
    for packages in _package_directories(box.read, program_directories):
        for entry in _find_installs(packages):
            directory = entry.directory.resolve()
            is_own = directory.is_relative_to(project) and not directory.is_relative_to(_environment(packages))
            if is_own and (not box.enforce or box.may_read(directory)):
                yield Editable(entry.noted, directory)


def _package_directories(readable: Iterable[Path], programs: Iterable[Path]) -> tuple[Path, ...]:
    """The package directories of this Python, of environments around, at or below readable directories, and of those
    on the PATH."""
    directories = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    directories += [Path(site.getusersitepackages())] if site.ENABLE_USER_SITE else []
    roots = [place.parent for place in programs]
    for place in readable:
        roots += [place, *filter(_is_environment, place.parents)]
        roots += [mark.parent for name in _MARKS for mark in place.glob(f"*/{name}")]
    directories += [
        packages for root in dict.fromkeys(roots) for pattern in _PACKAGES for packages in root.glob(pattern)
    ]
    return tuple(dict.fromkeys(path.resolve() for path in directories))


def _is_environment(directory: Path) -> bool:
    return any(os.path.exists(directory / name) for name in _MARKS)  # noqa: PTH110 - Path's raises if it may not look


def _environment(packages: Path) -> Path:
    """The environment of a package directory; tools also keep checkouts of other projects in it."""
    return next((parent for parent in packages.parents if _is_environment(parent)), packages)


def _find_installs(packages: Path) -> Iterator[Editable]:
    for record in packages.glob("*.dist-info/direct_url.json"):
        yield from (Editable(record, path) for path in _read_url(_read_text(record)))
    for record in packages.glob("*.pth"):
        yield from (Editable(record, packages / line) for line in _read_paths(_read_text(record)))
    for record in packages.glob("*.egg-link"):
        yield from (Editable(record, packages / line) for line in _read_paths(_read_text(record))[:1])
    for record in packages.glob("__editable__*finder.py"):
        yield from (Editable(record, path) for path in _read_mapping(_read_text(record)))


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _read_paths(text: str) -> list[str]:
    """The paths in a ``.pth`` file; other lines are comments or code."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not re.match(r"#|import\s", line)]


def _read_url(text: str) -> Iterator[Path]:
    """The directory of an editable install by PEP 610."""
    try:
        record: Any = json.loads(text)
        if record["dir_info"]["editable"] is True and (url := urlsplit(record["url"])).scheme == "file":
            yield Path(url2pathname(url.path))
    except (ValueError, TypeError, KeyError, AttributeError):
        return


def _read_mapping(text: str) -> Iterator[Path]:
    """The directories and files that a finder of setuptools maps packages to, without running it."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name("MAPPING")], value=ast.Dict() as value):
                pass
            case ast.AnnAssign(target=ast.Name("MAPPING"), value=ast.Dict() as value):
                pass
            case _:
                continue
        for path in value.values:
            if isinstance(path, ast.Constant) and isinstance(path.value, str):
                yield Path(path.value)
