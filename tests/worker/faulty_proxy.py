"""A proxy between a worker and its server that fails, keeps silent or waits where a test wants it to."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import Literal, Self

import httpx2

Fault = Literal["STORE_FULL", "INTERNAL_ERROR", "dropped", "garbled", "silent"]
"""Error codes are answered as such; a request that is dropped or gets no answer does not reach the server."""
STATUS = {"STORE_FULL": 503, "INTERNAL_ERROR": 500}


class FaultyProxy:
    """Passes operations on to a server, one request at a time for each connection. An asynchronous context manager."""

    def __init__(self, server_url: str) -> None:
        self.url = ""
        self.passed: Counter[str] = Counter()
        """How many calls of each operation the server has answered."""
        self.failed: Counter[str] = Counter()
        self.arrived = asyncio.Event()
        """Set when a call arrives that is held."""
        self._server_url = server_url
        self._faults: dict[str, Fault] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._serving = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(base_url=self._server_url, trust_env=False)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._http.aclose()

    def fail(self, operation: str, fault: Fault) -> None:
        """Let an operation fail until `mend`."""
        self._faults[operation] = fault

    def mend(self, operation: str) -> None:
        """Pass an operation on again."""
        del self._faults[operation]

    def hold(self, operation: str) -> None:
        """Let calls of an operation wait for `release`; one that its client gives up does not reach the server."""
        self._held[operation] = asyncio.Event()

    def release(self, operation: str) -> None:
        """Pass on what waits, and what comes."""
        self._held.pop(operation).set()

    async def until(self, counted: Counter[str], operation: str, more: int) -> None:
        """Return when so many more calls have been counted."""
        goal = counted[operation] + more
        while counted[operation] < goal:
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._requests(reader, writer))
        self._serving.add(serving)
        await asyncio.wait({serving})
        writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, httpx2.HTTPError):
            while await self._one_request(reader, writer):
                pass

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False: the connection is dropped."""
        request_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = request_line.split()[1]
        operation = path.rpartition("/")[2]
        if operation in self._held and not await self._wait(operation, reader):
            return False
        if fault := self._faults.get(operation):
            self.failed[operation] += 1
            return await self._answer_fault(fault, reader, writer)
        answer = await self._http.post(path, content=body, headers={"Authorization": headers["authorization"]})
        self.passed[operation] += 1
        await _write(writer, answer.status_code, answer.content)
        return True

    async def _wait(self, operation: str, reader: asyncio.StreamReader) -> bool:
        """Wait for the release; False: the client has gone away."""
        released = asyncio.create_task(self._held[operation].wait())
        left = asyncio.create_task(reader.read(1))
        self.arrived.set()
        await asyncio.wait({released, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        with suppress(asyncio.CancelledError):
            await left
        return released.done()

    async def _answer_fault(self, fault: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if fault == "dropped":
            return False
        if fault == "silent":
            await reader.read(1)  # until the client goes away
            return False
        if fault == "garbled":
            await _write(writer, 200, b"[]")
            return True
        status = STATUS[fault]
        error = {"code": fault, "message": "As the test wants it.", "status": status, "details": {}}
        await _write(writer, status, json.dumps({"success": False, "error": error}).encode())
        return True


async def _write(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
