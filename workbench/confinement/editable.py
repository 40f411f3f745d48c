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
"""What the directory of an environment has."""
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Editable:
    """An editable install: where it is noted, and the directory that is imported."""

    noted: Path
    directory: Path


def require_own_files(box: Box, project: Path, search_path: str) -> None:
    """Refuse a command in a worktree whose environment imports the project's own files. Blocks for some milliseconds.

    Args:
        box: of the command.
        search_path: its PATH.

    Raises:
        Conflict: ``EDITABLE_ENVIRONMENT``.
    """
    if (found := next(installs(box, project, search_path), None)) is None:
        return
    raise Conflict(
        "EDITABLE_ENVIRONMENT",
        f"The environment of the worktree's commands has an editable install: {found.noted} names {found.directory}. "
        "Tests would try those files, not the worktree's, so nothing was run. Install the project there without -e "
        "(`pip install .`, `uv sync --no-editable`), or open no environment of the project to the box.",
        noted=str(found.noted),
        directory=str(found.directory),
    )


def installs(box: Box, project: Path, search_path: str) -> Iterator[Editable]:
    """The editable installs of directories of a project that a command in a box could import from."""
    project = project.resolve()
    programs = [Path(place) for place in search_path.split(os.pathsep) if place]
    for packages in _packages(box.read, programs):
        for found in _installs(packages):
            directory = found.directory.resolve()
            is_own = directory.is_relative_to(project) and not directory.is_relative_to(_environment(packages))
            if is_own and (not box.enforce or box.may_read(directory)):
                yield Editable(found.noted, directory)


def _packages(opened: Iterable[Path], programs: Iterable[Path]) -> tuple[Path, ...]:
    """The directories of packages of this Python, of the environments that hold, are, or lie in what is opened, and of
    those whose programs are found."""
    found = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    found += [Path(site.getusersitepackages())] if site.ENABLE_USER_SITE else []
    roots = [place.parent for place in programs]
    for place in opened:
        roots += [place, *filter(_is_environment, place.parents)]
        roots += [mark.parent for name in _MARKS for mark in place.glob(f"*/{name}")]
    found += [packages for root in dict.fromkeys(roots) for pattern in _PACKAGES for packages in root.glob(pattern)]
    return tuple(dict.fromkeys(path.resolve() for path in found))


def _is_environment(directory: Path) -> bool:
    return any(os.path.exists(directory / name) for name in _MARKS)  # noqa: PTH110 - Path's raises if it may not look


def _environment(packages: Path) -> Path:
    """The environment of a directory of packages, in which tools keep checkouts of others' projects, too."""
    return next((above for above in packages.parents if _is_environment(above)), packages)


def _installs(packages: Path) -> Iterator[Editable]:
    for noted in packages.glob("*.dist-info/direct_url.json"):
        yield from (Editable(noted, path) for path in _named_by_url(_text(noted)))
    for noted in packages.glob("*.pth"):
        yield from (Editable(noted, packages / line) for line in _lines(_text(noted)))
    for noted in packages.glob("*.egg-link"):
        yield from (Editable(noted, packages / line) for line in _lines(_text(noted))[:1])
    for noted in packages.glob("__editable__*finder.py"):
        yield from (Editable(noted, path) for path in _mapped(_text(noted)))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _lines(text: str) -> list[str]:
    """The paths in a ``.pth`` file: what is no path is a comment, or code."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not re.match(r"#|import\s", line)]


def _named_by_url(text: str) -> Iterator[Path]:
    """The directory of an editable install by PEP 610."""
    try:
        noted: Any = json.loads(text)
        if noted["dir_info"]["editable"] is True and (url := urlsplit(noted["url"])).scheme == "file":
            yield Path(url2pathname(url.path))
    except (ValueError, TypeError, KeyError, AttributeError):
        return


def _mapped(text: str) -> Iterator[Path]:
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
