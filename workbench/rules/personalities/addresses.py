"""How a node is called, and where the traits of a profile may be called: only where its node itself answers.

A profile can name any address. Calls go to the origin (scheme, host and port) of the node's own endpoints, so that no
profile makes another node send requests to a third party.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

PORTS = {"http": 80, "https": 443}
CALL = "/tools/call/"
MARK_LENGTH = 6
_NOT_PLAIN = frozenset("?#\\")


def endpoint(base_url: str | None, mcp_url: str | None) -> str | None:
    """`mcp_url` without a slash at its end, if it has the origin of `base_url`; else None."""
    if base_url is None or mcp_url is None:
        return None
    origin = _origin(base_url)
    return mcp_url.rstrip("/") if origin is not None and _origin(mcp_url) == origin else None


def is_plain(url: str) -> bool:
    """Whether an address is one of HTTP with nothing but host, port and path: what is added to it is only a path."""
    return url.isprintable() and " " not in url and _origin(url) is not None


def node_label(rid: str) -> str:
    """A node for people: the name that it gave itself, with the beginning of the hash of its key: ``field·830c0d``."""
    name, _, key = rid.rpartition(":")[2].rpartition("+")
    return f"{name}·{key[:MARK_LENGTH]}" if name else rid


def call_path(trait: str) -> str:
    """Where a trait is called, below `endpoint`."""
    return CALL + quote(trait, safe="")


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None if it is no plain address of HTTP: with a user, a query or a fragment."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    is_plain = parts.scheme in PORTS and "@" not in parts.netloc and _NOT_PLAIN.isdisjoint(url)
    if not is_plain or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, PORTS[parts.scheme] if port is None else port
