"""The way to hosts outside of a box: a name is resolved here, its addresses are checked, and one of them is dialled."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address

from workbench.rules.hosts import LOOPBACK, HostRefusal, HostRules, as_name, not_found, too_many

KEPT_SECONDS = 60.0
"""How long the addresses of a name are used."""
DIAL_SECONDS = 10.0
"""How long one address may take to accept a connection."""
MOST_REFUSALS = 100
"""The refusals that are kept of one command."""
CHUNK = 1 << 16
_THREADS, _MOST_LOOKUPS, _MOST_KEPT = 4, 64, 1_000

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name; none if it has none."""

log = logging.getLogger(__name__)


class Streams:
    """Both directions of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def reset(self) -> None:
        """End the connection so that the other side sees an error, not an end."""
        with suppress(OSError):
            # Linger for no time: the peer gets a reset.
            self.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        self.writer.transport.abort()


class Unreached(Exception):
    """A host that was not reached."""

    def __init__(self, refusal: HostRefusal) -> None:
        self.refusal = refusal
        super().__init__(str(refusal))


class Outside:
    """Reaches hosts for one command, as its rules allow, and keeps what it refused in `refused`.

    Args:
        connections: how many the command has at a time; each takes two open files of this process.
    """

    def __init__(self, rules: HostRules, resolve: Resolver | None = None, connections: int = 200) -> None:
        self.rules = rules
        self.refused: dict[HostRefusal, None] = {}
        self._resolve = resolve or self._ask_system
        self._pool: ThreadPoolExecutor | None = None
        self._lookups: dict[str, asyncio.Task[Sequence[str]]] = {}
        self._kept: dict[str, tuple[float, Sequence[str]]] = {}
        self._told: set[tuple[str, int, str]] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._most_connections = connections
        self._is_closed = False

    async def exists(self, name: str) -> bool:
        """Whether a name may be looked up, and has an address."""
        name = as_name(name)
        if refusal := self.rules.refuse_name(name):
            self._keep(refusal)
            return False
        if await self.addresses(name):
            return True
        self._keep(not_found(name, None))
        return False

    async def addresses(self, name: str) -> Sequence[str]:
        """The addresses of a name that may be looked up; an address has itself."""
        if (address := _as_address(name)) is not None:
            return (address,)
        now = asyncio.get_running_loop().time()
        looked_up_at, addresses = self._kept.get(name, (0.0, ()))
        if addresses and now - looked_up_at < KEPT_SECONDS:
            return addresses
        lookup = self._lookups.get(name)
        if lookup is None:
            if len(self._lookups) >= _MOST_LOOKUPS:
                return ()
            lookup = self._lookups[name] = asyncio.create_task(self._look_up(name))
        return await asyncio.shield(lookup)

    async def _look_up(self, name: str) -> Sequence[str]:
        try:
            addresses = tuple(dict.fromkeys(await self._resolve(name, 0)))
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[name] = asyncio.get_running_loop().time(), addresses
        finally:
            del self._lookups[name]
        return addresses

    async def _ask_system(self, name: str, port: int) -> Sequence[str]:
        if self._pool is None:  # of its own: a command may ask for names that take long
            self._pool = ThreadPoolExecutor(_THREADS, "workbench-names")
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError):
            return ()
        return [str(address[0]) for *_, address in found]

    async def connect(self, host: str, port: int) -> Streams:
        """A connection to a host.

        Raises:
            Unreached: it is refused, or it does not answer.
        """
        host = as_name(host)
        if _as_address(host) is not None and not self.rules.permits(host, port):
            host = await self._name_of(host, port)
        permitted = self.rules.permits(host, port)
        addresses = await self.addresses(host) if permitted else ()
        if refusal := self.rules.refuse(host, port, addresses):
            self._keep(refusal)
            raise Unreached(refusal)
        return await self._dial(host, port, _with_other_loopback(host) or addresses)

    async def _name_of(self, address: str, port: int) -> str:
        """The name that may be reached at a port and has an address: the box's own file of hosts may know it."""
        for name in self.rules.names_at(port):
            if address in await self.addresses(name):
                return name
        return address

    async def _dial(self, host: str, port: int, addresses: Sequence[str]) -> Streams:
        failure: Exception = OSError("it has no address")
        for address in addresses:
            try:
                streams = Streams(
                    *await asyncio.wait_for(asyncio.open_connection(address, port, limit=CHUNK), DIAL_SECONDS)
                )
            except (OSError, TimeoutError) as error:
                failure = error
                continue
            if (host, port, address) not in self._told and len(self._told) < MOST_REFUSALS:
                self._told.add((host, port, address))
                log.info("a connection to %s:%s (%s)", host, port, address)
            return streams
        why = "it took too long to answer" if isinstance(failure, TimeoutError) else f"it does not answer ({failure})"
        log.info("no connection to %s:%s: %s", host, port, why)
        raise Unreached(HostRefusal("HOST_UNREACHABLE", host, port, why))

    def _keep(self, refusal: HostRefusal) -> None:
        # Programs look up a name that they did not find with the domains of this machine at its end, too.
        is_longer = refusal.port is None and any(refusal.host.startswith(f"{other.host}.") for other in self.refused)
        if refusal not in self.refused and not is_longer and len(self.refused) < MOST_REFUSALS:
            self.refused[refusal] = None
            log.warning("%s", refusal)

    async def relay(self, inner: Streams, host: str, port: int, first: bytes = b"") -> None:
        """Connect a connection from the box to a host, and pass on what both send; `first` is sent to the host before.

        Raises:
            Unreached: it is refused, or it does not answer.
        """
        outer = await self.connect(host, port)
        await self.join(inner, outer, first)

    async def join(self, inner: Streams, outer: Streams, first: bytes = b"") -> None:
        """Pass on what both sides send, until both have ended."""
        try:
            outer.writer.write(first)
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(inner, outer))
                group.create_task(_copy(outer, inner))
        except* OSError:  # a side has gone
            inner.reset()
        finally:
            for streams in (inner, outer):
                streams.writer.close()

    async def serve(self, inner: Streams, work: Callable[[Streams], Awaitable[None]]) -> None:
        """Do `work` for a connection from the box, unless there are too many, until `close`."""
        task = asyncio.current_task()
        assert task is not None
        if self._is_closed:
            inner.reset()
            return
        if len(self._connections) >= self._most_connections:
            self._keep(too_many(self._most_connections))
            inner.reset()
            return
        self._connections.add(task)
        try:
            await work(inner)
        except (OSError, Unreached, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            inner.reset()
        finally:
            self._connections.discard(task)
            inner.writer.close()

    async def close(self) -> None:
        """End all connections and lookups."""
        self._is_closed = True
        tasks = [*self._connections, *self._lookups.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


async def _copy(source: Streams, target: Streams) -> None:
    while chunk := await source.reader.read(CHUNK):
        target.writer.write(chunk)
        await target.writer.drain()
    if target.writer.can_write_eof():
        target.writer.write_eof()


def _as_address(host: str) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _with_other_loopback(host: str) -> Sequence[str]:
    """An address of loopback, and the one of the other version, where its server may listen; for others none."""
    return tuple(dict.fromkeys((host, *LOOPBACK))) if host in LOOPBACK else ()
