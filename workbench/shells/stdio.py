"""`workbench mcp`: MCP on standard input and output, forwarded to the running server.

Without a token it offers registration; once a person has admitted the agent, it goes on with the
token that registering returned, and announces the new tools.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from workbench.app import SERVICES
from workbench.client import HttpClient, no_server
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import collect
from workbench.server_file import ServerFile
from workbench.settings import Settings
from workbench.shells import mcp


class Forwarding:
    """A backend that calls the server over HTTP, as whoever the token says."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._token = token
        self._level: Level | None = None
        self._client = HttpClient(url, token)

    async def level(self, ctx: mcp.Context) -> Level:
        """What the token allows; asked anew until it is an admitted agent's."""
        if self._level is None:
            with contextlib.suppress(WorkbenchError):
                self._level = Level[(await self._client.call("whoami"))["level"].upper()]
        return self._level or Level.ANONYMOUS

    async def call(self, ctx: mcp.Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Forward a call; a registration's token is kept for the calls that follow."""
        result = await self._client.call(name, **arguments)
        if name == "register":
            await self._use(result["token"])
        if name == "registration_status" and self._level is None and await self.level(ctx) > Level.ANONYMOUS:
            await ctx.session.send_tool_list_changed()
        return result

    async def _use(self, token: str) -> None:
        await self.aclose()
        self._token, self._client = token, HttpClient(self._url, token)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._client.__aexit__()


def run(settings: Settings, token: str | None) -> None:
    """Serve until standard input ends.

    Raises:
        Unavailable: ``NO_SERVER``.
    """
    known = ServerFile(settings.server_file).load()
    if known.info is None:
        raise no_server(ConnectionError(f"none runs in {settings.project}"))
    asyncio.run(_serve(Forwarding(known.info.url, token)))


async def _serve(backend: Forwarding) -> None:
    server = mcp.server(collect(SERVICES), backend)
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with contextlib.aclosing(backend), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, options)
