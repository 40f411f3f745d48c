"""The MCP server: its tools are the operations that a caller may use, and the tools of the catalogue it was granted.

The list depends on the token alone. Without one it is `register` and `registration_status`; an admitted agent connects
again with its token. Old and new protocol versions are served. The low-level server is used because the operations
have their own schemas and validation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    PaginatedRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from workbench.model import Level, __version__
from workbench.ops import Caller, Catalogue, Op
from workbench.shells.gate import client_name
from workbench.shells.mcp.backend import Backend, Context, refusing, require_first_page
from workbench.shells.mcp.calls import ASKING, BY_NAME, McpCalls, ToolAnswer
from workbench.shells.mcp.progress import reported
from workbench.shells.mcp.prompts import Prompts
from workbench.shells.mcp.questions import sealed
from workbench.shells.mcp.resources import Resources
from workbench.shells.mcp.tasks import McpTasks
from workbench.shells.mcp.tools import coded, of_catalogue, of_operation, structured

Listen = Callable[[Context, SubscriptionsListenRequestParams], Awaitable[SubscriptionsListenResult]]


class ResourceSubscriptions(Protocol):
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
    tasks: McpTasks,
    listen: Listen | None = None,
    subscriptions: ResourceSubscriptions | None = None,
) -> Server[Any]:
    """An MCP server whose tools are the operations of a catalogue, with their resources and prompts.

    Their descriptions are built when they are first listed, so that schemas do not delay the start.

    Args:
        tasks: what calls that take long become.
        listen: serves `subscriptions/listen`, by which clients without a session are notified.
        subscriptions: the resources of which the clients with a session are notified.
    """
    resources = Resources(catalogue, backend)
    prompts = Prompts(backend, resources)
    calls = McpCalls(backend, tasks)
    described = cache(of_operation)

    async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        async with refusing(ctx):
            require_first_page(params)
            caller = await backend.caller(ctx)
            catalogue_tools = await backend.tools(ctx)
        operations = [described(op) for op in offered(catalogue.values(), caller)]
        return ListToolsResult(
            tools=[*operations, *(of_catalogue(tool, ctx.protocol_version) for tool in catalogue_tools)]
        )

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> ToolAnswer:
        _introduce(ctx)
        op, arguments = catalogue.get(params.name), params.arguments or {}
        asks = op is None or op.name in (BY_NAME, ASKING)
        if asks and catalogue[params.name if op else BY_NAME].permits(await backend.caller(ctx)):
            return await calls.call(ctx, params)
        async with reported(ctx) if op is not None and op.waits(arguments) else nullcontext():
            return await calls.run(ctx, lambda: coded(lambda: run(ctx, params.name, arguments)))

    async def run(ctx: Context, name: str, arguments: dict[str, Any]) -> CallToolResult:
        return structured(await backend.call(ctx, name, arguments))

    mcp_server = _Server(
        "workbench",
        version=__version__,
        title="Workbench",
        get_tool_input_schema=lambda name: None,  # else each call lists the tools first, to find schemas of headers
        on_list_tools=list_tools,
        on_list_resources=resources.on_list,
        on_list_resource_templates=resources.on_list_templates,
        on_read_resource=resources.on_read,
        on_subscribe_resource=subscriptions.subscribe if subscriptions is not None else None,
        on_unsubscribe_resource=subscriptions.unsubscribe if subscriptions is not None else None,
        on_subscriptions_listen=listen,
        on_list_prompts=prompts.on_list,
        on_get_prompt=prompts.on_get,
    )
    mcp_server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    tasks.serve(mcp_server)
    mcp_server.middleware += [_guiding(backend), sealed()]
    if subscriptions is not None:
        mcp_server.middleware.append(subscriptions.note_session)
    return mcp_server


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


def offered(ops: Iterable[Op], caller: Caller) -> list[Op]:
    """The tools offered to a caller, in a fixed order; admitted callers are not offered registration."""
    least = min(caller.level, Level.READ)
    return [op for op in ops if op.tool and least <= op.allow and op.permits(caller)]


def _introduce(ctx: Context) -> None:
    """Set the caller's client to the name that the MCP client gives itself, not that of its HTTP library."""
    if ctx.request is not None and ctx.session.client_params is not None:
        client = ctx.session.client_params.client_info
        state = ctx.request.state
        state.caller = replace(state.caller, client=client_name(f"{client.name}/{client.version}"))
