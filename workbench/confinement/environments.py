"""Environments of Python: what a box has to open for one, and how its commands find it.

An environment of `venv` or uv consists of its directory and of that of the interpreter that it was made with, which may
be in a home; one of conda is complete. Nothing of it is run here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.confinement.editable import find_installs
from workbench.errors import NotFound, Unavailable

_CONFIGURATION = "pyvenv.cfg"
_CONDA = "conda-meta"
_PARTS = ("bin", "lib", "lib64", "include", "share")
_PACKAGES = ("lib/python3*/site-packages", "lib64/python3*/site-packages")
_LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class ProgramEnvironment:
    """An environment at `place`, which is its path as the person has it; `directory` has no link in it.

    Args:
        base: the paths of its interpreter's own installation.
        stamp: changes when packages are installed into it, or when it is made anew.
    """

    place: Path
    directory: Path
    base: tuple[Path, ...]
    is_conda: bool
    stamp: str

    @property
    def programs(self) -> Path:
        """The directory of its programs."""
        return self.place / "bin"

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which programs find it. uv shall use it as it is: it cannot be changed."""
        if self.is_conda:
            return {"CONDA_PREFIX": str(self.place), "CONDA_DEFAULT_ENV": self.place.name}
        return {
            "VIRTUAL_ENV": str(self.place),
            "UV_PROJECT_ENVIRONMENT": str(self.place),
            "UV_OFFLINE": "1",
            "UV_NO_SYNC": "1",
        }


def find(place: Path) -> ProgramEnvironment:
    """The environment in a directory. Blocks.

    Raises:
        NotFound: ``ENVIRONMENT_NOT_FOUND``. Unavailable: ``ENVIRONMENT_BROKEN``: its interpreter is gone.
    """
    directory = Path(os.path.realpath(place))
    is_conda = (directory / _CONDA).is_dir()
    if not is_environment(directory):
        raise NotFound(
            "ENVIRONMENT_NOT_FOUND",
            f"{place} is no environment: it has neither {_CONFIGURATION} nor {_CONDA}. Create it (`python -m venv`, "
            "`uv sync`, `conda create`), or name another directory as the environment of the workplace.",
            path=str(place),
        )
    interpreter = directory / "bin" / "python"
    if not (interpreter.is_file() and os.access(interpreter, os.X_OK)):
        target = os.path.realpath(interpreter)
        raise Unavailable(
            "ENVIRONMENT_BROKEN",
            f"The interpreter of the environment {place} is gone: {target} does not exist or cannot be executed. Make "
            "the environment anew.",
            path=str(place),
            interpreter=target,
        )
    base = () if is_conda else tuple(dict.fromkeys(_base(directory, interpreter)))
    return ProgramEnvironment(place, directory, base, is_conda, stamp(directory))


def is_environment(directory: Path) -> bool:
    """Whether a directory is an environment, of `venv` or of conda. Blocks."""
    return (directory / _CONFIGURATION).is_file() or (directory / _CONDA).is_dir()


def has(directory: Path, name: str) -> bool:
    """Whether an environment has a program, or a module at the top of its packages, of this name, also by an editable
    install. Blocks."""
    files = (name, f"{name}.py", f"{name}.*.so")
    packages = [path for pattern in _PACKAGES for path in directory.glob(pattern)]
    places = [*packages, *(entry.directory for path in packages for entry in find_installs(path))]
    return (directory / "bin" / name).exists() or any(any(path.glob(file)) for path in places for file in files)


def stamp(directory: Path) -> str:
    """What changes when an environment changes: the digest of its configuration and of the times of its packages."""
    packages = sorted(path for pattern in _PACKAGES for path in directory.glob(pattern))
    times = (f"{path} {path.stat().st_mtime_ns}".encode() for path in packages)
    parts = [_read(directory / _CONFIGURATION), *times]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _base(directory: Path, interpreter: Path) -> Iterator[Path]:
    """The parts of the installation that a virtual environment was made with: by its configuration and by its link."""
    lines = (line.partition("=") for line in os.fsdecode(_read(directory / _CONFIGURATION)).splitlines())
    homes = [Path(value.strip()) for name, _, value in lines if name.strip().lower() == "home"]
    for home in (*homes, interpreter.resolve().parent):
        for root in dict.fromkeys((home.parent, Path(os.path.realpath(home)).parent)):
            yield from (path for part in _PARTS if (path := Path(os.path.realpath(root / part))).is_dir())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
