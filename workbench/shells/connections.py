"""The open connections of the servers, from accept to close: how many there are, and which ones are closed.

A connection *waits* until its client has sent a complete request, and again between requests unless the client has sent
a valid token; otherwise it is *served*. Waiting costs a client nothing, so when too many wait, the oldest one of the
address that has most is closed for a new one: a client that sends its request at once is always served. Of those that
are served, only idle ones are closed for others; if there is none, further requests are refused (`require_room`).

Knows no protocol. `sweep` has to be called regularly; a stall of the event loop makes no connection overdue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto

from workbench.errors import Unavailable
from workbench.state.settings import Settings

PEER = "peer"
"""The key of a request's connection in `scope["state"]`."""
KEEP_ALIVE_SECONDS = 60
"""How long a client may keep a connection without a request."""
BUFFERED_BYTES = 65_536
"""Unsent data above which a client counts as slow, and how much of it a client has to take within `stalled_seconds`."""
MIN_RESERVED_FILES = 64
SWEEPS = 10
"""How often connections are checked within their shortest time limit."""
COMPLAINT_SECONDS = 60.0
CROWDED = "more than %d connections wait for a request (max_handshakes, or the limit of open files): the oldest close"
FULL = "%d connections are served (max_connections, or the limit of open files): further requests are refused"

log = logging.getLogger(__name__)


class Stage(Enum):
    """How far the current request of a connection is."""

    CONNECTED = auto()
    """Its head is not complete."""
    RECEIVING = auto()
    """Its head is complete; the server reads its body."""
    HANDLED = auto()
    IDLE = auto()
    """The last request is answered."""


class ConnectedPeer:
    """The client of one connection.

    Attributes:
        is_known: it has sent a valid token.
        request: identifies the last request.
        sent: bytes that were sent to it.
    """

    __slots__ = (
        "_connections",
        "_gave_up",
        "_sent_before",
        "_slow_since",
        "_transport",
        "address",
        "is_known",
        "request",
        "sent",
        "since",
        "stage",
    )

    def __init__(self, connections: ServerConnections, address: str, now: float) -> None:
        self.address = address
        self.stage = Stage.CONNECTED
        self.since = now
        self.is_known = False
        self.request: object = None
        self.sent = 0
        self._connections = connections
        self._transport: asyncio.WriteTransport | None = None
        self._gave_up = False
        self._slow_since: float | None = None
        self._sent_before = 0

    @property
    def waits(self) -> bool:
        """Whether it may be closed for a new connection."""
        return self.stage in (Stage.CONNECTED, Stage.RECEIVING) or (self.stage is Stage.IDLE and not self.is_known)

    def enter(self, stage: Stage) -> None:
        """Note how far its request is."""
        self._connections.move(self, stage)

    def attach(self, transport: asyncio.WriteTransport) -> None:
        """Set its transport, as soon as there is one."""
        self._transport = transport
        if self._gave_up:
            transport.abort()

    def abort(self) -> None:
        """Close the connection at once; unsent data is lost."""
        self._gave_up = True
        self._connections.remove(self)
        if self._transport is not None:
            self._transport.abort()

    def require_room(self) -> None:
        """Refuse its request when too many others are served.

        Raises:
            Unavailable: ``TOO_MANY_CONNECTIONS``.
        """
        self._connections.require_room(self)

    @property
    def is_closing(self) -> bool:
        """Whether it is closed except for unsent data."""
        return self._transport is not None and self._transport.is_closing()

    def is_stalled(self, now: float, seconds: float, most: int) -> bool:
        """Whether its client leaves too much unsent data, or takes hardly any of it for some seconds."""
        unsent = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if unsent <= (0 if self.is_closing else BUFFERED_BYTES):
            self._slow_since = None
            return False
        if self._slow_since is None or self.sent - self._sent_before >= BUFFERED_BYTES:
            self._slow_since, self._sent_before = now, self.sent
        return unsent > most or now - self._slow_since >= seconds


class ServerConnections:
    """All connections of one server.

    Args:
        files: how many files the process may open.
    """

    def __init__(self, settings: Settings, files: int) -> None:
        self._settings = settings
        self._most_served, self._most_waiting = capacity(settings, files)
        self._peers: set[ConnectedPeer] = set()
        self._waiting: dict[str, dict[ConnectedPeer, None]] = {}
        self._waits = 0
        self._idle: dict[ConnectedPeer, None] = {}
        self._now = 0.0
        self._complained: dict[str, float] = {}

    @property
    def most_anonymous(self) -> int:
        """How many WebSockets of one address may be anonymous."""
        return min(self._settings.max_anonymous_per_address, max(self._most_served // 2, 1))

    @property
    def seconds_between_sweeps(self) -> float:
        """How often `sweep` is to be called."""
        return min(self._settings.handshake_seconds, self._settings.stalled_seconds, SWEEPS) / SWEEPS

    def add(self, address: str) -> ConnectedPeer:
        """A new connection; the oldest waiting one is closed if there are too many."""
        peer = ConnectedPeer(self, address, self._now)
        self._peers.add(peer)
        self._enqueue(peer)
        return peer

    def drop_oldest(self) -> None:
        """Close the oldest waiting connection of the address that has most."""
        if self._waiting:
            crowd = max(self._waiting.values(), key=len)
            next(iter(crowd)).abort()

    def remove(self, peer: ConnectedPeer) -> None:
        """Forget a connection that is closed. May be called twice."""
        if peer in self._peers:
            self._peers.remove(peer)
            self._idle.pop(peer, None)
            self._dequeue(peer)

    def move(self, peer: ConnectedPeer, stage: Stage) -> None:
        """Note the stage of a connection."""
        peer.stage, peer.since = stage, self._now
        if peer not in self._peers:
            return
        self._dequeue(peer)
        self._idle.pop(peer, None)
        if peer.waits:
            self._enqueue(peer)
        elif stage is Stage.IDLE:
            self._idle[peer] = None

    def require_room(self, peer: ConnectedPeer) -> None:
        """Refuse a request when too many others are served. An idle connection is closed for it, if there is one.

        Raises:
            Unavailable: ``TOO_MANY_CONNECTIONS``.
        """
        others = len(self._peers) - self._waits - (peer in self._peers and not peer.waits)
        if others - len(self._idle) >= self._most_served:
            self.complain(FULL, self._most_served)
            raise Unavailable("TOO_MANY_CONNECTIONS", "The server has too many connections. Try again later.")
        if others >= self._most_served:
            next(iter(self._idle)).abort()

    def sweep(self, elapsed: float) -> None:
        """Close overdue connections.

        Args:
            elapsed: seconds since the last call. Longer than planned: the event loop was stalled, which does not count.
        """
        self._now += min(elapsed, 2 * self.seconds_between_sweeps)
        stalled_seconds, most = self._settings.stalled_seconds, self._settings.max_unsent_bytes
        for peer in list(self._peers):
            if self._now - peer.since >= self._patience(peer) or peer.is_stalled(self._now, stalled_seconds, most):
                peer.abort()

    def close(self, which: Callable[[ConnectedPeer], bool] = lambda _: True) -> None:
        """Close connections at once; by default all of them."""
        for peer in list(self._peers):
            if which(peer):
                peer.abort()

    def complain(self, what: str, *values: object) -> None:
        """Log that a limit is reached, at most once a minute."""
        if self._now - self._complained.get(what, -COMPLAINT_SECONDS) >= COMPLAINT_SECONDS:
            self._complained[what] = self._now
            log.warning(what, *values)

    def _patience(self, peer: ConnectedPeer) -> float:
        """How long a connection may be in its stage."""
        match peer.stage:
            case Stage.CONNECTED | Stage.RECEIVING:
                return self._settings.handshake_seconds
            case Stage.IDLE:
                return KEEP_ALIVE_SECONDS + self._settings.handshake_seconds
        return float("inf")

    def _enqueue(self, peer: ConnectedPeer) -> None:
        self._waiting.setdefault(peer.address, {})[peer] = None
        self._waits += 1
        if self._waits > self._most_waiting:
            self.drop_oldest()
            self.complain(CROWDED, self._most_waiting)

    def _dequeue(self, peer: ConnectedPeer) -> None:
        crowd = self._waiting.get(peer.address, {})
        if peer not in crowd:
            return
        del crowd[peer]
        self._waits -= 1
        if not crowd:
            del self._waiting[peer.address]


def capacity(settings: Settings, files: int) -> tuple[int, int]:
    """How many connections may be served, and how many may wait, with so many files.

    A quarter of the files is left to everything else: the store, git, workers, a kernel's own sockets.
    """
    room = max(files - max(files // 4, MIN_RESERVED_FILES), 2)
    waiting = min(settings.max_handshakes, max(room // 4, 1))
    return min(settings.max_connections, room - waiting), waiting
