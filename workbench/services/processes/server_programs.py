"""The program of an MCP server in its box: it reads programs and the project, and writes to a directory of its own."""

from __future__ import annotations

import os
import tempfile
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from workbench.confinement.surroundings import TOOL_SERVER
from workbench.definition_files.named_files import server_directory
from workbench.errors import Unavailable
from workbench.ops import Ctx
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.services.processes import profiles, sandbox
from workbench.state.settings import Settings
from workbench.system.tree_removal import remove_tree
from workbench.upstream.target import ServerProgram

PORTS = (80, 443)
"""Those that a program may connect to, besides the ones that the settings open for workers."""


@asynccontextmanager
async def scratch(ctx: Ctx) -> AsyncIterator[Path]:
    """A directory that is removed at the end.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    try:
        made = Path(await to_thread(tempfile.mkdtemp, prefix="workbench-"))
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"No scratch directory can be made: {error.strerror}.") from error
    try:
        yield made
    finally:
        await ctx.repositories.shielded(to_thread(remove_tree, made))


def boxed(settings: Settings, server: StdioServer, home: Path) -> ServerProgram:
    """The program of a server, confined as far as the system supports it. Blocks.

    Args:
        server: with its secrets.
        home: the directory that it may write to, which is created.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    home.mkdir()
    project = settings.project
    directory = server_directory(server, project) or home
    visible = [entry for entry in project.iterdir() if not entry.name.startswith(".")]
    box = sandbox.box(
        settings,
        worktree=home,
        git_dir=home,
        objects=(),
        scratch=home,
        read=(*visible, *profiles.server_places(settings, server, directory)),
        connect=PORTS,
    )
    command = box.argv([server.command, *server.args], guarded=True)
    return ServerProgram(command, box.environment(os.environ, TOOL_SERVER) | server.env, directory)
