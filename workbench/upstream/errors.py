"""The coded errors of calls that an upstream MCP server does not answer well.

A server's text is quoted without the characters that act on a terminal, and cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from workbench.errors import Unavailable
from workbench.present.inert import inert_line
from workbench.upstream.call import ServerQuestion

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

QUOTED = 500
"""Characters of a server's text that an error quotes."""
TOO_LARGE = "the answer is larger than"
"""The words with which transports refuse an answer; a call gets them as an error of the protocol."""

_CONNECTION_CLOSED = -32000
_LOST = re.compile(r"Connection closed$|SSE stream |Reconnection failed|server answered a request with 202 Accepted$")
_SESSION_ENDED = (-32600, "Session terminated")
_EVENT_TOO_LARGE = "Server-sent event exceeded"
_OF_LIBRARY = re.compile(r"Not Found|Unauthorized|Forbidden|Server returned an error response|Unexpected content type")
_OF_TRANSPORTS = (_CONNECTION_CLOSED, -32700)


def quoted(text: str) -> str:
    """A server's text, fit to be quoted in an error."""
    return inert_line(text.strip()[:QUOTED])


def is_lost(error: MCPError) -> bool:
    """Whether an error of the protocol means that the connection is lost and must be reopened."""
    return not is_too_large(error) and (
        (error.code == _CONNECTION_CLOSED and _LOST.match(error.message) is not None)
        or (error.code, error.message) == _SESSION_ENDED
    )


def may_be_lost(error: MCPError) -> bool:
    """Whether an error of the protocol has the code of a lost connection, which servers use for others, too."""
    return not is_too_large(error) and error.code == _CONNECTION_CLOSED


def is_too_large(error: MCPError) -> bool:
    """Whether an error of the protocol means that the transport refused the answer because of its size."""
    return error.code in _OF_TRANSPORTS and (TOO_LARGE in error.message or _EVENT_TOO_LARGE in error.message)


def visits(error: MCPError) -> list[ServerQuestion]:
    """The addresses that the person has to visit before a call can be answered, as an error names them."""
    from mcp.types import URL_ELICITATION_REQUIRED

    named = error.data.get("elicitations") if isinstance(error.data, dict) else None
    if error.code != URL_ELICITATION_REQUIRED or not isinstance(named, list):
        return []
    found = [one for one in named if isinstance(one, dict) and isinstance(one.get("url"), str)]
    return [ServerQuestion(quoted(str(one.get("message") or "")), {}, one["url"]) for one in found]


def of_answer(status: int, kind: str) -> str:
    """What is wrong with an answer of HTTP that is no answer of a server; empty if it may be one.

    Args:
        kind: its media type.
    """
    match status:
        case 401 | 403:
            token = "its headers need a token, or another one"
            return f"it answers {status}: {token}, or `workbench tools servers sign-in` signs in there"
        case 404 | 405 | 410:
            return f"it answers {status}: there is no MCP server at this address, or one of the type sse"
        case _ if status >= 400:
            return f"it answers {status}"
    return "it answers with a web page, so there is no MCP server at this address" if "html" in kind else ""


def explained(text: str, answer: str) -> str:
    """The text of an error; with what is wrong with the answer of HTTP, if the text is not the server's own.

    Args:
        answer: see `of_answer`.
    """
    return f"{text} ({answer})" if answer and _OF_LIBRARY.search(text) else text


def down(server: str, reason: str) -> Unavailable:
    """``TOOL_SERVER_DOWN``."""
    return Unavailable("TOOL_SERVER_DOWN", f"The MCP server {server} cannot be used: {reason}.", server=server)


def timeout(server: str, seconds: float) -> Unavailable:
    """``TOOL_TIMEOUT``."""
    return Unavailable(
        "TOOL_TIMEOUT",
        f"The MCP server {server} did not answer within {seconds:g} s. Ask it for less, or try again later.",
        server=server,
    )


def too_large(server: str, largest: int) -> Unavailable:
    """``TOOL_RESULT_TOO_LARGE``."""
    return Unavailable(
        "TOOL_RESULT_TOO_LARGE",
        f"The answer of the MCP server {server} is larger than {largest:,} bytes. Ask it for less.",
        server=server,
    )


def invalid_answer(server: str, reason: str) -> Unavailable:
    """``TOOL_RESULT_INVALID``."""
    return Unavailable(
        "TOOL_RESULT_INVALID",
        f"The MCP server {server} sent an answer that cannot be used: {quoted(reason)}.",
        server=server,
    )


def refused(server: str, error: MCPError, answer: str = "") -> Unavailable:
    """``TOOL_SERVER_ERROR``: an error of the protocol, other than a result that is an error.

    Args:
        answer: see `of_answer`.
    """
    return Unavailable(
        "TOOL_SERVER_ERROR",
        f"The MCP server {server} answered with an error: {explained(quoted(error.message), answer) or error.code}.",
        server=server,
        rpc_code=error.code,
    )
