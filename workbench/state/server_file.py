"""`.aiswarm/server.json`: the running server, and how the operator reaches it. Mode 0600.

The file counts only if it belongs to this user and nobody else has access to it. It may be left over from a crashed
server, or be the copy of another project's: its server counts only if the file was written for its directory, and a
process of this user with that pid and start time runs. `client.discovery` also asks the server for its nonce.
Every start makes a new token, unless it takes over from a server that the process knows; after a clean stop the file
keeps only the port, so that a restarted server has the same address.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import ValidationError

from workbench.model import ServerInfo
from workbench.state.root import identity
from workbench.system import atomic_file

SERVER_LOG = "serve.log"
"""The file, among the logs, that servers in a process of their own print to."""
CLOCK_SLACK = 2.0
"""Seconds by which the start time that the system reports for a process may change."""


@dataclass(frozen=True)
class ServerFileContent:
    """The content of the file; None for missing or damaged parts, or if the process has ended."""

    info: ServerInfo | None = None
    operator_token: str | None = None
    port: int | None = None


class ServerFile:
    """The file of one project."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._directory: str | None = None

    def load(self) -> ServerFileContent:
        """Read the file. Never raises: a file that is damaged or not private counts as missing."""
        try:
            raw = json.loads(atomic_file.read(self.path, private=True))
        except (OSError, ValueError, RecursionError):
            return ServerFileContent()
        if not isinstance(raw, dict):
            return ServerFileContent()
        token, port, directory = (raw.pop(name, None) for name in ("operator_token", "port", "directory"))
        if directory is None or directory != identity(self.path.parent):
            return ServerFileContent()
        try:
            info = ServerInfo(**raw) if raw else None
        except ValidationError:
            info = None
        return ServerFileContent(
            info if info and _runs(info) else None,
            token if isinstance(token, str) else None,
            port if type(port) is int and 0 < port < 65_536 else None,
        )

    def save(self, info: ServerInfo, operator_token: str) -> None:
        """Write the running server to the file.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        self._directory = identity(self.path.parent)
        self._write(info.model_dump() | {"port": _port(info), "operator_token": operator_token})

    def clear(self) -> None:
        """Remove the server and its token from the file, but keep the port for the next one.

        Does nothing if the directory to which it was saved was moved: another may be in its place.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        if self._directory in (None, identity(self.path.parent)):
            self._write({"port": self.load().port})

    def _write(self, content: dict[str, object]) -> None:
        owner = {"directory": identity(self.path.parent)}
        atomic_file.replace(self.path, json.dumps(content | owner, indent=2), mode=0o600)


def _port(info: ServerInfo) -> int:
    return int(info.url.rpartition(":")[2])


def _runs(info: ServerInfo) -> bool:
    try:
        process = psutil.Process(info.pid)
        is_own = process.uids().effective == os.geteuid() and process.status() != psutil.STATUS_ZOMBIE
        return is_own and abs(process.create_time() - info.started) < CLOCK_SLACK
    except psutil.Error:
        return False
