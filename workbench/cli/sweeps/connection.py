"""A connection to the project for a sweep: to the server that runs, or to one that this process runs meanwhile.

Runs need a server, because their notebooks attach to it. Whoever runs it may stop it during the sweep: then the next
call finds another one, or starts one here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from workbench.client.connection import Reached
from workbench.errors import Conflict
from workbench.state import shares
from workbench.state.settings import Settings
from workbench.sweeps.connection import SweepConnection


@contextmanager
def connected(settings: Settings) -> Iterator[SweepConnection]:
    """A connection to a project."""
    connection = SweepConnection(settings.server_file, partial(_serving, settings))
    try:
        connection.start()
        yield connection
    finally:
        connection.stop()


async def _serving(settings: Settings, stack: AsyncExitStack) -> Reached | None:
    """A server in this process; None if another process was faster.

    What still uses the project at the end, such as a kernel that attached to it, takes the server over.
    """
    from workbench.app import Workbench
    from workbench.shells.serve import Servers

    async with AsyncExitStack() as here:
        workbench = await here.enter_async_context(Workbench.open(settings))
        servers = await here.enter_async_context(Servers(workbench, end_workers=False))
        share = here.enter_context(shares.held(settings.shares))
        try:
            info = await servers.start(None)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise
            return None
        here.callback(servers.leave, share, end_workers=False)
        stack.push_async_exit(here.pop_all())
    return Reached(info.nonce, info.url, workbench.call)
