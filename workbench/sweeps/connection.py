"""A connection to the project's server that outlives it: the next call finds another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from workbench.client import HttpClient
from workbench.client.discovery import find_server
from workbench.client.messages import no_server
from workbench.errors import AWAY, WorkbenchError
from workbench.loop_thread import LoopThread

STOP_SECONDS = 15.0
PATIENCE_SECONDS = 30.0
"""How long a call waits for a server to come back."""
RETRY_SECONDS = 0.25
KEEP_SECONDS = 1.0
"""How often one that can serve looks whether a server is there."""
_AWAY = (*AWAY, "SERVER_STOPPING", "INVALID_TOKEN")
"""Codes of a server that has ended; the last one if another one, with a token of its own, has its address."""

Operations = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
Attach = Callable[[AsyncExitStack], Awaitable[Operations | None]]
"""Finds the operations of a server, and enters what they need; None: there is no server at the moment."""


class Connection:
    """Calls operations as the operator, in any thread.

    Args:
        attach: see there.
        keeps: see that there is a server also while nothing is called, as `attach` can start one. Others need it, such
            as the workers of a cluster, which cannot.
    """

    def __init__(self, attach: Attach, keeps: bool = False) -> None:
        self._attach = attach
        self._keeps = keeps
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
            while self._keeps:
                await asyncio.sleep(KEEP_SECONDS)
                with suppress(WorkbenchError):  # whoever calls is told
                    await self._until_answered("whoami", {})
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
            except WorkbenchError as error:
                if error.code not in _AWAY or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)
            async with self._turn:
                if self._call is used:
                    await self._connect()

    async def _connect(self) -> None:
        stack, self._stack, self._call = self._stack, AsyncExitStack(), None
        await stack.aclose()
        self._call = await self._attach(self._stack)


async def attached(stack: AsyncExitStack, server_file: Path) -> Operations | None:
    """The operations of the server that a project's `server.json` names; None if it does not answer."""
    found = await find_server(server_file)
    if found is None:
        return None
    client = await stack.enter_async_context(HttpClient(found.info.url, found.operator_token))
    return lambda name, arguments: client.call(name, **arguments)
