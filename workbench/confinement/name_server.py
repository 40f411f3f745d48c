"""Answers lookups of names in a box, from outside: by an address that stands for the name, or by "no such name".

The box has no other server of names: whichever its programs ask, the question comes here, and a name that may not be
reached never leaves this machine. Source: RFC 1035.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any

FIRST = int(IPv4Address("198.18.0.1"))
MOST_NAMES = 10_000
"""Of 198.18.0.0/15 (RFC 2544), which no network has, one address stands for each name."""

_TYPE_A, _CLASS_IN, _SECONDS = 1, 1, 60
_HEADER = struct.Struct(">6H")
_ANSWERED, _RECURSION_WANTED, _IS_RESPONSE, _OPCODE = 0x8080, 0x0100, 0x8000, 0x7800
_NO_SUCH_NAME = 3
_ROOM = socket.CMSG_SPACE(64) if hasattr(socket, "CMSG_SPACE") else 0
_PACKET_INFO, _V6_RECEIVE_PACKET_INFO, _V6_PACKET_INFO, _V6_FREE_BIND = 8, 49, 50, 78
"""``IP_PKTINFO`` and the like of Linux: which address a question was sent to, where its answer comes from, although no
interface has that address."""
_MOST_WAITING = 64
"""Further questions are dropped, and asked again by who needs them."""


class Question:
    """A question about a name.

    Raises:
        ValueError: the packet is none.
    """

    def __init__(self, packet: bytes) -> None:
        try:
            self._id, self._flags, count, *_ = _HEADER.unpack_from(packet)
            labels, at = _labels(packet, _HEADER.size)
            self._kind, self._class = struct.unpack_from(">2H", packet, at)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from error
        if count != 1 or self._flags & (_IS_RESPONSE | _OPCODE):
            raise ValueError("not one question")
        self._asked = packet[_HEADER.size : at + 4]
        self.name = ".".join(labels)

    def answer(self, address: str | None) -> bytes:
        """The packet that says which address the name has; None: there is no such name.

        A question for something else than an IPv4 address gets no answer, but not that there is no such name.
        """
        has_answer = address is not None and (self._kind, self._class) == (_TYPE_A, _CLASS_IN)
        flags = _ANSWERED | self._flags & _RECURSION_WANTED | (_NO_SUCH_NAME if address is None else 0)
        packet = _HEADER.pack(self._id, flags, 1, int(has_answer), 0, 0) + self._asked
        if not has_answer or address is None:
            return packet
        return packet + struct.pack(">3HIH4s", 0xC00C, _TYPE_A, _CLASS_IN, _SECONDS, 4, IPv4Address(address).packed)


def _labels(packet: bytes, at: int) -> tuple[list[str], int]:
    labels = []
    while length := packet[at]:
        label = packet[at + 1 : at + 1 + length]
        if length > 63 or len(label) < length or b"." in label:
            raise ValueError("a label that is none")
        labels.append(label.decode("ascii"))
        at += 1 + length
    return labels, at + 1


class NameServer:
    """Gives each name that has an address one of its own, and answers by it.

    Args:
        exists: whether a name may be reached and has an address.
    """

    def __init__(self, exists: Callable[[str], Awaitable[bool]]) -> None:
        self._exists = exists
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._servers: list[socket.socket] = []

    def name_of(self, address: str) -> str | None:
        """The name that an address stands for."""
        return self._names.get(address)

    async def address_of(self, name: str) -> str | None:
        """The address that stands for a name; None if there is no such name."""
        if name in ("localhost", "localhost.localdomain"):
            return "127.0.0.1"
        if not await self._exists(name):
            return None
        if name not in self._addresses and len(self._addresses) < MOST_NAMES:
            address = str(IPv4Address(FIRST + len(self._addresses)))
            self._addresses[name], self._names[address] = address, name
        return self._addresses.get(name)

    def listen(self, server: socket.socket) -> None:
        """Answer the questions that come to a UDP socket, until `close`, which closes it."""
        self._servers.append(server)
        if server.family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, _V6_RECEIVE_PACKET_INFO, 1)
            server.setsockopt(socket.IPPROTO_IPV6, _V6_FREE_BIND, 1)
        else:
            server.setsockopt(socket.IPPROTO_IP, _PACKET_INFO, 1)
        asyncio.get_running_loop().add_reader(server, self._receive, server)

    def _receive(self, server: socket.socket) -> None:
        try:
            packet, ancillary, _, client = server.recvmsg(4_096, _ROOM)
            question = Question(packet)
        except (OSError, ValueError):
            return
        if len(self._waiting) < _MOST_WAITING:
            task = asyncio.get_running_loop().create_task(self._reply(server, question, client, _sender(ancillary)))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _reply(
        self, server: socket.socket, question: Question, client: Any, sender: list[tuple[int, int, bytes]]
    ) -> None:
        packet = question.answer(await self.address_of(question.name.lower()))
        with suppress(OSError):  # who asked has gone
            server.sendmsg([packet], sender, 0, client)

    def close(self) -> None:
        """Answer no more."""
        for task in self._waiting:
            task.cancel()
        for server in self._servers:
            asyncio.get_running_loop().remove_reader(server)
            server.close()


def _sender(ancillary: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """What makes an answer come from the address that was asked: programs take none from another one."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _PACKET_INFO):
            asked = data[8:12]  # interface, local address, address of the packet
            return [(level, kind, bytes(4) + asked + bytes(4))]
        if (level, kind) == (socket.IPPROTO_IPV6, _V6_PACKET_INFO):
            return [(level, kind, data[:16] + bytes(4))]
    return []
