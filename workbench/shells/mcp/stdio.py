"""`workbench mcp`: MCP on standard input and output, forwarded to the running server.

Without a token it offers registration. It then uses the token that the registration returned, and announces the new
tools once a person has admitted the agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Self

from mcp.server.lowlevel import NotificationOptions
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, SubscriptionBus, ToolsListChanged
from mcp.types import SubscriptionsListenRequestParams, SubscriptionsListenResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from workbench import state_directory
from workbench.client import HttpClient, no_server
from workbench.client.discovery import find_server
from workbench.client.retry import backoff, is_temporary
from workbench.errors import WorkbenchError
from workbench.model import Level, Registration
from workbench.ops import collect
from workbench.rules import access
from workbench.services import SERVICES
from workbench.settings import Settings
from workbench.shells.mcp import server as mcp
from workbench.shells.mcp.backend import Context
from workbench.shells.mcp.guidance import guidance

WAIT_SECONDS = 25.0

log = logging.getLogger(__name__)


class Forwarding:
    """A backend that calls the server over HTTP with an agent's token. An asynchronous context manager.

    Args:
        news: carries the announcement of new tools to clients that subscribe to it.
    """

    def __init__(self, url: str, token: str | None, news: SubscriptionBus) -> None:
        self._url = url
        self._news = news
        self._listening = ListenHandler(news)
        self._level = Level.ANONYMOUS
        self._supervised = False
        self._stack = contextlib.AsyncExitStack()
        self._client = HttpClient(url, token)
        self._announcing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop_announcing()
        await self._stack.aclose()

    async def level(self, ctx: Context) -> Level:
        """The token's present level; while no server answers, the last known one."""
        try:
            me = await self._client.call("whoami")
            self._level, self._supervised = Level[me["level"].upper()], me["supervised"]
        except WorkbenchError as error:
            if error.code == "NOT_ASSIGNED":
                self._announce_later(ctx.session)
            if error.code != "NO_SERVER":
                self._level = Level.ANONYMOUS
        return self._level

    async def guidance(self, ctx: Context) -> str:
        """Instructions for the agent, as of `level`."""
        return guidance(await self.level(ctx), supervised=self._supervised)

    async def call(self, ctx: Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Forward a call. After a registration, the following calls use the token that it returned."""
        result = await self._client.call(name, **arguments)
        if name == "register":
            # Calls in progress keep the former client, which is closed at the end.
            self._client = await self._stack.enter_async_context(HttpClient(self._url, result["token"]))
            await self._stop_announcing()
            self._announce_later(ctx.session)
        return result

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Notify of new tools. Resources are left out of the acknowledgement: their changes are announced over HTTP."""
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        return await self._listening(ctx, params.model_copy(update={"notifications": wanted}))

    def _announce_later(self, session: ServerSession) -> None:
        if self._announcing is None or self._announcing.done():
            self._announcing = asyncio.create_task(self._announce(session))

    async def _stop_announcing(self) -> None:
        if self._announcing is not None:
            self._announcing.cancel()
            await asyncio.gather(self._announcing, return_exceptions=True)
            self._announcing = None

    async def _announce(self, session: ServerSession) -> None:
        """Announce the agent's tools as soon as a person has admitted it. The task's outermost handler."""
        try:
            if await self._decision() not in access.MAY_ACT:
                return
            await self._news.publish(ToolsListChanged())
            if (
                session.protocol_version not in MODERN_PROTOCOL_VERSIONS
            ):  # newer clients get only what they subscribe to
                await session.send_tool_list_changed()
        except Exception:  # the next list of tools has them anyway
            log.exception("the new tools could not be announced")

    async def _decision(self) -> Registration:
        """The status of the registration once it is decided. Waits while the server does not answer.

        Raises:
            WorkbenchError: the registration no longer exists.
        """
        pauses = backoff()
        while True:
            try:
                state = await self._client.call("registration_status", wait_seconds=WAIT_SECONDS)
            except WorkbenchError as error:
                if not is_temporary(error):
                    raise
                await asyncio.sleep(next(pauses))
                continue
            pauses = backoff()
            if (status := Registration(state["status"])) is not Registration.PENDING:
                return status


def run(settings: Settings, token: str | None) -> None:
    """Serve until standard input ends.

    Raises:
        Unavailable: ``NO_SERVER``.
    """
    asyncio.run(_serve(settings, token))


async def _serve(settings: Settings, token: str | None) -> None:
    state_directory.check(settings.project)
    found = await find_server(settings.server_file)
    if found is None:
        raise no_server(ConnectionError(f"none runs in {settings.project}"))
    news = InMemorySubscriptionBus()
    async with Forwarding(found.info.url, token, news) as backend, stdio_server() as (incoming, outgoing):
        server = mcp.server(collect(SERVICES), backend, backend.listen)
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(incoming, outgoing, options)
