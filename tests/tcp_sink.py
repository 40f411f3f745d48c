"""Another program at an address where a server was, or is said to be."""

from __future__ import annotations

import asyncio


class TcpSink:
    """A server that is not the project's, and keeps what it receives."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.answer = b'{"nonce": "no"}'
        self.received = b""
        self.asked = asyncio.Event()
        self.holds_calls = False
        self.held = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> TcpSink:
        self._server = await asyncio.start_server(self._receive, "127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read(10_000)
        self.received += request
        self.asked.set()
        if self.holds_calls and request.startswith(b"POST"):
            self.held.set()
            await reader.read()  # until its client gives up
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.answer)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + self.answer)
        await writer.drain()
        writer.close()
