"""Accepts the connections of a listening socket, and counts their descriptors until they are closed.

asyncio's own accept loop cannot refuse a connection, and when the process has no descriptors left it reports that, and
schedules itself anew, once for every connection it may accept in a row (CPython before 3.13).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from workbench.shells.connections import ConnectedPeer, ServerConnections

AT_ONCE = 32
"""Connections accepted before others are served."""
RETRY_SECONDS = 0.1
"""Pause when the system has no descriptors or memory for a connection."""
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger(__name__)

Protocol = Callable[[ConnectedPeer], asyncio.Protocol]


class Acceptor:
    """Accepts connections from `start` to `close`, in the running loop.

    Args:
        protocol: creates the protocol of a connection.
    """

    def __init__(self, bound: socket.socket, connections: ServerConnections, protocol: Protocol) -> None:
        self._bound = bound
        self._connections = connections
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._beginning: set[asyncio.Task[None]] = set()
        self._swept = self._loop.time()

    def start(self) -> None:
        """Accept connections from now on."""
        self._bound.setblocking(False)
        self._listen()
        self._sweep_later()

    def close(self) -> None:
        """Accept no more connections, and close the listening socket. Open connections remain until `end`."""
        self._loop.remove_reader(self._bound)
        if retry := self._timers.pop(self._listen, None):
            retry.cancel()
        self._bound.close()

    async def end(self) -> None:
        """Close all connections at once."""
        for timer in self._timers.values():
            timer.cancel()
        self._connections.close()
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _listen(self) -> None:
        self._loop.add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = self._bound.accept()
            except OSError as error:  # among others: none is left, or its client has left already
                if error.errno in EXHAUSTED:
                    self._pause(error)
                return
            self._begin(accepted, str(address[0]))

    def _pause(self, error: OSError) -> None:
        """Make room, and accept again after a while: the system would report the waiting connections all the time."""
        self._connections.complain("connections cannot be accepted for now: %s", error.strerror)
        for _ in range(AT_ONCE):
            self._connections.drop_oldest()
        self._loop.remove_reader(self._bound)
        self._timers[self._listen] = self._loop.call_later(RETRY_SECONDS, self._listen)

    def _begin(self, accepted: socket.socket, address: str) -> None:
        peer = self._connections.add(address)
        counted = _Counted(accepted, self._connections, peer)
        task = self._loop.create_task(self._connect(counted, peer))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _connect(self, accepted: _Counted, peer: ConnectedPeer) -> None:
        """The task's outermost handler: a connection that cannot be set up is closed."""
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: self._protocol(peer), accepted)
            peer.attach(transport)
        except Exception:
            log.exception("a connection could not be set up")
            accepted.close()

    def _sweep(self) -> None:
        self._sweep_later()
        now = self._loop.time()
        elapsed, self._swept = now - self._swept, now
        self._connections.sweep(elapsed)

    def _sweep_later(self) -> None:
        after = self._connections.seconds_between_sweeps
        self._timers[self._sweep] = self._loop.call_later(after, self._sweep)


class _Counted(socket.socket):
    """An accepted socket, which counts what is sent, and notes when it is closed."""

    def __init__(self, accepted: socket.socket, connections: ServerConnections, peer: ConnectedPeer) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._connections = connections
        self._peer = peer

    def send(self, data: Any, flags: int = 0, /) -> int:
        count = super().send(data, flags)
        self._peer.sent += count
        return count

    def sendmsg(self, *arguments: Any) -> int:
        count = super().sendmsg(*arguments)
        self._peer.sent += count
        return count

    def close(self) -> None:
        super().close()
        self._connections.remove(self._peer)
