"""The connection of a process that serves no project: to the project's server, or else to its store."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 (see Connection._open)
import threading
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.client import HttpClient, no_server
from workbench.client.connection import ProjectConnection
from workbench.errors import Unavailable, WorkbenchError
from workbench.state.settings import Settings
from workbench.system.loop_thread import LoopThread
from workbench.trust import state_directory

if TYPE_CHECKING:
    from workbench.app import Workbench

STOP_SECONDS = 15.0
IDLE_SECONDS = 2.0
"""The store is closed after this time without a call."""


class RecorderConnection:
    """Runs operations as the operator, from any thread; each call waits for its result.

    The server that `server.json` names is used as long as it answers. Without one, the store is opened, and created if
    there is none. It stays open while calls follow each other, because opening it takes far longer than a call. A
    process that was forked from this one begins a connection of its own.

    Args:
        project: the root of the project; by default it is found from the current directory.
    """

    def __init__(self, project: Path | None = None) -> None:
        self._project = project
        self._settings: Settings | None = None
        self._opening = threading.Lock()
        self._opened: tuple[LoopThread[None], ProjectConnection, _OpenStore] | None = None
        self._has_copy = False
        self._is_registered = False

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
        thread, connection, _ = self._open(self.settings)
        return thread.call(connection.call(name, **arguments))

    def use(self, settings: Settings) -> None:
        """End the connection; a later call is about this project."""
        self.close()
        self._settings = settings

    def close(self) -> None:
        """End the connection. A later call begins another."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].stop(STOP_SECONDS)

    def _open(self, settings: Settings) -> tuple[LoopThread[None], ProjectConnection, _OpenStore]:
        with self._opening:
            if self._opened is not None and self._opened[0].is_of_parent:
                self._has_copy |= self._opened[2].is_open
                self._opened = None
            if self._opened is None:
                if not self._is_registered:
                    # As in Recorder.current: at exit the store has to be closed before the executors.
                    threading._register_atexit(self.close)  # type: ignore[attr-defined]
                    self._is_registered = True
                connect, store = partial(_connect, settings), _OpenStore(settings, self._has_copy)
                connection = ProjectConnection(settings.server_file, connect=connect, store=store)
                thread = LoopThread("workbench-recording", connection.hold, _ended_error)
                self._opened = thread, connection, store
                thread.start(STOP_SECONDS)
            return self._opened


def _connect(settings: Settings, url: str, token: str | None) -> HttpClient:
    state_directory.check(settings.project)
    return HttpClient(url, token)


class _OpenStore:
    """A project's store, open from the first call until some time after the last one. Use it on one loop.

    Args:
        has_copy: this process was forked while the store was open: SQLite would take the locks for its own.
    """

    def __init__(self, settings: Settings, has_copy: bool) -> None:
        self._settings = settings
        self._has_copy = has_copy
        self._changing = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._workbench: Workbench | None = None
        self._calls = 0
        self._pause = IDLE_SECONDS
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self._workbench is not None

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation."""
        async with self._changing:
            workbench = self._workbench or await self._open()
            self._calls += 1
        try:
            return await workbench.call(name, **arguments)
        except Unavailable:  # the store may have to be opened anew
            self._pause = 0.0
            raise
        finally:
            self._calls -= 1
            self._end_closing()
            self._closing = asyncio.create_task(self._close_later())

    async def close(self, *, while_called: bool = False) -> None:
        """Close it, if it is open.

        Args:
            while_called: also while a call is running; otherwise the end of that call closes it later.
        """
        async with self._changing:
            if self._workbench is not None and (while_called or not self._calls):
                self._end_closing()
                self._workbench = None
                await self._opened.aclose()

    def _end_closing(self) -> None:
        closing, self._closing = self._closing, None
        if closing is not None:
            closing.cancel()

    async def _open(self) -> Workbench:
        from workbench.app import Workbench

        if self._has_copy:
            raise Unavailable(
                "FORKED",
                "This process was forked while the recording had the project's store open. Run `workbench serve`, or "
                "start the process with multiprocessing's method `spawn`.",
            )
        state_directory.check(self._settings.project)
        self._pause = IDLE_SECONDS
        self._workbench = await self._opened.enter_async_context(Workbench.open(self._settings))
        return self._workbench

    async def _close_later(self) -> None:
        await asyncio.sleep(self._pause)
        self._closing = None  # from here on it is not cancelled
        await self.close()


def _ended_error() -> WorkbenchError:
    return no_server(ConnectionError("the recording has ended"))
