"""For work that needs the servers of a project until it ends: those that run, or else some of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from workbench.client.connection import Reached
from workbench.client.lasting import LastingConnection
from workbench.errors import Conflict, WorkbenchError
from workbench.state import shares
from workbench.state.settings import Settings

if TYPE_CHECKING:
    from workbench.app import Workbench


@contextmanager
def connected(settings: Settings) -> Iterator[LastingConnection]:
    """A connection to the server of a project, which outlives that server.

    Without a server this process runs one meanwhile, which notebooks can attach to. One that stops is replaced with the
    next call.
    """
    connection = LastingConnection(settings.server_file, partial(_serving, settings))
    try:
        connection.start()
        yield connection
    finally:
        connection.stop()


async def _serving(settings: Settings, stack: AsyncExitStack) -> Reached | None:
    """A server in this process; None if another process was faster.

    What still uses the project at the end, such as a kernel that attached to it, takes the server over.
    """
    from workbench.app import Workbench  # most often a server runs, and these take long to import
    from workbench.shells.serve import Servers

    async with AsyncExitStack() as opening:
        workbench = await opening.enter_async_context(Workbench.open(settings))
        servers = await opening.enter_async_context(Servers(workbench, end_workers=False))
        share = opening.enter_context(shares.held(settings.shares))
        try:
            info = await servers.start(None)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise
            return None
        opening.callback(servers.leave, share, end_workers=False)
        opening.push_async_callback(_flush, workbench)
        stack.push_async_exit(opening.pop_all())
    return Reached(info.nonce, info.url, workbench.call)


async def _flush(workbench: Workbench) -> None:
    """Tell the person, and her collector, what came of the work: no server may be there when it would be time."""
    for name in ("flush_notifications", "flush_telemetry"):
        with suppress(WorkbenchError):
            await workbench.call(name)
