"""The WebSocket endpoints `/ws/{client_id}` and `/ws/chat`: who may connect, and how many anonymous clients at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError
from workbench.model import Level
from workbench.shells.gate import refuse
from workbench.shells.websocket.chat import ChatEndpoint
from workbench.shells.websocket.connection import WebSocketConnection
from workbench.shells.websocket.socket import Disconnected

CLIENT_ID_LENGTH = 200
WHERE = "There is no WebSocket at this path. Connect to /ws/ and a name for the connection, such as /ws/my-agent."


def routes(workbench: Workbench, most_anonymous: int) -> list[WebSocketRoute]:
    """The WebSocket endpoints of a workbench, and a coded refusal at every other path.

    Args:
        most_anonymous: how many clients of one address may neither register nor authenticate.
    """
    return [
        WebSocketRoute("/ws/chat", ChatEndpoint(workbench)),
        WebSocketRoute("/ws/{client_id}", WebSocketEndpoint(workbench, most_anonymous)),
        WebSocketRoute("/{path:path}", NoEndpoint()),
    ]


class NoEndpoint:
    """An ASGI application that refuses a WebSocket at a path where there is none."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await refuse(NotFound("NO_SUCH_ENDPOINT", WHERE), scope, receive, send)


class WebSocketEndpoint:
    """An ASGI application for WebSocket connections, which limits how many of one address are anonymous."""

    def __init__(self, workbench: Workbench, most_anonymous: int) -> None:
        self._workbench = workbench
        self._open: set[WebSocketConnection] = set()
        self._most_anonymous = most_anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = WebSocketConnection(self._workbench, scope, receive, send)
        try:
            _check_client_id(connection.client_id)
            _check_room(connection, self._open, self._most_anonymous)
        except WorkbenchError as error:
            await refuse(error, scope, receive, send)
            return
        self._open.add(connection)
        try:
            # Cancelled: uvicorn stops, and no longer waits.
            with contextlib.suppress(asyncio.CancelledError, Disconnected):
                await connection.serve()
        finally:
            self._open.discard(connection)


def _check_client_id(client_id: str) -> None:
    """Refuse a client id that is long or not printable: people read it, and each connection stores it.

    Raises:
        BadInput: ``BAD_CLIENT_ID``.
    """
    if len(client_id) > CLIENT_ID_LENGTH or not client_id.isprintable():
        raise BadInput("BAD_CLIENT_ID", f"A client id has at most {CLIENT_ID_LENGTH} characters, all printable.")


def _check_room(newcomer: WebSocketConnection, others: Iterable[WebSocketConnection], most: int) -> None:
    """Refuse an anonymous connection when its address has the most there may be.

    Raises:
        Unavailable: ``TOO_MANY_CONNECTIONS``.
    """
    if newcomer.origin.level > Level.ANONYMOUS or newcomer.origin.agent is not None:
        return
    address = newcomer.origin.address
    if sum(connection.is_anonymous and connection.origin.address == address for connection in others) >= most:
        raise Unavailable("TOO_MANY_CONNECTIONS", "The server has too many connections. Try again later.")
