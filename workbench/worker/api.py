"""The worker's line to the server: calls that outlive a server that restarts, also at another address."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any, Self

from workbench.client import HttpClient, McpClient
from workbench.errors import WorkbenchError
from workbench.server_file import ServerFile
from workbench.worker.startup import WorkerConfig

RECONNECT_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)

log = logging.getLogger(__name__)


class Api:
    """`await line.call("claim_task")`. An asynchronous context manager."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._url = config.url
        self._mcp_url = config.mcp_url
        self._stack = AsyncExitStack()
        self._client: HttpClient | McpClient

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation; a server that is away is waited for, and looked for where another runs by now.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when the worker's patience is at its end.
        """
        now = asyncio.get_running_loop().time
        waits, patience = iter(RECONNECT_SECONDS), now() + self._config.patience_seconds
        while True:
            try:
                return await self._client.call(name, **arguments)
            except WorkbenchError as error:
                if error.code not in ("NO_SERVER", "STORE_BUSY") or now() > patience:
                    raise
                log.warning("%s; trying again", error.message)
            await asyncio.sleep(next(waits, RECONNECT_SECONDS[-1]))
            await self._look_elsewhere()

    async def once(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation; nothing is waited for."""
        return await self._client.call(name, **arguments)

    async def _look_elsewhere(self) -> None:
        """Go over to the server that the project's file names by now, if it is another and answers as that."""
        if self._config.server_file is None:
            return
        info = ServerFile(self._config.server_file).load().info
        if info is None or info.url == self._url:
            return
        async with HttpClient(info.url) as stranger:
            if await stranger.nonce() != info.nonce:
                return
        log.info("the server is at %s now", info.url)
        self._url, self._mcp_url = info.url, info.mcp_url if self._mcp_url else None
        await self._stack.aclose()
        await self._connect()

    async def _connect(self) -> None:
        self._stack = AsyncExitStack()
        client = (
            McpClient(self._mcp_url, self._config.token) if self._mcp_url else HttpClient(self._url, self._config.token)
        )
        self._client = await self._stack.enter_async_context(client)
