"""The worker's calls to the server: repeated while the server is away or in trouble, also at another address."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Self

from workbench.client import HttpClient, McpClient
from workbench.errors import TooMany, Unavailable, WorkbenchError
from workbench.server_file import ServerFile
from workbench.worker.startup import WorkerConfig

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a call is repeated; the last one again and again."""

log = logging.getLogger(__name__)


class Api:
    """`await api.call("claim_task")`. An asynchronous context manager."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._url = config.url
        self._connection: _Connection
        self._closing = set[asyncio.Task[None]]()
        self.holds_task = False
        """Whether the worker holds a task: calls then wait for the next server, however long it takes to come."""

    async def __aenter__(self) -> Self:
        self._connection = _Connection(self._config.url, self._config.mcp_url, self._config.token)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_when_unused(self._connection)
        for error in await asyncio.gather(*self._closing, return_exceptions=True):
            if error is not None:
                log.warning("a connection to the server could not be closed: %r", error)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation. It is repeated while the server is away, restarting or short of something.

        The server may have a new address by then; see `WorkerConfig.server_file`. A fault inside the server is passed
        on after a few tries: it may be the request that it fails on.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when it was away for `patience_seconds`, unless no
                server runs and the worker holds a task.
        """
        now, tries = asyncio.get_running_loop().time, 0
        deadline = now() + self._config.patience_seconds
        while True:
            try:
                return await self.call_once(name, **arguments)
            except WorkbenchError as error:
                if not _may_pass(error, tries) or (now() > deadline and not self._waits_for_server()):
                    raise
                log.warning("%s: %s; trying again", name, error.message)
            await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1
            await self._follow_server()

    async def call_once(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation, without repeating it."""
        return await self._connection.call(name, arguments)

    def between_servers(self) -> bool:
        """Whether no server runs, as far as the project's file tells, and another can come: the project exists."""
        file = self._config.server_file
        return file is not None and file.parent.is_dir() and ServerFile(file).load().info is None

    def _waits_for_server(self) -> bool:
        return self.holds_task and self.between_servers()

    async def _follow_server(self) -> None:
        """Use the server that the project's file names, if that is another one now and answers with the right nonce."""
        if self._config.server_file is None:
            return
        info = ServerFile(self._config.server_file).load().info
        if info is None or info.url == self._url:
            return
        async with HttpClient(info.url) as client:
            if await client.nonce() != info.nonce or info.url == self._url:
                return
        log.info("the server is at %s now", info.url)
        self._close_when_unused(self._connection)
        mcp_url = info.mcp_url if self._config.mcp_url else None
        self._url, self._connection = info.url, _Connection(info.url, mcp_url, self._config.token)

    def _close_when_unused(self, connection: _Connection) -> None:
        closing = asyncio.create_task(connection.close_when_unused())
        self._closing.add(closing)


class _Connection:
    """A client of one server. When it is replaced, calls that are under way are still answered."""

    def __init__(self, url: str, mcp_url: str | None, token: str) -> None:
        self._client = McpClient(mcp_url, token) if mcp_url else HttpClient(url, token)
        self._calls = 0
        self._unused = asyncio.Event()
        self._unused.set()

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        self._unused.clear()
        try:
            return await self._client.call(name, **arguments)
        finally:
            self._calls -= 1
            if not self._calls:
                self._unused.set()

    async def close_when_unused(self) -> None:
        await self._unused.wait()
        await self._client.__aexit__(None, None, None)


def _may_pass(error: WorkbenchError, tries: int) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, (Unavailable, TooMany)):
        return True
    return error.status == WorkbenchError.status and tries < len(RETRY_SECONDS)
