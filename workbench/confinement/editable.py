"""Editable installs of the project itself, through which a command in a worktree could import the person's own files.

`pip install -e .` and `uv sync` put no files into an environment, but the path of the directory that they are in. In a
box in which the worktree stands at the project's path, that is the worktree's. Elsewhere a test would try the person's
own files, and pass whatever the worktree holds: so the worktree's directories go first, and that is tried.
"""

from __future__ import annotations

import ast
import json
import os
import re
import select
import site
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from workbench.confinement.box import Box
from workbench.errors import Conflict
from workbench.system import uninterrupted

_PACKAGES = ("lib/python3*/*-packages", "lib64/python3*/*-packages")
_MARKS = ("pyvenv.cfg", "conda-meta")
"""Files that mark the directory of an environment."""
_URL = "direct_url.json"
_LARGEST = 1 << 20
_MOST_NAMES = 200
_MOST_FILES = 20_000
_SECONDS = 30
"""How long the Python of an environment may take to say where it finds modules."""
_FIND = """
import importlib.util, json, sys
if sys.path[:1] == [""]:
    del sys.path[0]
found = {}
for name in json.loads(sys.argv[1]):
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        continue
    if spec is not None:
        file = [spec.origin] if spec.has_location and spec.origin else []
        found[name] = list(spec.submodule_search_locations or file)
print()
print(json.dumps(found))
"""
"""Prints where modules would be imported from. It imports none, but packages around one that is asked for."""


@dataclass(frozen=True, slots=True)
class Editable:
    """An editable install: the file that records it (`noted`), the directory that is searched for modules, and the
    `modules` that are found through it (none: all that are in the directory)."""

    noted: Path
    directory: Path
    modules: tuple[str, ...] = ()


def own_path(box: Box, project: Path, worktree: Path, environment: Mapping[str, str]) -> str:
    """What has to stand first in the PYTHONPATH of a command in a worktree, so that it imports the worktree's files.

    Mostly nothing. Blocks: where an environment has an editable install of the project, its Python is asked, in the
    box, unless what is installed cannot be read there.

    If the worktree stands at the project's path, those are its files.

    Args:
        box: of the command.
        project: its checkout in the project, at whose path the worktree may stand.
        environment: of the command.

    Raises:
        Conflict: ``EDITABLE_ENVIRONMENT``: it would import the project's own files nevertheless.
    """
    if box.stands:
        return ""
    project, worktree = (box.project or project).resolve(), worktree.resolve()
    found = list(installs(box, project, environment["PATH"]))
    directories = dict.fromkeys(worktree / entry.directory.relative_to(project) for entry in found)
    path = os.pathsep.join(map(str, directories))
    for entry in found:
        if box.enforce and not box.may_read(entry.directory):
            continue  # importing that fails, and says so
        _require_own(entry, box, project, worktree, preceded(environment, path))
    return path


def preceded(environment: Mapping[str, str], path: str) -> dict[str, str]:
    """The variables of a command, with the result of `own_path` first in its PYTHONPATH."""
    present = environment.get("PYTHONPATH")
    return dict(environment) | ({"PYTHONPATH": os.pathsep.join(filter(None, (path, present)))} if path else {})


def installs(box: Box, project: Path, search_path: str) -> Iterator[Editable]:
    """The editable installs of directories of a project in the environments that a command in a box may use."""
    project = project.resolve()
    program_directories = [Path(place) for place in search_path.split(os.pathsep) if place]
    for packages in _package_directories(box.read, program_directories):
        found = [Editable(entry.noted, entry.directory.resolve(), entry.modules) for entry in find_installs(packages)]
        seen: list[Path] = []
        for entry in found:
            is_own = entry.directory.is_relative_to(project)
            if not is_own or entry.directory.is_relative_to(_environment(packages)):
                continue
            if entry.noted.name == _URL and any(place.is_relative_to(entry.directory) for place in seen):
                continue  # only what it means for the search of modules counts, and that was found
            seen.append(entry.directory)
            yield entry


def unreadable(environment: Path, readable: Iterable[Path]) -> list[Editable]:
    """The editable installs of an environment whose directories are not at or below `readable`, nor in itself. Blocks.

    Importing them fails in a box, as if they were not installed.
    """
    places = [environment.resolve(), *(place.resolve() for place in readable)]
    found: dict[Path, Editable] = {}
    for packages in (path for pattern in _PACKAGES for path in environment.glob(pattern)):
        for entry in find_installs(packages):
            directory = entry.directory.resolve()
            around = (directory, *directory.parents)
            if directory.is_dir() and directory not in found and not any(place in around for place in places):
                found[directory] = entry
    return list(found.values())


def _require_own(entry: Editable, box: Box, project: Path, worktree: Path, environment: Mapping[str, str]) -> None:
    around = (name.partition(".")[0] for name in entry.modules)
    names = list(dict.fromkeys((*around, *entry.modules) or _module_names(entry.directory)))[:_MOST_NAMES]
    interpreter = _interpreter(entry.noted.parent if entry.noted.name != _URL else entry.noted.parents[1])
    found = _find_modules(interpreter, names, box, worktree, environment) if interpreter else None
    if found is None:
        raise _refusal(entry, "and its Python does not say where it would import from")
    for name, places in found.items():
        hers = [
            path for path in map(Path, places) if path.is_relative_to(project) and not path.is_relative_to(worktree)
        ]
        if hers and (hers[0] == Path(places[0]) or (missing := _find_missing(hers, project, worktree))):
            what = f"{name} from {hers[0]}" if hers[0] == Path(places[0]) else f"{missing}, which the worktree has not"
            raise _refusal(entry, f"and would import {what}")


def _refusal(entry: Editable, why: str) -> Conflict:
    return Conflict(
        "EDITABLE_ENVIRONMENT",
        f"The environment of the worktree's commands has an editable install: {entry.noted} names {entry.directory}, "
        f"{why}. Tests would try those files, not the worktree's, so nothing was run. Install the project there "
        "without -e (`pip install .`, `uv sync --no-editable`), or open no environment of the project to the box.",
        noted=str(entry.noted),
        directory=str(entry.directory),
    )


def _module_names(directory: Path) -> Iterator[str]:
    """The names that can be imported from a directory, also of packages without an ``__init__.py``."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        name = path.stem if path.suffix == ".py" else path.name
        if name.isidentifier() and (path.suffix == ".py" or path.is_dir()) and next(_python_files([path]), None):
            yield name


def _python_files(places: Iterable[Path]) -> Iterator[Path]:
    """The Python files at and below some paths; links are not followed."""
    for place in places:
        if place.suffix == ".py":
            yield place
        for directory, _, files in os.walk(place):
            yield from (Path(directory, name) for name in files if name.endswith(".py"))


def _find_missing(places: Sequence[Path], project: Path, worktree: Path) -> Path | None:
    """A Python file of the project's that the worktree has not, in directories that are searched after the worktree's.

    With more files than can be looked through, the last of those.
    """
    for number, path in enumerate(_python_files(places)):
        if number == _MOST_FILES or not os.path.lexists(worktree / path.relative_to(project)):
            return path
    return None


def _interpreter(packages: Path) -> Path | None:
    """The Python that has a package directory."""
    environment = _environment(packages)
    program = Path(sys.executable) if environment in (packages, Path(sys.prefix)) else environment / "bin" / "python"
    return program if os.access(program, os.X_OK) else None


def _find_modules(
    interpreter: Path, names: Sequence[str], box: Box, worktree: Path, environment: Mapping[str, str]
) -> dict[str, list[str]] | None:
    """Where a Python in the box would import modules from; None if it does not say. Nobody's word but a worker's."""
    argv = box.guarded([str(interpreter), "-c", _FIND, json.dumps(names)])
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        with uninterrupted.started(argv, cwd=worktree, env=environment, **pipes) as process:
            output = _read_output(process)
            if output is None:
                uninterrupted.stop(process)
            found = json.loads((output or b"").rstrip().rpartition(b"\n")[2])
        return {str(name): [os.path.realpath(place) for place in places] for name, places in found.items() if places}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _read_output(process: subprocess.Popen[bytes]) -> bytes | None:
    """All that it writes; None if that is too much, or takes too long."""
    output, deadline = bytearray(), time.monotonic() + _SECONDS
    assert process.stdout is not None
    while len(output) < _LARGEST and select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
        if not (chunk := os.read(process.stdout.fileno(), 1 << 16)):
            return bytes(output)
        output += chunk
    return None


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


def find_installs(packages: Path) -> Iterator[Editable]:
    """All editable installs in a package directory, in the order in which they are searched."""
    for record in sorted(packages.glob("*.pth")):
        yield from (Editable(record, packages / line) for line in _read_paths(_read_text(record)))
    for record in packages.glob("*.egg-link"):
        yield from (Editable(record, packages / line) for line in _read_paths(_read_text(record))[:1])
    for pattern in ("__editable__*finder.py", "_editable_impl_*.py"):
        for record in packages.glob(pattern):
            yield from (Editable(record, *found) for found in _read_mapping(_read_text(record)))
    for record in packages.glob(f"*.dist-info/{_URL}"):
        for path in _read_url(_read_text(record)):
            yield Editable(record, path / "src" if (path / "src").is_dir() else path)


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


def _read_mapping(text: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The directories that a finder of setuptools or of hatchling has modules in, and which, without running it."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    for statement in body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name("MAPPING")], value=ast.Dict() as mapping)
                | ast.AnnAssign(target=ast.Name("MAPPING"), value=ast.Dict() as mapping)
            ):
                pairs: list[tuple[ast.expr | None, ast.expr]] = list(zip(mapping.keys, mapping.values, strict=True))
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="map_module"), args=[name, path])):
                pairs = [(name, path)]
            case _:
                continue
        for pair in pairs:
            match pair:
                case ast.Constant(value=str() as module), ast.Constant(value=str() as place):
                    yield _directory_of_module(module, Path(place)), (module,)


def _directory_of_module(module: str, place: Path) -> Path:
    """The directory that has a module by its name, given its file or its own directory; else the one around it."""
    place = place.parent if place.name == "__init__.py" else place
    parts = tuple(module.split("."))
    named = (*place.parts[: -len(parts)], *parts)
    is_named = place.with_suffix("").parts == named
    return Path(*place.parts[: -len(parts)]) if is_named else place.parent
