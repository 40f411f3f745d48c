"""The server of a project, which may be restarted at another address: the project's `server.json` tells where it is."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from workbench.client.address import is_same_place
from workbench.client.discovery import is_running
from workbench.errors import BadInput
from workbench.model import ServerInfo
from workbench.state.root import STATE, find_project
from workbench.state.server_file import ServerFile

FOLLOW_SECONDS = 0.5
"""How often to check whether the server has moved."""

log = logging.getLogger(__name__)


class ProjectServer:
    """The server of a project, and its present address.

    Args:
        url: its address at the moment.
        file: the `server.json` of its project; None: it has only this address.
    """

    def __init__(self, url: str, file: Path | None) -> None:
        self.url = url
        self._file = file
        self._known = self.nonce()

    @classmethod
    def at(cls, url: str, project: Path | None) -> ProjectServer:
        """The server of a project, or else the one at `url`, of the current directory's project if that names it."""
        try:
            file = server_file(project or find_project())
        except BadInput:  # the current directory was removed
            return cls(url, None)
        info = ServerFile(file).load().info
        if project is not None:
            return cls(info.url if info else url, file)
        return cls(url, file if info is not None and is_same_place(url, info.url) else None)

    def nonce(self) -> str | None:
        """An identifier of the running server, according to the file; None while none runs.

        It is constant if there is no such file.
        """
        if not self._has_file():
            return ""
        info = self._load_info()
        return None if info is None else info.nonce

    def is_away(self, url: str | None = None) -> bool:
        """Whether another program has an address: the file names no server, or one elsewhere.

        Args:
            url: by default the present address, which changes as soon as the server is found at another one.
        """
        if self._file is None:
            return False
        info = self._load_info()
        return info is None or not is_same_place(info.url, url or self.url)

    def is_gone(self) -> bool:
        """Whether the project was removed: no server of it can come any more."""
        return self._file is not None and not self._has_file()

    async def find(self) -> ServerInfo | None:
        """The server, if it answers with its nonce at another address than `url`, which then becomes that address."""
        info = self._load_info()
        if info is None:
            return None
        if not is_same_place(info.url, self.url) and not await is_running(info):
            return None
        has_moved = not is_same_place(info.url, self.url)  # it may have been found meanwhile
        self.url, self._known = info.url, info.nonce
        return info if has_moved else None

    async def moved(self) -> ServerInfo:
        """Wait until the server is at another address; see `find`."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            try:
                if self.nonce() not in (None, self._known) and (info := await self.find()):
                    return info
            except Exception:  # this must not end because of a fault in itself
                log.exception("the address of the server could not be checked")

    def _has_file(self) -> bool:
        return self._file is not None and self._file.parent.is_dir()

    def _load_info(self) -> ServerInfo | None:
        return ServerFile(self._file).load().info if self._file else None


def server_file(project: Path) -> Path:
    """The `server.json` of a project."""
    return project.resolve() / STATE / "server.json"
