"""The launcher and the fork server as bytecode: compiling them each time would take as long as starting Python does.

A file lies beside the package's own bytecode, else in the directory of the records of trust: no worker can write
there, or it could replace the launcher, or what is trusted, as well.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.state import user_files

LAUNCHER = Path(__file__).resolve().with_name("launcher.py")
FORK_SERVER = LAUNCHER.with_name("fork_server.py")

_PYTHON = (sys.executable, "-I", "-S")
_CHECKED_BY_HASH = (0b11).to_bytes(4, "little")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def launcher() -> list[str]:
    """What runs the launcher; its arguments follow."""
    return [*_PYTHON, str(program(LAUNCHER))]


def fork_server() -> list[str]:
    """What runs the fork server; the number of its socket follows."""
    return [*_PYTHON, str(program(FORK_SERVER)), str(program(LAUNCHER))]


@cache
def program(source: Path) -> Path:
    """A program for this Python: its bytecode, or its source where no file of this user can be made."""
    return compiled(source, (source.parent / "__pycache__", user_files.directory() / "programs"))


def compiled(source: Path, places: Iterable[Path]) -> Path:
    """The bytecode of a program in the first of `places` where it is, or can be made; else its source.

    A file counts only if it was made from exactly this source by this version of Python, and if neither it nor its
    directory can be written by another user.
    """
    text = source.read_bytes()
    header = importlib.util.MAGIC_NUMBER + _CHECKED_BY_HASH + importlib.util.source_hash(text)
    for directory in places:
        path = directory / f"{source.stem}.box.{sys.implementation.cache_tag}.pyc"
        with suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(directory):
                continue
            if not _is_current(path, header):
                _write(path, header + marshal.dumps(compile(text, str(source), "exec", dont_inherit=True)))
            return path
    return source


def _write(path: Path, content: bytes) -> None:
    with TemporaryDirectory(prefix=".box-", dir=path.parent) as directory:
        temporary = Path(directory) / path.name
        temporary.write_bytes(content)
        temporary.chmod(0o644)
        temporary.replace(path)


def _is_current(path: Path, header: bytes) -> bool:
    if not _is_own(path):
        return False
    with path.open("rb") as file:
        return file.read(len(header)) == header


def _is_own(path: Path) -> bool:
    """Whether it is this user's, no link, and no other user can write it."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    return state.st_uid == os.geteuid() and not stat.S_ISLNK(state.st_mode) and not state.st_mode & _OTHERS_MAY_WRITE
