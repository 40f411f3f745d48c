"""Notifies the clients of the MCP endpoint of changes, in both eras of the protocol.

Clients with a session are notified on the session's stream (GET) of the lists, and of the resources to which they
subscribe. Newer clients, which have no sessions, are notified of what they ask for on the stream that answers their
`subscriptions/listen`. A client is notified only of what it may read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.types import (
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.ops import Caller
from workbench.shells.mcp.addresses import locate
from workbench.shells.mcp.backend import Backend, Context, caller_of, refusing, request_of
from workbench.shells.mcp.changes import FeedChanges, WatchingClient
from workbench.shells.mcp.resources import Resources
from workbench.shells.mcp.streams import alongside, ended_for, present

MAX_STREAMS = 16
"""How many streams of `subscriptions/listen` one agent may have."""


@dataclass(frozen=True)
class McpSession:
    """A client with a session, and the way to it."""

    client: WatchingClient
    outbound: ServerSession

    async def send(self, change: ServerEvent) -> None:
        """Send a change on the session's stream; without a stream it is dropped."""
        match change:
            case ToolsListChanged():
                await self.outbound.send_tool_list_changed()
            case ResourcesListChanged():
                await self.outbound.send_resource_list_changed()
            case PromptsListChanged():
                await self.outbound.send_prompt_list_changed()
            case ResourceUpdated(uri=uri):
                await self.outbound.send_resource_updated(uri)


class Notifications:
    """The clients that are notified.

    Args:
        stopping: set when the servers are about to stop; the streams of newer clients then end.
    """

    def __init__(self, workbench: Workbench, backend: Backend, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._resources = Resources(workbench.catalogue, backend)
        self._stopping = stopping
        self._changes = FeedChanges(workbench)
        self._sessions: dict[str, McpSession] = {}
        self._streams: Counter[str] = Counter()

    # Clients with a session.

    async def note_session(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: note the session that a request opens, until it ends."""
        result = await call_next(ctx)
        connection = ctx.session._connection
        if ctx.method == "initialize" and connection.session_id is not None:
            client = WatchingClient(caller_of(ctx))
            await connection.exit_stack.enter_async_context(self._changes.noted_for(client))
            self._sessions[connection.session_id] = McpSession(client, ctx.session)
            connection.exit_stack.callback(self._sessions.pop, connection.session_id, None)
        return result

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Notify a session of a resource's changes, if its client may read the resource."""
        async with refusing(ctx):
            await self._watch(ctx, self._session(ctx).client, params.uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Notify a session of a resource's changes no longer."""
        async with refusing(ctx):
            self._session(ctx).client.unwatch(locate(params.uri))
        return EmptyResult()

    async def deliver(self, session_id: str, is_open: asyncio.Event) -> None:
        """Send a session what changes for it, as soon as its stream is open, until cancelled."""
        await is_open.wait()
        if (session := self._sessions.get(session_id)) is not None:
            await session.client.deliver(session.send)

    def _session(self, ctx: Context) -> McpSession:
        session = self._sessions.get(ctx.session._connection.session_id or "")
        if session is None:
            raise NotFound("SESSION_NOT_FOUND", "This session has ended. Open another one.")
        return session

    # Clients without a session.

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Notify a client of what it asks for until it leaves, its token becomes invalid, or the servers stop.

        The acknowledgement names what it is notified of: resources that it may not read are left out.
        """
        async with refusing(ctx):
            caller = caller_of(ctx)
            client = WatchingClient(caller)
            with self._counted(caller):
                async with self._changes.noted_for(client), present(self._workbench, caller, request_of(ctx).client):
                    granted = await self._grant(ctx, client, params)
                    return await self._stream(ctx, client, granted)

    async def _grant(
        self, ctx: Context, client: WatchingClient, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenRequestParams:
        """The request without the resources that the client may not read; it watches the others."""
        readable = []
        for uri in dict.fromkeys(params.notifications.resource_subscriptions or ()):
            try:
                await self._watch(ctx, client, uri)
            except WorkbenchError as error:
                if error.code == "TOO_MANY_SUBSCRIPTIONS":
                    raise
            else:
                readable.append(uri)
        notifications = params.notifications.model_copy(update={"resource_subscriptions": readable})
        return params.model_copy(update={"notifications": notifications})

    async def _stream(
        self, ctx: Context, client: WatchingClient, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        async with alongside(client.deliver(bus.publish), self._close_when_over(client.caller, handler)):
            return await handler(ctx, params)

    async def _close_when_over(self, caller: Caller, handler: ListenHandler) -> None:
        ends = [
            asyncio.create_task(ended_for(self._workbench, caller)),
            asyncio.create_task(self._stopping.wait()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        handler.close()

    @contextmanager
    def _counted(self, caller: Caller) -> Iterator[None]:
        """Refuse another stream when the limit is reached."""
        key = caller.agent or f"{caller.name} at {caller.address}"
        if self._streams[key] >= MAX_STREAMS:
            raise Conflict("TOO_MANY_SUBSCRIPTIONS", f"An agent may have at most {MAX_STREAMS} streams. End one first.")
        self._streams[key] += 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            self._streams += Counter()  # keep no zeros

    async def _watch(self, ctx: Context, client: WatchingClient, uri: str) -> None:
        """Watch a resource that the client may read.

        Raises:
            WorkbenchError: why it may not. Conflict: ``TOO_MANY_SUBSCRIPTIONS``.
        """
        address = locate(uri)
        client.watch(address, uri)
        try:
            await self._resources.read(ctx, uri)
        except BaseException:
            client.unwatch(address)
            raise
