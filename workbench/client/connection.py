"""The one way to a project's server, wherever it runs: a call finds it, follows it when it moves, or does without it.

Each call first reads which server the project's `server.json` names. Another program that answers at a former address
of the server, such as the server of another project, gets neither a token nor a call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from workbench.client.discovery import is_running
from workbench.client.http import HttpClient
from workbench.client.messages import no_server, not_here
from workbench.client.project_server import FOLLOW_SECONDS
from workbench.errors import AWAY, WorkbenchError
from workbench.state.server_file import ServerFile

HAS_ENDED = (*AWAY, "SERVER_STOPPING", "INVALID_TOKEN")
"""Error codes of a server that has ended; the last one comes from a successor with another operator token."""

Operations = Callable[..., Awaitable[dict[str, Any]]]
"""`await operations(name, **arguments)` runs an operation."""

log = logging.getLogger(__name__)


class ServerClient(Protocol):
    """A client of one server."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


class OfflineStore(Protocol):
    """Runs operations without a server; closed once there is one."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]: ...

    async def close(self, *, while_called: bool = False) -> None: ...


@dataclass(eq=False)
class Reached:
    """A server that answered, and a function that runs operations there; `is_doubted`: a call has failed since."""

    nonce: str
    url: str
    call: Operations
    is_doubted: bool = False


Serve = Callable[[AsyncExitStack], Awaitable[Reached | None]]
"""Serves the project in this process until the stack is closed; None: another process is about to serve it."""


class ProjectConnection:
    """See the module. An asynchronous context manager; everything happens on one loop.

    Without a server, a call is run in the `store`, or by the server that `serve` starts, or it waits for one.

    Args:
        file: the project's `server.json`; None: the server has the address `url`, and no other.
        url: the server's first address, so that it need not be looked up.
        token: an agent's; None: the operator's, from the file.
        connect: returns the client of a server for an address and a token.
        patience: seconds for which calls that meet no server are repeated. They are repeated once in any case.
        pauses: seconds before each repetition, the last one again and again.
    """

    def __init__(
        self,
        file: Path | None,
        url: str = "",
        token: str | None = None,
        *,
        connect: Callable[[str, str | None], ServerClient] = HttpClient,
        store: OfflineStore | None = None,
        serve: Serve | None = None,
        patience: float = 0.0,
        pauses: Sequence[float] = (0.0,),
    ) -> None:
        self._file = ServerFile(file) if file else None
        self._url = url
        self._token = token
        self._connect = connect
        self._store = store
        self._serve = serve
        self._patience = patience
        self._pauses = pauses
        self._can_do_without = bool(store or serve)
        self._here: Reached | None = None
        self._finding = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._serving = AsyncExitStack()
        self._clients = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._url:
            info = self._file.load().info if self._file else None
            await self._reach(info.nonce if info else "", self._url, self._token)
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._serving, self._clients:
            if self._store is not None:
                await self._store.close(while_called=True)

    async def hold(self, opened: Callable[[None], None]) -> None:
        """Be open until cancelled; see `LoopThread`."""
        async with self:
            opened(None)
            await asyncio.Event().wait()

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation; repeat it while there is no server, which may get another address.

        A call that the former server may have run is repeated too.

        Raises:
            WorkbenchError: what the operation raises. Unavailable: ``NO_SERVER``, ``NO_REPLY``.
        """
        clock, tries = asyncio.get_running_loop().time, 0
        deadline = clock() + self._patience
        while True:
            try:
                return await self.call_once(name, **arguments)
            except WorkbenchError as error:
                if not self._may_repeat(name, error, tries, is_late=clock() > deadline):
                    raise
            await asyncio.sleep(self._pauses[min(tries, len(self._pauses) - 1)])
            tries += 1

    async def call_once(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation, without repeating it. It is given up when the server has moved."""
        server = await self.find()
        if server is None:
            if self._store is None:
                raise no_server(not_here() if self._here else ConnectionError("none runs"))
            return await self._store.call(name, **arguments)
        task = asyncio.ensure_future(server.call(name, **arguments))
        try:
            while not (await asyncio.wait({task}, timeout=FOLLOW_SECONDS))[0]:
                if await self._find_named() not in (None, server):
                    raise no_server(ConnectionError("the server has moved"))
            return task.result()
        except WorkbenchError as error:
            server.is_doubted |= self._can_do_without and error.code in HAS_ENDED
            raise
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def find(self) -> Reached | None:
        """The server, started if necessary and possible; None if there is none at the moment.

        Raises:
            WorkbenchError: what `serve` raises.
        """
        server = await self._find_named()
        if server is not None or self._serve is None:
            return server
        async with self._starting:
            if (server := await self._find_named()) is None:
                await self._serving.aclose()
                if (server := await self._serve(self._serving)) is not None:
                    self._here = server
            return server

    def _may_repeat(self, name: str, error: WorkbenchError, tries: int, *, is_late: bool) -> bool:
        """Whether to repeat a call that has failed after `tries` repetitions."""
        return error.code in HAS_ENDED and (tries == 0 or not is_late)

    async def _find_named(self) -> Reached | None:
        """The server that the file names, if it was reached before, or answers with its nonce."""
        if self._file is None:
            return self._here
        async with self._finding:
            content, server = self._file.load(), self._here
            info = content.info
            if info is None:
                return None
            if server is not None and (server.nonce, server.url) == (info.nonce, info.url):
                server.is_doubted = server.is_doubted and not await is_running(info)
                return None if server.is_doubted else server
            if not await is_running(info):
                return None
            if self._store is not None:
                await self._store.close()
            log.info("the server is at %s now", info.url)
            return await self._reach(info.nonce, info.url, self._token or content.operator_token)

    async def _reach(self, nonce: str, url: str, token: str | None) -> Reached:
        client = await self._clients.enter_async_context(self._connect(url, token))
        self._here = Reached(nonce, url, client.call)
        return self._here
