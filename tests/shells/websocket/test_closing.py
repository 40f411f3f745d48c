"""A WebSocket whose connection is being closed before it is accepted, as the oldest of a crowd is."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from workbench.shells.batches import BatchingWebSockets

pytestmark = pytest.mark.anyio

REQUEST = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def test_accepting_a_closing_connection_raises_client_disconnected() -> None:
    protocols: list[BatchingWebSockets] = []
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    class Noted(BatchingWebSockets):
        async def run_asgi(self) -> None:
            protocols.append(self)
            await super().run_asgi()

    async def application(_: Any, receive: Any, send: Any) -> None:
        await receive()
        protocols[0].transport.abort()
        try:
            await send({"type": "websocket.accept"})
        except OSError as error:
            outcome.set_result(type(error).__name__)
            raise
        outcome.set_result("accepted")

    server = uvicorn.Server(uvicorn.Config(application, ws=Noted, lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(REQUEST)
        assert await outcome == "ClientDisconnected"
        assert await reader.read() == b""
        writer.close()
        server.should_exit = True
        await serving
