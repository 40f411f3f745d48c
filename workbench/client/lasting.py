"""A connection to the project's server that outlives it: the next call finds another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.client.connection import ProjectConnection, Serve
from workbench.client.messages import no_server
from workbench.errors import WorkbenchError
from workbench.system.loop_thread import LoopThread

STOP_SECONDS = 15.0
PATIENCE_SECONDS = 30.0
"""How long a call waits for a server to come back."""
RETRY_SECONDS = 0.25
KEEP_SECONDS = 1.0
"""How often a connection that can serve checks whether a server runs."""


class LastingConnection:
    """Calls operations as the operator, in any thread.

    Args:
        serve: starts a server when there is none, also while nothing is called: others need it, such as the workers of
            a cluster, which cannot start one.
    """

    def __init__(self, server_file: Path, serve: Serve | None = None) -> None:
        self._keeps = serve is not None
        self._server = ProjectConnection(server_file, serve=serve, patience=PATIENCE_SECONDS, pauses=(RETRY_SECONDS,))
        self._thread = LoopThread("workbench-calls", self._main, lambda: no_server(ConnectionError("it ended")))

    def __call__(self, name: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Run an operation; see `workbench.sweeps.job.Call`. It must be one that can be repeated."""
        return self._thread.call(self._server.call(name, **arguments))

    def start(self) -> None:
        """Connect."""
        self._thread.start(STOP_SECONDS)

    def stop(self) -> None:
        """Disconnect, and stop a server that was started."""
        self._thread.stop(STOP_SECONDS)

    async def _main(self, opened: Callable[[None], None]) -> None:
        async with self._server:
            await self._server.find()
            opened(None)
            while self._keeps:
                await asyncio.sleep(KEEP_SECONDS)
                with suppress(WorkbenchError):  # whoever calls is told
                    await self._server.call("whoami")
            await asyncio.Event().wait()
