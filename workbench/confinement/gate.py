"""The gate of a box, in the process that supervises it: what a command reaches outside, it reaches through here.

With a network of its own, the box has no way to any other. Its launcher makes listeners in that network, and hands
them to this process, which asks for each connection which name was meant: names are looked up here, too, and each has
an address of its own in the box. So programs need not know of it. Without one, there is a proxy; see `proxy`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self

from workbench.confinement.box import Box, WayOut
from workbench.confinement.name_server import NameServer
from workbench.confinement.outside import Outside, Resolver, Streams
from workbench.confinement.proxy import Proxy
from workbench.rules.hosts import HostRefusal, HostRules
from workbench.system.loop_thread import LoopThread

WATCHED_PORTS = frozenset((22, 80, 443))
"""Listened on even if no host may be reached there, to tell what was refused. No command in a box could serve them."""
_HANDED_OVER = 250
"""The most open files of one message."""
_STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


class Gate:
    """The way out of one command, from before it starts until it has ended: `async with Gate(box) as gate`.

    Start the command by `box.argv(…, way_out=gate.way_out)` with `environment` and `pass_fds`.

    Args:
        resolve: looks up names; the system's, unless a test has its own.

    Raises:
        OSError: this machine has no open files, or no ports, left. BadInput: ``BAD_HOST_PATTERN``.
    """

    def __init__(self, box: Box, resolve: Resolver | None = None) -> None:
        self.way_out = WayOut()
        self.environment: Mapping[str, str] = {}
        self._box = box
        rules = HostRules.parse(box.hosts, box.private, box.connect, box.forward)
        self._outside = Outside(rules, resolve, box.connections)
        self._names = NameServer(self._outside.exists)
        self._stack = AsyncExitStack()
        self._opening: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    @classmethod
    @contextmanager
    def beside(cls, box: Box, resolve: Resolver | None = None) -> Iterator[Self]:
        """An open gate for programs without an event loop: it works in a thread."""
        gate = cls(box, resolve)
        if not gate.is_needed:
            yield gate
            return

        async def main(opened: Callable[[None], None]) -> None:
            async with gate:
                opened(None)
                await asyncio.Event().wait()

        thread = LoopThread("workbench-gate", main, lambda: RuntimeError("the gate is closed"))
        thread.start(_STOP_SECONDS)
        try:
            yield gate
        finally:
            thread.stop(_STOP_SECONDS)

    @property
    def is_needed(self) -> bool:
        """Whether the box reaches anything by it."""
        if self._box.has_own_network:
            return bool(self._outside.rules.ports)
        return self._box.enforce and self._outside.rules.opens_hosts

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """The files that the command's launcher needs besides the usual three."""
        return () if self.way_out.hand_over is None else (self.way_out.hand_over,)

    @property
    def refused(self) -> list[HostRefusal]:
        """What was refused so far, each once."""
        return list(self._outside.refused)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._outside.close)
            if self.is_needed and self._box.has_own_network:
                self._open(stack)
            elif self.is_needed:
                await self._start_proxy(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start_proxy(self, stack: AsyncExitStack) -> None:
        proxy = Proxy(self._outside)
        stack.callback(proxy.close)
        port = await proxy.start()
        self.way_out, self.environment = WayOut(proxy=port), proxy.environment(port)

    # With a network of its own.

    def _open(self, stack: AsyncExitStack) -> None:
        ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, self._take, ours)
        stack.push_async_callback(self._close)
        stack.callback(loop.remove_reader, ours)
        ports = self._outside.rules.ports | WATCHED_PORTS
        self.way_out = WayOut(theirs.fileno(), tuple(sorted(ports)))

    def _take(self, ours: socket.socket) -> None:
        """Take the listeners that the launcher hands over."""
        loop = asyncio.get_running_loop()
        try:
            message, numbers, flags, _ = socket.recv_fds(ours, 1, _HANDED_OVER, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        if flags & socket.MSG_CTRUNC:
            log.error("some ports cannot be reached from a box: this process has no more open files (`ulimit -n`)")
        if not message:
            loop.remove_reader(ours)
        for number in numbers:
            listener = socket.socket(fileno=number)
            listener.setblocking(False)
            if listener.type == socket.SOCK_DGRAM:
                self._names.listen(listener)
            else:
                task = loop.create_task(self._serve(listener))
                self._opening.add(task)
                task.add_done_callback(self._opening.discard)

    async def _serve(self, listener: socket.socket) -> None:
        try:
            self._servers.append(await asyncio.start_server(self._accept, sock=listener))
        except BaseException:
            listener.close()
            raise

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._outside.serve(Streams(reader, writer), self._lead_out)

    async def _lead_out(self, inner: Streams) -> None:
        """Connect a connection from the box to the host that it was meant for: it is at that address in the box."""
        address, port, *_ = inner.writer.get_extra_info("sockname")
        await self._outside.relay(inner, self._names.name_of(address) or address, port)

    async def _close(self) -> None:
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        for server in self._servers:
            server.close()
        self._names.close()
