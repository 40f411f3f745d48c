"""`.aiswarm/server.json`: which server runs, and how the operator reaches it. Mode 0600.

A reader believes it only when pid, start time and, after connecting, nonce match. After a clean
stop it keeps just the port and the token, so that a restart answers where the last one did.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import ValidationError

from workbench import atomic_file
from workbench.model import ServerInfo

CLOCK_SLACK = 2.0
"""Seconds by which the system's idea of when a process started may jump."""


@dataclass(frozen=True)
class Known:
    """What the file says; None where it says nothing (any more)."""

    info: ServerInfo | None = None
    operator_token: str | None = None
    port: int | None = None


class ServerFile:
    """The file of one project."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Known:
        """What the file says; damage counts as nothing said."""
        try:
            raw = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return Known()
        if not isinstance(raw, dict):
            return Known()
        token, port = raw.pop("operator_token", None), raw.pop("port", None)
        try:
            info = ServerInfo(**raw) if raw else None
        except ValidationError:
            info = None
        return Known(
            info if info and _runs(info) else None,
            token if isinstance(token, str) else None,
            port if isinstance(port, int) and 0 < port < 65_536 else None,
        )

    def save(self, info: ServerInfo, operator_token: str) -> None:
        """Name the running server."""
        self._write({**info.model_dump(), "port": _port(info), "operator_token": operator_token})

    def clear(self) -> None:
        """The server stopped: keep what a restart needs."""
        known = self.load()
        self._write({"port": known.port, "operator_token": known.operator_token})

    def _write(self, content: dict[str, object]) -> None:
        atomic_file.replace(self.path, json.dumps(content, indent=2), mode=0o600)


def _port(info: ServerInfo) -> int:
    return int(info.url.rpartition(":")[2])


def _runs(info: ServerInfo) -> bool:
    try:
        return abs(psutil.Process(info.pid).create_time() - info.started) < CLOCK_SLACK
    except psutil.Error:
        return False
