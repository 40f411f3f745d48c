"""`workbench serve`: the same servers as in a kernel, in their own process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NoReturn

import click

from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.model import ServerInfo
from workbench.shells.serve import Servers
from workbench.shells.stderr_log import stderr_log
from workbench.state import shares
from workbench.state.settings import Settings
from workbench.system.interpreter import rare_collections
from workbench.system.loop_thread import until_one_fails
from workbench.trust.withheld import notice

LOOK_SECONDS = 1.0
"""How often it is looked whether the project is still where it was."""
LOOKS = 3
"""How often in a row it has to be away: a file system may be, for a moment."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Around = Callable[[Workbench], AbstractAsyncContextManager[None]]


def run(
    settings: Settings, port: int | None, *, end_workers: bool = False, around: Around = lambda _: nullcontext()
) -> None:
    """Serve until SIGINT or SIGTERM, also during the start; a second signal ends the process at once.

    Args:
        end_workers: see `Servers`.
        around: entered when the servers run, exited before they stop.

    Raises:
        WorkbenchError: see `Servers.start`; ``SERVER_FAILED``.
    """
    with stderr_log(), rare_collections(settings.gc_threshold):
        asyncio.run(_until_signal(_serve(settings, port, end_workers, around)))


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    serving = asyncio.create_task(work)
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        stopping.set()
        serving.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    await asyncio.wait({serving})
    if not (stopping.is_set() and serving.cancelled()):
        await serving


async def _serve(settings: Settings, port: int | None, end_workers: bool, around: Around) -> None:
    async with Workbench.open(settings) as workbench, Servers(workbench, end_workers=end_workers) as servers:
        with shares.held(settings.shares) as share:
            info = await servers.start(port)
            try:
                await _announce(workbench, info)
                async with around(workbench):
                    await until_one_fails(servers.wait(), _watch_state(workbench))
            finally:
                if note := servers.leave(share, end_workers=end_workers).note:
                    click.echo(note)


async def _watch_state(workbench: Workbench) -> NoReturn:
    """Wait until the project's state is away from its path at several looks in a row.

    Raises:
        Unavailable: ``PROJECT_MOVED``.
    """
    away = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            workbench.require_unmoved()
            away = 0
        except Unavailable:
            away += 1
            if away == LOOKS:
                raise


async def _announce(workbench: Workbench, info: ServerInfo) -> None:
    settings = workbench.settings
    click.echo(f"Workbench serves {settings.project} at {info.url} (MCP: {info.mcp_url}). Ctrl-C stops it.")
    if says := notice(settings.project):
        click.echo(says)
    if message := (await workbench.call("get_unattended_work"))["message"]:
        click.echo(message)
