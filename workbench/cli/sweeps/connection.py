"""A connection to the project for a sweep: to the server that runs, or to one that this process runs meanwhile.

Runs need a server, because their notebooks attach to it. Whoever runs it may stop it during the sweep: then the next
call finds another one, or starts one here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from workbench import shares
from workbench.client.messages import no_server
from workbench.errors import Conflict, Unavailable
from workbench.loop_thread import LoopThread
from workbench.settings import Settings

STOP_SECONDS = 15.0
PATIENCE_SECONDS = 30.0
"""How long a call waits for a server to come back."""
RETRY_SECONDS = 0.25
_AWAY = ("NO_SERVER", "SERVER_STOPPING")

Operations = Callable[[str, Mapping[str, Any]], Any]


class Connection:
    """Calls operations as the operator, in any thread; see the module."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._call: Operations | None = None
        self._thread = LoopThread("workbench-sweep-calls", self._main, lambda: no_server(ConnectionError("it ended")))

    def __call__(self, name: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Run an operation; see `workbench.sweeps.job.Call`. It must be one that can be repeated."""
        result: Mapping[str, Any] = self._thread.call(self._until_answered(name, arguments))
        return result

    def start(self) -> None:
        """Connect."""
        self._thread.start(STOP_SECONDS)

    def stop(self) -> None:
        """Disconnect, and stop what was started."""
        self._thread.stop(STOP_SECONDS)

    async def _main(self, opened: Callable[[None], None]) -> None:
        try:
            await self._connect()
            opened(None)
            await asyncio.Event().wait()
        finally:
            await self._stack.aclose()

    async def _until_answered(self, name: str, arguments: Mapping[str, Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            used = self._call
            try:
                if used is None:
                    raise no_server(ConnectionError("none runs"))
                return await used(name, arguments)
            except Unavailable as error:
                if error.code not in _AWAY or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)
            async with self._turn:
                if self._call is used:
                    await self._connect()

    async def _connect(self) -> None:
        stack, self._stack, self._call = self._stack, AsyncExitStack(), None
        await stack.aclose()
        self._call = await _attached(self._stack, self._settings) or await _serving(self._stack, self._settings)


async def _attached(stack: AsyncExitStack, settings: Settings) -> Operations | None:
    """The operations of the server that runs; None if none does."""
    from workbench.client import HttpClient
    from workbench.client.discovery import find_server

    found = await find_server(settings.server_file)
    if found is None:
        return None
    client = await stack.enter_async_context(HttpClient(found.info.url, found.operator_token))
    return lambda name, arguments: client.call(name, **arguments)


async def _serving(stack: AsyncExitStack, settings: Settings) -> Operations | None:
    """The operations of a server in this process; None if another process was faster.

    What still uses the project at the end, such as a kernel that attached to it, takes the server over.
    """
    from workbench.app import Workbench
    from workbench.shells.serve import Servers

    async with AsyncExitStack() as here:
        workbench = await here.enter_async_context(Workbench.open(settings))
        servers = await here.enter_async_context(Servers(workbench, end_workers=False))
        share = here.enter_context(shares.held(settings.shares))
        try:
            await servers.start(None)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise
            return None
        here.callback(servers.leave, share, end_workers=False)
        stack.push_async_exit(here.pop_all())
    return lambda name, arguments: workbench.call(name, **arguments)


@contextmanager
def connected(settings: Settings) -> Iterator[Connection]:
    """A connection to a project."""
    connection = Connection(settings)
    connection.start()
    try:
        yield connection
    finally:
        connection.stop()
