"""Finds the user of the program at the other end of a local connection; only Linux tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

TELLS = sys.platform == "linux"
"""Whether this system tells the user of a connection."""
Endpoint = tuple[str, int]
_UID, _INODE = 7, 9
"""Fields of a line of `/proc/net/tcp`, see proc(5); a connection that its program has closed has no inode."""


def connected_user(client: Endpoint, server: Endpoint) -> int | None:
    """The user id of the program that opened a TCP connection to this process; None if unknown. Blocks.

    Args:
        client: the address and port of that program's end.
        server: those of this process's end.
    """
    for table, ends in _find_tables(client, server):
        try:
            lines = Path(table).read_text("ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            if ends in line:
                fields = line.split()
                return int(fields[_UID]) if fields[_INODE] != "0" else None
    return None


def _find_tables(client: Endpoint, server: Endpoint) -> Iterator[tuple[str, str]]:
    """The tables that may hold the connection, and its ends as they write them; IPv6 may carry IPv4."""
    try:
        addresses = [(ip_address(host), port) for host, port in (client, server)]
    except ValueError:
        return
    v4_addresses = [(_as_v4(address), port) for address, port in addresses]
    if all(address is not None for address, _ in v4_addresses):
        yield "/proc/net/tcp", " ".join(_format_end(address.packed, port) for address, port in v4_addresses if address)
    yield "/proc/net/tcp6", " ".join(_format_end(_as_v6(address).packed, port) for address, port in addresses)


def _as_v4(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped


def _as_v6(address: IPv4Address | IPv6Address) -> IPv6Address:
    return address if isinstance(address, IPv6Address) else IPv6Address(f"::ffff:{address}")


def _format_end(packed: bytes, port: int) -> str:
    """An end in the kernel's form: 32 bits at a time, in the byte order of the machine."""
    words = (int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
