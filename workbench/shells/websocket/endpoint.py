"""The WebSocket endpoint `/ws/{client_id}`: who may connect, and how many at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.model import Level
from workbench.shells.gate import refuse
from workbench.shells.websocket.connection import Connection
from workbench.shells.websocket.socket import Disconnected

CLIENT_ID_LENGTH = 200
BROKEN_TEXT = "Invalid UTF-8 sequence received from client."
"""What uvicorn logs, with a traceback, when a client's text is not UTF-8."""


def route(workbench: Workbench) -> WebSocketRoute:
    """The WebSocket endpoint of a workbench."""
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_record)
    return WebSocketRoute("/ws/{client_id}", Endpoint(workbench))


def _is_worth_a_record(record: logging.LogRecord) -> bool:
    """Drop records about clients that break the protocol: they are closed with 1007, and nothing failed here."""
    return record.msg != BROKEN_TEXT


class Endpoint:
    """An ASGI application for WebSocket connections, which limits how many are open."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._open: set[Connection] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Connection(self._workbench, scope, receive, send)
        try:
            _check_client_id(connection.client_id)
            _check_room(connection, self._open, self._workbench.settings.max_connections)
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


def _check_room(newcomer: Connection, others: Iterable[Connection], most: int) -> None:
    """Refuse a connection over the limit; anonymous clients of one address may use at most half of it.

    Raises:
        Unavailable: ``TOO_MANY_CONNECTIONS``.
    """
    there = list(others)
    address = newcomer.origin.address
    anonymous = [other for other in there if other.is_anonymous and other.origin.address == address]
    is_anonymous = newcomer.origin.level is Level.ANONYMOUS and newcomer.origin.agent is None
    if len(there) >= most or (is_anonymous and len(anonymous) >= max(most // 2, 1)):
        raise Unavailable("TOO_MANY_CONNECTIONS", "The server has too many connections. Try again later.")
