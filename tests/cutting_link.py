"""A link between a worker and its server on another machine, which is cut and healed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self


class CuttingLink:
    """Passes on what a client and a server say, as long as it is whole. An asynchronous context manager.

    Args:
        port: of the server, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.url = ""
        self._port = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._is_silent = False
        self._remaining: dict[str, int] = {}
        self._writers = set[asyncio.StreamWriter]()
        self._passing = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for passing in self._passing:
            passing.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)
        self._abort()

    def cut(self, *, silently: bool = False) -> None:
        """Let nothing pass until `heal`.

        Args:
            silently: connections wait, as when a cable is pulled; else they are reset, and no other is made.
        """
        self._remaining.clear()
        self._is_silent = silently
        self._whole.clear()
        if not silently:
            self._abort()

    def cut_after(self, count: int, *, to_server: bool, silently: bool = False) -> None:
        """Cut it when so many more bytes have passed to the server, or from it."""
        self._is_silent = silently
        self._remaining = {"up" if to_server else "down": count}

    async def until_cut(self, seconds: float) -> None:
        """Wait for the cut of `cut_after`; if not so much has passed in that time, cut it now."""
        for _ in range(int(seconds / 0.01)):
            if not self._whole.is_set():
                return
            await asyncio.sleep(0.01)
        self.cut(silently=self._is_silent)

    def heal(self) -> None:
        """Let everything pass again: what waits, too."""
        self._whole.set()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole.is_set() and not self._is_silent:
            writer.transport.abort()
            return
        await self._whole.wait()
        there, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, to_server}
        both = (self._pass(reader, to_server, "up"), self._pass(there, writer, "down"))
        passing = {asyncio.create_task(one) for one in both}
        self._passing |= passing
        await asyncio.wait(passing)
        self._passing -= passing
        self._writers -= {writer, to_server}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if (left := self._remaining.get(way)) is not None:
                    if left <= len(data):
                        writer.write(data[:left])
                        data = data[left:]
                        self.cut(silently=self._is_silent)
                    else:
                        self._remaining[way] = left - len(data)
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
