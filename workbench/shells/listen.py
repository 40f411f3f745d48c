"""The listening socket of the servers: chooses its address and port, and explains failures."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator

from workbench.errors import Unavailable, WorkbenchError
from workbench.state.settings import Settings

BACKLOG = 1_024
SEARCHED_PORTS = 20
"""How many ports, starting with the preferred one, are tried before the system chooses."""
_LAST_PORT = 65_535
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that mean every interface, and the address by which local programs then reach the server."""

Address = tuple[socket.AddressFamily, str]


async def listen(settings: Settings, port: int | None, last: int | None) -> socket.socket:
    """A listening socket on the host of the settings.

    Args:
        port: the port to use, 0 for any; None: the last one, the preferred one, the next free one after it, or any.
        last: the port of the last run.

    Raises:
        Unavailable: ``PORT_TAKEN``, ``PORT_NOT_PERMITTED``, ``HOST_NOT_AVAILABLE``, ``LISTEN_FAILED``.
    """
    address = await _resolve(settings.host)
    if port is not None:
        return _bind(address, port)
    for candidate in _candidates(settings.port, last):
        try:
            return _bind(address, candidate)
        except WorkbenchError as error:
            if error.code not in ("PORT_TAKEN", "PORT_NOT_PERMITTED"):
                raise
    return _bind(address, 0)


def netloc(bound: socket.socket) -> str:
    """Host and port of a listening socket in URL form; IPv6 hosts are in brackets."""
    host, port = bound.getsockname()[:2]
    host = _EVERY_ADDRESS.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _candidates(preferred: int, last: int | None) -> Iterator[int]:
    yield last or preferred
    yield from range(preferred, min(preferred + SEARCHED_PORTS, _LAST_PORT + 1))


async def _resolve(host: str) -> Address:
    """The address of a host name or literal address; IPv4 if it has several."""
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise _host_not_available(f"The host {host!r} is unknown.") from None
    addresses = [(family, str(address[0])) for family, _, _, _, address in entries]
    return min(addresses, key=lambda address: address[0] is not socket.AF_INET)


def _bind(address: Address, port: int) -> socket.socket:
    family, host = address
    # The protocol number matters: asyncio sets TCP_NODELAY only on sockets that carry it,
    # and without it every small reply waits 40 ms for the peer's delayed acknowledgement.
    try:
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _failure(error, host, port) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _failure(error, host, port) from None
    return listener


def _failure(error: OSError, host: str, port: int) -> Unavailable:
    match error.errno:
        case errno.EADDRINUSE:
            return Unavailable(
                "PORT_TAKEN", f"Port {port} is taken by another program. Choose another, or 0 for any free port."
            )
        case errno.EACCES | errno.EPERM:
            return Unavailable(
                "PORT_NOT_PERMITTED",
                f"This user may not bind port {port}; ports below 1024 usually need more privileges. "
                "Choose another, or 0 for any free port.",
            )
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return _host_not_available(f"This machine has no address {host}.")
    return Unavailable("LISTEN_FAILED", f"{host} port {port} cannot be bound: {error.strerror}. Choose another port.")


def _host_not_available(why: str) -> Unavailable:
    return Unavailable(
        "HOST_NOT_AVAILABLE", f"{why} Set host (WORKBENCH_HOST) to 127.0.0.1, ::1 or an address of this machine."
    )
