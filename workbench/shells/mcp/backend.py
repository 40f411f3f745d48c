"""Where the calls of an MCP server go, and how their errors reach an MCP client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PaginatedRequestParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from workbench.errors import BadInput, WorkbenchError
from workbench.ops import Caller
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools.tool import ToolInfo, ToolOutcome

NOT_FOUND_OF_SESSIONS = -32002
"""The code for a resource that does not exist, in the versions with sessions; newer ones use ``INVALID_PARAMS``."""

Context = ServerRequestContext[Any, Any]

log = logging.getLogger(__name__)


class Backend(Protocol):
    """Where the requests of clients go."""

    async def caller(self, ctx: Context) -> Caller:
        """The caller of a request."""
        ...

    async def guidance(self, ctx: Context) -> str:
        """The instructions for a request's caller."""
        ...

    async def call(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings = Surroundings()
    ) -> dict[str, Any]:
        """Run an operation for the caller of a request."""
        ...

    async def tools(self, ctx: Context) -> list[ToolInfo]:
        """The tools, other than operations, that the caller of a request is offered."""
        ...

    async def call_tool(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings
    ) -> ToolOutcome:
        """Call one of them."""
        ...


def require_first_page(params: PaginatedRequestParams | None) -> None:
    """Refuse a cursor in a request for a list that has one page, so that no cursor can be from it.

    Raises:
        BadInput: ``BAD_CURSOR``.
    """
    if params is not None and params.cursor is not None:
        raise BadInput("BAD_CURSOR", "This list has only one page. Send the request without a cursor.")


def protocol_error(error: WorkbenchError, code: int, **data: Any) -> MCPError:
    """An error as a JSON-RPC error. Its data is the coded error that a tool would return, and more if given."""
    return MCPError(code, error.message, error.as_dict() | data)


def internal_error() -> WorkbenchError:
    """The error for a defect in the server."""
    return WorkbenchError("INTERNAL_ERROR", "The server failed; see its log.")


@asynccontextmanager
async def refusing(ctx: Context, **data: Any) -> AsyncIterator[None]:
    """The outermost handler of all requests but calls of tools: raises coded errors as JSON-RPC errors.

    Args:
        data: what their data has besides.
    """
    try:
        yield
    except WorkbenchError as error:
        raise protocol_error(error, _code(error, ctx.protocol_version), **data) from None
    except MCPError:
        raise
    except Exception:
        log.exception("%s failed", ctx.method)
        raise protocol_error(internal_error(), INTERNAL_ERROR) from None


def _code(error: WorkbenchError, version: str) -> int:
    if error.status == 404:
        return INVALID_PARAMS if version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_OF_SESSIONS
    return INVALID_PARAMS if error.status == 400 else INVALID_REQUEST


def caller_of(ctx: Context) -> Caller:
    """The caller that the gate has identified, for a request over HTTP."""
    caller: Caller = request_of(ctx).state.caller
    return caller


def request_of(ctx: Context) -> Request:
    """The HTTP request that carries a request."""
    assert ctx.request is not None, "streamable HTTP carries its request"
    request: Request = ctx.request
    return request
