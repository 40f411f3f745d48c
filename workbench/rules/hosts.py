"""The hosts that a box may reach, by name: their patterns, and whether the addresses of a name may be dialled.

A name is resolved outside the box, once, and only an address that was checked is dialled: a name that resolves to this
machine or to its network would otherwise be a way in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self
from urllib.parse import urlsplit

from workbench.errors import BadInput

DEFAULT_PORT = 443
"""The port of a pattern of `network` that names none."""
MOST_PORTS = 64
"""The most ports that the patterns of one box may have: each is listened on."""

LOOPBACK = ("127.0.0.1", "::1")

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_NAME = 253
_EXAMPLES = (
    f"Write host:port or *.suffix:port, such as pypi.org or *.example.org:8443; without a port it is {DEFAULT_PORT}."
)
_ADDRESSES = "For an address write 192.0.2.7:5432 or [2001:db8::7]:5432."
_V4_COMPATIBLE, _V4_TRANSLATED = ip_network("::/96"), ip_network("::ffff:0:0:0/96")
_NAT64 = ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """The hosts that a text such as ``*.example.org:8443`` names.

    Args:
        text: as it was written.
        port: None: whichever.
        name: a name in lower case; with `below`, all names that end with it and a dot. Empty for addresses.
        addresses: a network, of one address or more, in place of a name.
    """

    text: str
    port: int | None
    name: str = ""
    below: bool = False
    addresses: IPNetwork | None = None

    @classmethod
    def parse(cls, text: str, port: int | None = DEFAULT_PORT) -> Self:
        """The pattern that a text is, with `port` if it names none.

        Raises:
            BadInput: ``BAD_HOST_PATTERN``.
        """
        host, named_port = _split(text.strip(), text)
        port = named_port or port
        if network := _network(host):
            return cls(text, port, addresses=network)
        below = host.startswith("*.")
        return cls(text, port, _name(host.removeprefix("*."), text), below)

    def names(self, host: str, port: int) -> bool:
        """Whether it names a host, a name or an address, at a port."""
        if self.port not in (None, port):
            return False
        if self.addresses is not None:
            address = _address(host)
            return address is not None and self.includes(address)
        return self.resembles(host)

    def resembles(self, name: str) -> bool:
        """Whether it names a host, at whatever port."""
        if self.addresses is not None:
            return False
        return name.endswith(f".{self.name}") if self.below else name == self.name

    def includes(self, address: IPAddress) -> bool:
        """Whether it names an address, at whatever port."""
        network = self.addresses
        return network is not None and network.version == address.version and address in network


@dataclass(frozen=True, slots=True)
class HostRefusal:
    """A host that a box did not reach.

    Args:
        code: one of `REMEDIES`.
        host: its name or address.
        port: None if its name was looked up only.
        why: a clause such as "its name has no address".
    """

    code: str
    host: str
    port: int | None
    why: str

    @property
    def opens(self) -> str | None:
        """The setting that opens it, if there is one."""
        return {"HOST_NOT_ALLOWED": "network", "HOST_NOT_PUBLIC": "private"}.get(self.code)

    @property
    def what(self) -> str:
        """What was refused, and why, as a sentence without its end."""
        place = self.host if self.port is None else _joined(self.host, self.port)
        return f"{self.code}: {place} cannot be reached, because {self.why}"

    @property
    def remedy(self) -> str:
        """What opens it, or else what to do."""
        return REMEDIES[self.code].format(pattern=_joined(self.host, self.port or DEFAULT_PORT))

    def __str__(self) -> str:
        """What was refused, why, and what to do, in one sentence."""
        return f"{self.what}: {self.remedy}."


REMEDIES = {
    "HOST_NOT_ALLOWED": 'the setting network opens it, with "{pattern}"',
    "HOST_NOT_PUBLIC": 'the setting private opens it, with "{pattern}"',
    "HOST_NOT_FOUND": "check how it is written, and whether this machine finds it",
    "HOST_UNREACHABLE": "check whether this machine reaches it",
    "TOO_MANY_CONNECTIONS": "the setting confinement_connections allows more",
}
"""The codes of refusals, and what is to be done."""


def not_allowed(host: str, port: int | None) -> HostRefusal:
    """The refusal of a host that no rule names."""
    return HostRefusal("HOST_NOT_ALLOWED", host, port, "it is not among the hosts of the box")


def not_found(host: str, port: int | None) -> HostRefusal:
    """The refusal of a name without addresses."""
    return HostRefusal("HOST_NOT_FOUND", host, port, "its name has no address")


def too_many(connections: int) -> HostRefusal:
    """The refusal of a connection besides so many others."""
    return HostRefusal("TOO_MANY_CONNECTIONS", "another host", None, f"there are {connections} connections")


@dataclass(frozen=True, slots=True)
class HostRules:
    """What a box may reach.

    Args:
        network: public hosts.
        private: hosts and addresses that may be reached although they are not public: at a port, or, without one,
            wherever `network` has them.
        connect: ports that are open on every host, on this machine, too; not at link-local addresses, where machines
            in a cloud find their keys.
        forward: ports of this machine.
    """

    network: tuple[HostPattern, ...] = ()
    private: tuple[HostPattern, ...] = ()
    connect: frozenset[int] = frozenset()
    forward: frozenset[int] = frozenset()
    _open: tuple[HostPattern, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_open", (*self.network, *(pattern for pattern in self.private if pattern.port)))

    @classmethod
    def parse(
        cls, network: Iterable[str], private: Iterable[str], connect: Iterable[int] = (), forward: Iterable[int] = ()
    ) -> Self:
        """Rules from texts.

        Raises:
            BadInput: ``BAD_HOST_PATTERN``.
        """
        rules = cls(
            tuple(map(HostPattern.parse, dict.fromkeys(network))),
            tuple(HostPattern.parse(text, None) for text in dict.fromkeys(private)),
            frozenset(connect),
            frozenset(forward),
        )
        if len(rules.ports) > MOST_PORTS + len(rules.connect) + len(rules.forward):
            raise BadInput(
                "BAD_HOST_PATTERN",
                f"The hosts have more than {MOST_PORTS} different ports. Name fewer.",
                most=MOST_PORTS,
            )
        return rules

    @property
    def opens_hosts(self) -> bool:
        """Whether hosts are named that may be reached."""
        return bool(self._open)

    @property
    def opens_loopback(self) -> bool:
        """Whether a host is named that is this machine."""
        return any(
            pattern.name == "localhost" or any(pattern.includes(ip_address(address)) for address in LOOPBACK)
            for pattern in self._open
        )

    @property
    def ports(self) -> frozenset[int]:
        """All ports at which something may be reached."""
        return self.connect | self.forward | {pattern.port for pattern in self._open if pattern.port}

    def permits_name(self, name: str) -> bool:
        """Whether a name may be looked up: no other leaves this machine."""
        return bool(self.connect) or any(pattern.resembles(name) for pattern in self._open)

    def permits(self, host: str, port: int) -> bool:
        """Whether a host, as it was named, may be reached at a port; its addresses are to be checked."""
        return port in self.connect or any(pattern.names(host, port) for pattern in self._open)

    def names_at(self, port: int) -> list[str]:
        """The names, but no suffixes, that may be reached at a port."""
        return [pattern.name for pattern in self._open if pattern.port == port and pattern.name and not pattern.below]

    def refuse(self, host: str, port: int, addresses: Sequence[str]) -> HostRefusal | None:
        """Why a host may not be reached at a port; None if each of its addresses may be dialled.

        One address that may not be is enough to refuse the name: who answers for it chooses which one is tried first.
        """
        if port in self.forward and _is_loopback(host):
            return None
        if not self.permits(host, port):
            return not_allowed(host, port)
        if not addresses:
            return not_found(host, port)
        closed = [address for address in addresses if not self._may_dial(host, port, ip_address(address))]
        if not closed:
            return None
        if closed == [host]:
            return HostRefusal("HOST_NOT_PUBLIC", host, port, "this address is not public")
        return HostRefusal("HOST_NOT_PUBLIC", host, port, f"it has the address {closed[0]}, which is not public")

    def refuse_name(self, name: str) -> HostRefusal | None:
        """Why a name may not be looked up; None if it may."""
        return None if self.permits_name(name) else not_allowed(name, None)

    def _may_dial(self, host: str, port: int, address: IPAddress) -> bool:
        if any(
            pattern.port in (None, port) and (pattern.resembles(host) or pattern.includes(address))
            for pattern in self.private
        ):
            return True
        if port in self.connect:
            return not any(step.is_link_local for step in _unwrapped(address))
        return public(address)


def public(address: IPAddress) -> bool:
    """Whether an address, and one written in it, belongs to the internet, not to this machine or its networks."""
    return all(
        step.is_global and not (step.is_multicast or step.is_unspecified or getattr(step, "is_site_local", False))
        for step in _unwrapped(address)
    )


def _unwrapped(address: IPAddress) -> Sequence[IPAddress]:
    """The IPv4 addresses that are written in an IPv6 address for the passage between both, or the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address.teredo:
        return address.teredo
    if address.sixtofour:
        return (address.sixtofour,)
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if any(address in network for network in (_NAT64, _V4_TRANSLATED)):
        return (low,)
    if address in _V4_COMPATIBLE and not (address.is_loopback or address.is_unspecified):
        return (low,)
    return (address,)


def as_name(host: str) -> str:
    """The form of a name that patterns are compared with: in lower case, without the dot at its end."""
    return host.lower().removesuffix(".")


def _split(text: str, written: str) -> tuple[str, int | None]:
    """Host and port of a pattern."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if closed and (rest.startswith(":") or not rest) else "?"
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, colon, port = text.partition(":")
        port = port if port or not colon else "?"
    if not host or "://" in text or "@" in text or any(char.isspace() for char in text):
        raise _bad(written, "it is an address of a page" if "://" in text else "it has no host")
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65_536):
        raise _bad(written, "its port is no number from 1 to 65535")
    return host, int(port) if port else None


def _network(host: str) -> IPNetwork | None:
    try:
        return ip_network(host)
    except ValueError:
        return None


def _address(host: str) -> IPAddress | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _name(host: str, written: str) -> str:
    try:
        name = as_name(host if host.isascii() else host.encode("idna").decode("ascii"))
    except UnicodeError:
        raise _bad(written, "its name cannot be written in the letters of domain names") from None
    labels = name.split(".")
    if "*" in name:
        raise _bad(written, "a star stands for the beginning of a name only, before a dot")
    if "/" in name:
        raise _bad(written, "it has a path, or is a network whose address has more than its bits", _ADDRESSES)
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise _bad(written, "that is no name of a host")
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        raise _bad(written, "it is neither a name nor a whole address", _ADDRESSES)
    return name


def _bad(text: str, why: str, more: str = "") -> BadInput:
    message = f"“{text}” is no pattern of hosts: {why}. {_EXAMPLES}"
    return BadInput("BAD_HOST_PATTERN", " ".join(filter(None, (message, more))), pattern=text)


def is_exposed(url: str) -> bool:
    """Whether what is sent to an address leaves this machine without encryption."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme == "http" and not (host == "localhost" or host.endswith(".localhost") or _is_loopback(host))


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_loopback


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
