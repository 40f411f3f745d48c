"""The files that the programs of a definition name and that operations on definitions can change.

Somebody who may change rules could otherwise change what a trusted command runs, such as `sh rules/run.md`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.trust import Files
from workbench.state.home import expanded

LARGEST = 8 << 20
"""Bytes of a file that are read; a larger one counts by its size and the time of its change."""


def named_files(definition: Definition, directory: Path, project: Path, roots: Sequence[Path]) -> Files:
    """By the name of a server, the SHA-256 of each file that its command names and that lies below a root. Blocks.

    Args:
        directory: of the definition.
        project: relative paths are tried from here, from the definition's directory, and from the server's `cwd`.
        roots: resolved paths; definitions are below them.
    """
    found: dict[str, dict[str, str]] = {}
    for name, server in definition.mcp_servers.items():
        if isinstance(server, StdioServer):
            bases = [project, directory, *filter(None, [server_directory(server, project)])]
            files = {str(path): _sha256(path) for path in _named(server, bases, roots)}
            found |= {name: files} if files else {}
    return found


def server_directory(server: StdioServer, project: Path) -> Path | None:
    """The directory that a program of a definition runs in; None if the definition names none."""
    if server.cwd is None:
        return None
    return project / expanded(server.cwd)


def _named(server: StdioServer, bases: Sequence[Path], roots: Sequence[Path]) -> Iterator[Path]:
    words = (server.command, *server.args, *server.env.values())
    candidates = {part for word in words for part in (word, word.partition("=")[2]) if part}
    for candidate in sorted(candidates):
        for base in bases:
            with suppress(OSError, ValueError):
                path = Path(os.path.realpath(base / candidate))
                if any(path.is_relative_to(root) for root in roots) and path.is_file():
                    yield path


def _sha256(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST:
            return f"{info.st_size} bytes, changed at {info.st_mtime_ns}"
        return hashlib.sha256(file.read(LARGEST)).hexdigest()
