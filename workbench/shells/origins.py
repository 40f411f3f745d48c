"""The origins of web pages that may use the servers: their own pages, and those of the running Jupyter servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil
from jupyter_core.paths import jupyter_runtime_dir

from workbench.rules.access import LOOPBACK

_PORTS = {"http": 80, "https": 443}


class WebOrigin(NamedTuple):
    """The host and port of a web page. All names of this machine's loopback are one host."""

    host: str
    port: int


def parse_origin(url: str) -> WebOrigin | None:
    """The origin of a page's address; None if it is not one of http or https."""
    try:
        parts = urlsplit(url)
        default = _PORTS[parts.scheme]
        port = parts.port or default
    except (ValueError, KeyError):
        return None
    host = (parts.hostname or "").lower()
    return WebOrigin("localhost" if host in LOOPBACK else host, port) if host else None


def jupyter_origins() -> Iterator[WebOrigin]:
    """The origins of this user's running Jupyter servers, from the files that they keep while they run."""
    for file in Path(jupyter_runtime_dir()).glob("*server-*.json"):
        try:
            server = json.loads(file.read_text("utf-8"))
            running, url = psutil.pid_exists(int(server["pid"])), str(server["url"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it is being written or removed, or is not of a server
        if running and (origin := parse_origin(url)) is not None:
            yield origin
            yield WebOrigin("localhost", origin.port)
