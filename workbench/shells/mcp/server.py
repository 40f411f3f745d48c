"""The MCP server: its tools are the operations that a caller may use.

The list depends on the token alone. Without one it is `register` and `registration_status`; an admitted agent connects
again with its token. Old and new protocol versions are served. The low-level server is used because the operations
have their own schemas and validation.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler, SubscriptionBus
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Catalogue, Op
from workbench.shells.gate import client_name

FIRST_CHOICE = frozenset({"register", "heartbeat_and_get_tasks", "claim_task", "complete_task"})

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


class Backend(Protocol):
    """Where tool calls go: into this process, or over HTTP to the server."""

    async def level(self, ctx: Context) -> Level:
        """The level of a request's caller."""
        ...

    async def guidance(self, ctx: Context) -> str:
        """The instructions for a request's caller."""
        ...

    async def call(self, ctx: Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an operation for the caller of a request."""
        ...


def server(catalogue: Catalogue, backend: Backend, news: SubscriptionBus | None = None) -> Server[Any]:
    """An MCP server whose tools are the operations of a catalogue.

    Their descriptions are built when they are first listed, so that schemas do not delay the start.

    Args:
        news: announces changes of the list to clients that subscribe to them.
    """
    described = cache(tool)

    async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        level = await backend.level(ctx)
        return ListToolsResult(tools=[described(op) for op in offered(catalogue.values(), level)])

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        _introduce(ctx)
        return await _coded(lambda: backend.call(ctx, params.name, params.arguments or {}))

    made: Server[Any] = Server(
        "workbench",
        version=__version__,
        title="Workbench",
        get_tool_input_schema=lambda name: None,  # else each call lists the tools first, to find schemas of headers
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(news) if news is not None else None,
    )
    made.middleware.append(_guiding(backend))
    return made


def _guiding(backend: Backend) -> ServerMiddleware[Any]:
    """Adds the caller's instructions to the answer that begins a session, in both eras of the protocol."""

    async def guide(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            result["instructions"] = await backend.guidance(ctx)
        return result

    return guide


def offered(ops: Iterable[Op], level: Level) -> list[Op]:
    """The tools offered to a level, in a fixed order; admitted callers are not offered registration."""
    least = Level.ANONYMOUS if level is Level.ANONYMOUS else Level.READ
    return [op for op in ops if op.tool and least <= op.allow <= level]


def tool(op: Op) -> Tool:
    """An operation as an MCP tool, with hints for clients that ask before they act."""
    return Tool(
        name=op.name,
        title=op.title,
        description=op.help,
        input_schema=op.input_schema,
        output_schema=op.output_schema,
        annotations=ToolAnnotations(read_only_hint=op.reads, destructive_hint=op.destructive, open_world_hint=False),
        _meta={"anthropic/alwaysLoad": True} if op.name in FIRST_CHOICE else None,
    )


def _introduce(ctx: Context) -> None:
    """Set the caller's client to the name that the MCP client gives itself, not that of its HTTP library."""
    if ctx.request is not None and ctx.session.client_params is not None:
        client = ctx.session.client_params.client_info
        state = ctx.request.state
        state.caller = replace(state.caller, client=client_name(f"{client.name}/{client.version}"))


async def _coded(run: Callable[[], Awaitable[dict[str, Any]]]) -> CallToolResult:
    """The outermost handler: returns a result as structured content, and an error as text."""
    try:
        return _result(await run())
    except WorkbenchError as error:
        return _failure(error)
    except Exception:
        log.exception("a tool call failed")
        return _failure(WorkbenchError("INTERNAL_ERROR", "The server failed; see its log."))


def _result(data: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[_text(data)], structured_content=data)


def _failure(error: WorkbenchError) -> CallToolResult:
    """An error, as JSON in a text only: clients compare structured content, also of errors, with the output schema."""
    return CallToolResult(content=[_text({"success": False, "error": error.as_dict()})], is_error=True)


def _text(data: dict[str, Any]) -> TextContent:
    return TextContent(type="text", text=json.dumps(data, ensure_ascii=False, separators=(",", ":")))
