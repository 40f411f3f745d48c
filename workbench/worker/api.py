"""The worker's calls to the server: repeated while the server is away or in trouble, also at another address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Self

from workbench.client import HttpClient, McpClient
from workbench.client.messages import no_server, not_here
from workbench.client.project_server import ProjectServer
from workbench.errors import TooMany, Unavailable, WorkbenchError
from workbench.model import ServerInfo
from workbench.worker.startup import WorkerConfig

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a call is repeated; the last one again and again."""

log = logging.getLogger(__name__)


class Api:
    """`await api.call("claim_task")`. An asynchronous context manager."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._server = ProjectServer(config.url, config.server_file)
        self._connection: _Connection
        self._closing = set[asyncio.Task[None]]()
        self._following: asyncio.Task[None]
        self.holds_task = False
        """Whether the worker holds a task: calls then wait for the next server, however long it takes to come."""

    async def __aenter__(self) -> Self:
        self._connection = _Connection(self._config.url, self._config.mcp_url, self._config.token)
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._following
        self._close_when_unused(self._connection)
        for error in await asyncio.gather(*self._closing, return_exceptions=True):
            if error is not None:
                log.warning("a connection to the server could not be closed: %r", error)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation. It is repeated while the server is away, restarting or short of something.

        The server may have a new address by then; see `WorkerConfig.server_file`. A call that another program at the
        old address has accepted is repeated at the new one. A fault inside the server is passed on after a few tries:
        it may be the request that it fails on.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when it was away for `patience_seconds`, unless no
                server runs and the worker holds a task, or when the project was removed.
        """
        now, tries = asyncio.get_running_loop().time, 0
        deadline = now() + self._config.patience_seconds
        while True:
            try:
                return await self.call_once(name, **arguments)
            except WorkbenchError as error:
                is_late = now() > deadline and not self._waits_for_server()
                if not _may_pass(error, tries) or is_late or self._server.is_gone():
                    raise
                log.warning("%s: %s; trying again", name, error.message)
            await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1
            if moved := await self._server.find():
                self._move(moved)

    async def call_once(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation, without repeating it. Only the project's server gets the token."""
        if self._server.is_away():
            raise no_server(not_here())
        return await self._connection.call(name, arguments)

    def server(self) -> str | None:
        """What identifies the running server; None if none runs, as far as the project's file tells, and another can
        come. It is always the same if there is no such file.
        """
        return self._server.nonce()

    def _waits_for_server(self) -> bool:
        return self.holds_task and self.server() is None

    async def _follow(self) -> None:
        """Use a new server as soon as there is one: another program may have taken the old address, and not answer."""
        while True:
            self._move(await self._server.moved())

    def _move(self, server: ServerInfo) -> None:
        log.info("the server is at %s now", server.url)
        replaced, mcp_url = self._connection, server.mcp_url if self._config.mcp_url else None
        self._connection = _Connection(server.url, mcp_url, self._config.token)
        replaced.abandon()
        self._close_when_unused(replaced)

    def _close_when_unused(self, connection: _Connection) -> None:
        closing = asyncio.create_task(connection.close_when_unused())
        self._closing.add(closing)


class _Connection:
    """A client of one server."""

    def __init__(self, url: str, mcp_url: str | None, token: str) -> None:
        self._client = McpClient(mcp_url, token) if mcp_url else HttpClient(url, token)
        self._calls = set[asyncio.Timeout]()
        self._unused = asyncio.Event()
        self._unused.set()

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(None) as abandoned:
                self._calls.add(abandoned)
                self._unused.clear()
                try:
                    return await self._client.call(name, **arguments)
                finally:
                    self._calls.remove(abandoned)
                    if not self._calls:
                        self._unused.set()
        except TimeoutError:
            if not abandoned.expired():  # it is the client's own
                raise
            raise Unavailable("NO_SERVER", "The server has moved.") from None

    def abandon(self) -> None:
        """Fail the calls that are under way, with ``NO_SERVER``."""
        for call in self._calls:
            call.reschedule(0)

    async def close_when_unused(self) -> None:
        await self._unused.wait()
        await self._client.__aexit__(None, None, None)


def _may_pass(error: WorkbenchError, tries: int) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, (Unavailable, TooMany)):
        return True
    return error.status == WorkbenchError.status and tries < len(RETRY_SECONDS)
