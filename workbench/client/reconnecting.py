"""A WebSocket that stays connected: it drives the protocol of an agent over one connection after another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, NoReturn, cast

from workbench.client.actions import GiveUp, Instructions, Outcome, Reconnect, Send
from workbench.client.address import access_header, websocket_url
from workbench.client.handshake import Phase
from workbench.client.messages import no_reply, no_server, not_here
from workbench.client.project_server import ProjectServer
from workbench.client.protocol import AgentProtocol
from workbench.client.retry import RetryPolicy
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

TOO_LARGE = 1009
OPTIONS: dict[str, Any] = {"max_size": None, "max_queue": None, "compression": None, "proxy": None, "ping_timeout": 60}
"""Messages are read as they come (`max_queue`): the last one before the server closes does not wait for a slow program.
A computation in the server's kernel may keep it from answering a ping for some seconds."""


class _ConnectionOfNoUseError(Exception):
    """See `Reconnect`."""

    def __init__(self, error: WorkbenchError) -> None:
        super().__init__(error)
        self.error = error


class ReconnectingSocket:
    """See the module.

    Args:
        client_id: names the agent to the server before it is authenticated.
        timeout: seconds that the server may take to reply to a request of the handshake.
        sent: called with the number of each request that is sent.
        settle: does the protocol's other actions, besides sending, reconnecting and giving up.
    """

    def __init__(
        self,
        server: ProjectServer,
        client_id: str,
        protocol: AgentProtocol,
        retry: RetryPolicy,
        timeout: float,
        sent: Callable[[int], None],
        settle: Callable[[Outcome], None],
    ) -> None:
        self._server = server
        self._client_id = client_id
        self._protocol = protocol
        self._retry = retry
        self._timeout = timeout
        self._sent = sent
        self._settle = settle
        self._socket: ClientConnection | None = None

    async def run(self) -> None:
        """Stay connected until that is useless. When the server moves, connect to its new address.

        Raises:
            WorkbenchError: the reason. Exception: what `settle` raised.
        """
        while True:
            connection = asyncio.create_task(self._stay_connected())
            move = asyncio.create_task(self._server.moved())
            try:
                await asyncio.wait({connection, move}, return_when=asyncio.FIRST_COMPLETED)
                if connection.done():
                    await connection  # raises why
                self._abort()
            finally:
                for task in (connection, move):
                    task.cancel()
                await asyncio.gather(connection, move, return_exceptions=True)
            await self._note_loss(ConnectionError("the server has moved"))

    async def _stay_connected(self) -> NoReturn:
        """Connect again and again to the present address.

        Raises:
            WorkbenchError: see `run`. Exception: what `settle` raised.
        """
        from websockets.asyncio.client import connect

        url = self._server.url
        connections = connect(
            f"{websocket_url(url)}/{self._client_id}",
            additional_headers=access_header(),
            process_exception=self._fatal_error,
            reconnect_delays=self._retry.pauses,
            **OPTIONS,
        )
        async with contextlib.aclosing(
            cast("AsyncGenerator[ClientConnection, None]", aiter(connections))
        ) as socket_stream:
            async for socket in socket_stream:
                failure = await self._use(socket, url)
                if (error := self._fatal_error(failure)) is not None:
                    raise error
                await asyncio.sleep(next(self._retry.pauses()))
        raise AssertionError("connections are made without end")

    async def perform(self, instructions: Instructions) -> None:
        """Do the actions that the protocol requests."""
        for instruction in instructions:
            match instruction:
                case Send():
                    await self._send(instruction)
                case Reconnect(error):
                    raise _ConnectionOfNoUseError(error)
                case GiveUp(error):
                    raise error
                case _:
                    self._settle(instruction)

    async def _send(self, frame: Send) -> None:
        """Send a frame. When the connection is broken, `_listen` notices."""
        from websockets.exceptions import ConnectionClosed

        self._sent(frame.number)
        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(frame.text)

    def _abort(self) -> None:
        """Break the connection, without waiting for a server that may not answer any more."""
        if self._socket is not None:
            self._socket.transport.abort()

    def _fatal_error(self, failure: Exception) -> Exception | None:
        """The error to give up with; None to try again, also after a failure of another program at the address."""
        return self._retry.fatal(not_here() if self._server.is_away() else failure)

    async def _use(self, socket: ClientConnection, url: str) -> Exception:
        """Use a connection to an address until it fails; the failure."""
        from websockets.exceptions import ConnectionClosed

        failure: Exception = ConnectionError("the connection was closed")
        self._socket = socket
        try:
            await self._listen(socket, url)
        except ConnectionClosed as error:
            failure = error
        except _ConnectionOfNoUseError as reason:
            failure = reason.error
        finally:
            self._socket = None
        await self._note_loss(failure)
        await socket.close()
        return failure

    async def _listen(self, socket: ClientConnection, url: str) -> None:
        """Act on each message. While the handshake awaits a reply, the server has `timeout` seconds to send one."""
        if self._server.is_away(url):  # the token is for the project's server only
            raise _ConnectionOfNoUseError(no_server(not_here()))
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await self.perform(self._protocol.connected())
                async for text in socket:
                    await self.perform(self._protocol.received(text))
                    if self._protocol.has_met_server:
                        self._retry.met()
                    limit.reschedule(clock() + self._timeout if self._protocol.handshake.awaits_reply else None)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _ConnectionOfNoUseError(no_reply(self._timeout)) from None

    async def _note_loss(self, failure: Exception) -> None:
        if self._protocol.handshake.phase in (Phase.WAITING, Phase.READY):
            self._retry.was_of_use()
        error = failure if isinstance(failure, WorkbenchError) else no_server(failure)
        too_large = getattr(getattr(failure, "rcvd", None), "code", None) == TOO_LARGE
        await self.perform(self._protocol.disconnected(error, too_large=too_large))
