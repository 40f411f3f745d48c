"""Addresses of servers, and the headers that a client sends to a server open to other machines."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit, urlunsplit

from workbench.errors import BadInput, Unauthenticated

SESSION_VARIABLE = "WORKBENCH_SESSION"
SESSION_HEADER = "X-Workbench-Session"
"""Names the session for the operator's requests that name none themselves."""
PERSON_HEADER = "X-Workbench-Person"
"""Names, percent-encoded, who of several makes the operator's request."""
_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def http_url(url: str) -> str:
    """The address of a server, checked.

    Raises:
        BadInput: ``BAD_URL``.
    """
    parts = _parse(url)
    if parts.scheme not in ("http", "https"):
        raise _bad_url_error(url)
    return url


def websocket_url(url: str) -> str:
    """The WebSocket endpoint of a server that may be named by its HTTP address.

    Raises:
        BadInput: ``BAD_URL``.
    """
    parts = _parse(url)
    scheme = _WEBSOCKET_SCHEMES.get(parts.scheme)
    if scheme is None:
        raise _bad_url_error(url)
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") or "/ws", "", ""))


def is_same_place(one: str, other: str) -> bool:
    """Whether two addresses, whatever their schemes and paths, are of one server.

    Raises:
        BadInput: ``BAD_URL``.
    """
    return _host_and_port(one) == _host_and_port(other)


def access_header() -> dict[str, str]:
    """The access token that a server asks of other machines, from `WORKBENCH_ACCESS_TOKEN`.

    Raises:
        Unauthenticated: see `require_token`.
    """
    token = os.environ.get("WORKBENCH_ACCESS_TOKEN")
    return {"X-Workbench-Access": require_token(token, "WORKBENCH_ACCESS_TOKEN")} if token else {}


def token_header(token: str | None) -> dict[str, str]:
    """The token of an agent, a machine or the operator.

    Raises:
        Unauthenticated: see `require_token`.
    """
    return {"Authorization": f"Bearer {require_token(token, 'The token')}"} if token else {}


def require_token(token: str, where: str) -> str:
    """A token that a header can have; it is not repeated otherwise.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    if not (token.isascii() and token.isprintable()) or " " in token:
        text = f"{where} has other characters than a token has, or more than one line. Give the token alone."
        raise Unauthenticated("INVALID_TOKEN", text)
    return token


def session_header() -> dict[str, str]:
    """The session that this process coordinates in, from `WORKBENCH_SESSION`, which the kernel of a run has."""
    session = os.environ.get(SESSION_VARIABLE, "")
    return {SESSION_HEADER: session} if session.isascii() and session.isprintable() and session else {}


def _host_and_port(url: str) -> tuple[str | None, int | None]:
    parts = _parse(url)
    return ("127.0.0.1" if parts.hostname == "localhost" else parts.hostname), parts.port


def _parse(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_fit = bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:  # such as a port that is too large
        raise _bad_url_error(url) from None
    if "@" in parts.netloc:
        raise BadInput(
            "BAD_URL", "The address of a server has no user and no password: a token says who calls. Leave them out."
        )
    if not is_fit or parts.query or parts.fragment:
        raise _bad_url_error(url)
    return parts


def _bad_url_error(url: str) -> BadInput:
    return BadInput("BAD_URL", f"{url!r} is not the address of a server. Use http://127.0.0.1:8765, for example.")
