"""`workbench mcp`: MCP on standard input and output, forwarded to the running server.

Without a token it offers registration; once a person has admitted the agent, it goes on with the
token that registering returned, and announces the new tools.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from mcp.server.lowlevel import NotificationOptions
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, SubscriptionBus, ToolsListChanged
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from workbench.client import HttpClient, no_server
from workbench.errors import WorkbenchError
from workbench.model import Level, Registration
from workbench.ops import collect
from workbench.rules import access
from workbench.server_file import ServerFile
from workbench.services import SERVICES
from workbench.settings import Settings
from workbench.shells.mcp import server as mcp

WAIT_SECONDS = 25.0


class Forwarding:
    """A backend that calls the server over HTTP, as whoever the token says.

    Args:
        news: told when an agent that waited was admitted, for clients that subscribe to that.
    """

    def __init__(self, url: str, token: str | None, news: SubscriptionBus) -> None:
        self._url = url
        self._news = news
        self._level = Level.ANONYMOUS
        self._client = HttpClient(url, token)
        self._waiting: asyncio.Task[None] | None = None

    async def level(self, ctx: mcp.Context) -> Level:
        """What the token allows now; while no server answers, what it allowed last."""
        try:
            self._level = Level[(await self._client.call("whoami"))["level"].upper()]
        except WorkbenchError as error:
            if error.code == "NOT_ASSIGNED":
                self._await_decision(ctx.session)
            if error.code != "NO_SERVER":
                self._level = Level.ANONYMOUS
        return self._level

    async def call(self, ctx: mcp.Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Forward a call; a registration's token is kept for the calls that follow."""
        result = await self._client.call(name, **arguments)
        if name == "register":
            await self.aclose()
            self._client = HttpClient(self._url, result["token"])
            self._await_decision(ctx.session)
        return result

    def _await_decision(self, session: ServerSession) -> None:
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._announce(session))

    async def _announce(self, session: ServerSession) -> None:
        """Say that there are other tools as soon as the person has decided; who lists them anew sees them."""
        status = Registration.PENDING
        with contextlib.suppress(WorkbenchError):  # whoever lists the tools next waits anew
            while status is Registration.PENDING:
                state = await self._client.call("registration_status", wait_seconds=WAIT_SECONDS)
                status = Registration(state["status"])
        if status not in access.MAY_ACT:
            return
        await self._news.publish(ToolsListChanged())
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:  # those hear only what they subscribed to
            await session.send_tool_list_changed()

    async def aclose(self) -> None:
        """Let go of the connection."""
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.gather(self._waiting, return_exceptions=True)
            self._waiting = None
        await self._client.__aexit__()


def run(settings: Settings, token: str | None) -> None:
    """Serve until standard input ends.

    Raises:
        Unavailable: ``NO_SERVER``.
    """
    known = ServerFile(settings.server_file).load()
    if known.info is None:
        raise no_server(ConnectionError(f"none runs in {settings.project}"))
    asyncio.run(_serve(known.info.url, token))


async def _serve(url: str, token: str | None) -> None:
    news = InMemorySubscriptionBus()
    backend = Forwarding(url, token, news)
    server = mcp.server(collect(SERVICES), backend, news)
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with contextlib.aclosing(backend), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, options)
