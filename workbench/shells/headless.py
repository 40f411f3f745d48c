"""`workbench serve`: the same servers as in a kernel, in a process of their own."""

from __future__ import annotations

import asyncio
import signal

import click

from workbench.app import Workbench
from workbench.settings import Settings
from workbench.shells.serve import Servers


def run(settings: Settings, port: int | None) -> None:
    """Serve until SIGINT or SIGTERM."""
    asyncio.run(_serve(settings, port))


async def _serve(settings: Settings, port: int | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        info = await servers.start(port)
        click.echo(f"Workbench serves {settings.project} at {info.url} (MCP: {info.mcp_url}). Ctrl-C stops it.")
        await stopped.wait()
