"""How a process that serves no project records: through the project's server, or else in its store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench import state_directory
from workbench.client import HttpClient, no_server
from workbench.client.discovery import find_server
from workbench.errors import Unavailable, WorkbenchError
from workbench.loop_thread import LoopThread
from workbench.settings import Settings

STOP_SECONDS = 15.0


class Connection:
    """Runs operations as the operator, from any thread; each call waits for its result.

    The server that `server.json` names is used as long as it answers. Without one, the store is opened for each call,
    and created if there is none.

    Args:
        project: the root of the project; by default it is found from the current directory.
    """

    def __init__(self, project: Path | None = None) -> None:
        self._project = project
        self._settings: Settings | None = None
        self._starting = threading.Lock()
        self._thread: LoopThread[None] | None = None
        self._http: HttpClient | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the project, read once.

        Raises:
            BadInput: ``NOT_A_DIRECTORY``, ``BAD_SETTINGS``.
        """
        if self._settings is None:
            self._settings = Settings.load(self._project)
        return self._settings

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the operation raises; see `Workbench.open`.
        """
        settings = self.settings
        return self._running().call(self._call(settings, name, arguments))

    def close(self) -> None:
        """End the connection. A later call begins another."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(STOP_SECONDS)

    def _running(self) -> LoopThread[None]:
        with self._starting:
            if self._thread is None:
                self._thread = LoopThread("workbench-recording", self._main, _closed)
                self._thread.start(STOP_SECONDS)
            return self._thread

    async def _main(self, opened: Callable[[None], None]) -> None:
        opened(None)
        try:
            await asyncio.Event().wait()
        finally:
            await self._leave()

    async def _call(self, settings: Settings, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._http is not None:
            try:
                return await self._http.call(name, **arguments)
            except Unavailable as error:
                if error.code != "NO_SERVER":
                    raise
                await self._leave()
        state_directory.check(settings.project)
        if (found := await find_server(settings.server_file)) is not None:
            self._http = HttpClient(found.info.url, found.operator_token)
            return await self._http.call(name, **arguments)
        from workbench.app import Workbench

        async with Workbench.open(settings) as workbench:
            return await workbench.call(name, **arguments)

    async def _leave(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.__aexit__()


def _closed() -> WorkbenchError:
    return no_server(ConnectionError("the recording has ended"))
