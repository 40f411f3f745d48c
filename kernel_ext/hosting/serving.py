"""How a kernel reaches a project's operations: it serves the project, or is attached to the process that does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.errors import Conflict
from workbench.model import ServerInfo

if TYPE_CHECKING:
    from workbench.app import Workbench
    from workbench.shells.serve import Servers
    from workbench.state.settings import Settings

Call = Callable[[str, Mapping[str, Any], str | None, str | None], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Serving:
    """A running server of the project.

    Args:
        info: the server.
        operator_token: the operator's token.
        call: runs an operation by its name, with its arguments, as the agent whose token it gets, or else as the
            operator, for one of several people.
        workbench: the open project, if this kernel serves it; None if another process does.
        servers: what runs in this kernel; None if another process serves.
    """

    info: ServerInfo
    operator_token: str | None
    call: Call
    workbench: Workbench | None = None
    servers: Servers | None = None


async def attach(stack: AsyncExitStack, settings: Settings) -> Serving | None:
    """Attach to the process that serves the project; None if none answers."""
    from workbench.state.server_file import ServerFile

    if ServerFile(settings.server_file).load().info is None:
        return None  # without the imports of a client
    from workbench.client import HttpClient
    from workbench.client.discovery import find_server
    from workbench.client.project_server import ProjectServer

    server = await find_server(settings.server_file)
    if server is None:
        return None
    url = server.info.url
    is_away = ProjectServer(url, settings.server_file).is_away
    operator = await stack.enter_async_context(HttpClient(url, server.operator_token, is_away))

    async def call(name: str, arguments: Mapping[str, Any], token: str | None, person: str | None) -> dict[str, Any]:
        if token is None:
            return await operator.call(name, person, **arguments)
        async with HttpClient(url, token, is_away) as agent:
            return await agent.call(name, **arguments)

    return Serving(server.info, server.operator_token, call)


async def serve(
    stack: AsyncExitStack, settings: Settings, port: int | None, *, end_workers: bool, operator_token: str | None
) -> Serving | None:
    """Serve in this kernel until the stack is closed; None if another process serves the project.

    Args:
        end_workers, operator_token: see `Servers` and `Servers.start`.

    Raises:
        Unavailable: see `listen` and `open_store`. BadInput, Refused: see `Servers.start`.
    """
    from workbench.app import Workbench
    from workbench.client.address import SESSION_HEADER, session_header
    from workbench.ops import OPERATOR
    from workbench.shells.serve import Servers

    operator = replace(OPERATOR, session=session_header().get(SESSION_HEADER))
    async with AsyncExitStack() as here:
        workbench = await here.enter_async_context(Workbench.open(settings))
        servers = await here.enter_async_context(Servers(workbench, end_workers=end_workers))
        try:
            info = await servers.start(port, operator_token=operator_token)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise
            return None
        servers.end_workers = False
        stack.push_async_exit(here.pop_all())

    async def call(name: str, arguments: Mapping[str, Any], token: str | None, person: str | None) -> dict[str, Any]:
        if token is None:
            return await workbench.dispatch(replace(operator, person=person), name, arguments)
        return await workbench.dispatch(await workbench.identify(token), name, arguments)

    return Serving(info, workbench.operator_token, call, workbench, servers)
