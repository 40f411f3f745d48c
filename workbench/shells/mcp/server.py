"""The MCP server: its tools are the operations that a caller may use.

The list depends on the token alone. Without one it is `register` and `registration_status`; an admitted agent connects
again with its token. Old and new protocol versions are served. The low-level server is used because the operations
have their own schemas and validation.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    PaginatedRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    Tool,
    ToolAnnotations,
    UnsubscribeRequestParams,
)

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Catalogue, Op
from workbench.shells.gate import client_name
from workbench.shells.mcp.backend import Backend, Context, internal_error, protocol_error, refusing, require_first_page
from workbench.shells.mcp.progress import reported
from workbench.shells.mcp.prompts import Prompts
from workbench.shells.mcp.resources import Resources

FIRST_CHOICE = frozenset({"register", "heartbeat_and_get_tasks", "claim_task", "complete_task"})

Listen = Callable[[Context, SubscriptionsListenRequestParams], Awaitable[SubscriptionsListenResult]]

log = logging.getLogger(__name__)


class Subscriptions(Protocol):
    """The resources of which clients with a session are notified."""

    async def note_session(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: note the session that a request opens."""
        ...

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Notify the session of a resource's changes."""
        ...

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Stop that."""
        ...


def server(
    catalogue: Catalogue,
    backend: Backend,
    listen: Listen | None = None,
    subscriptions: Subscriptions | None = None,
) -> Server[Any]:
    """An MCP server whose tools are the operations of a catalogue, with their resources and prompts.

    Their descriptions are built when they are first listed, so that schemas do not delay the start.

    Args:
        listen: serves `subscriptions/listen`, by which clients without a session are notified.
        subscriptions: the resources of which the clients with a session are notified.
    """
    resources = Resources(catalogue, backend)
    prompts = Prompts(backend, resources)
    described = cache(tool)

    async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        async with refusing(ctx):
            require_first_page(params)
            level = await backend.level(ctx)
        return ListToolsResult(tools=[described(op) for op in offered(catalogue.values(), level)])

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        _introduce(ctx)
        arguments = params.arguments or {}
        op = catalogue.get(params.name)
        async with reported(ctx) if op is not None and op.waits(arguments) else nullcontext():
            return await _coded(lambda: backend.call(ctx, params.name, arguments))

    made = _Server(
        "workbench",
        version=__version__,
        title="Workbench",
        get_tool_input_schema=lambda name: None,  # else each call lists the tools first, to find schemas of headers
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=resources.on_list,
        on_list_resource_templates=resources.on_list_templates,
        on_read_resource=resources.on_read,
        on_subscribe_resource=subscriptions.subscribe if subscriptions is not None else None,
        on_unsubscribe_resource=subscriptions.unsubscribe if subscriptions is not None else None,
        on_subscriptions_listen=listen,
        on_list_prompts=prompts.on_list,
        on_get_prompt=prompts.on_get,
    )
    made.middleware.append(_guiding(backend))
    if subscriptions is not None:
        made.middleware.append(subscriptions.note_session)
    return made


class _Server(Server[Any]):
    """Announces to clients with a session that its lists can change; the library offers no other place for that."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *others: Any, **named: Any
    ) -> InitializationOptions:
        """See `Server.create_initialization_options`."""
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changing, *others, **named)


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
        if error.code == "UNKNOWN_OPERATION":
            raise protocol_error(error, INVALID_PARAMS) from None
        return _failure(error)
    except Exception:
        log.exception("a tool call failed")
        return _failure(internal_error())


def _result(data: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[_text(data)], structured_content=data)


def _failure(error: WorkbenchError) -> CallToolResult:
    """An error, as JSON in a text only: clients compare structured content, also of errors, with the output schema."""
    return CallToolResult(content=[_text({"success": False, "error": error.as_dict()})], is_error=True)


def _text(data: dict[str, Any]) -> TextContent:
    return TextContent(type="text", text=json.dumps(data, ensure_ascii=False, separators=(",", ":")))
