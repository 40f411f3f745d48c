"""The program of an MCP server in its box: it reads programs and the project, and writes to a directory of its own.

What a server's configuration opens, its box has besides: `read`, `write`, `connect`.
"""

from __future__ import annotations

import os
import tempfile
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.confinement import Box
from workbench.confinement.refusals import ONCE_STARTED, explanation
from workbench.confinement.surroundings import TOOL_SERVER
from workbench.definition_files.named_files import server_directory
from workbench.errors import BadInput, Unavailable
from workbench.ops import Ctx
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.services.processes import profiles, sandbox
from workbench.state.home import expanded
from workbench.state.settings import Settings
from workbench.system.tree_removal import remove_tree
from workbench.upstream.program_transport import ServerProgram

PORTS = (80, 443)
"""The ports that a program may connect to, besides those that the settings open for workers."""
LINK_LOCAL = ("169.254.0.0/16", "fe80::/10")
"""Where it may connect to, too: programs of cloud providers take their user's keys from there."""


@dataclass(frozen=True, slots=True)
class BoxedServer:
    """The program of a server, and its box."""

    program: ServerProgram
    box: Box

    def explain(self, lines: Iterable[str]) -> str:
        """What its box may have refused, and what opens it, by lines that it wrote; empty without a sign of it."""
        text = explanation(lines, self.box, self.program.directory)
        text = text.replace(ONCE_STARTED, "What its configuration opens counts once it is started again.")
        return text.replace("the setting confinement_", "in its configuration, ").replace("confinement_", "")


@asynccontextmanager
async def scratch(ctx: Ctx) -> AsyncIterator[Path]:
    """A directory that is removed at the end.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    try:
        directory = Path(await to_thread(tempfile.mkdtemp, prefix="workbench-"))
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"No scratch directory can be made: {error.strerror}.") from error
    try:
        yield directory
    finally:
        await ctx.local.repositories.shielded(to_thread(remove_tree, directory))


def boxed(settings: Settings, server: StdioServer, home: Path) -> BoxedServer:
    """The program of a server, confined as far as the system supports it. Blocks.

    It runs in the project if it names no directory, but a file of the project; else in its home.

    Args:
        server: with its secrets.
        home: the directory that it may write to, which is created.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``. BadInput: ``INVALID_CONFIGURATION``: it opens what no box has.
    """
    home.mkdir()
    project = settings.project
    directory = server_directory(server, project) or (project if _names_file(server, project) else home)
    visible = [entry for entry in project.iterdir() if not entry.name.startswith(".")]
    box = sandbox.box(
        settings,
        worktree=home,
        git_dir=home,
        objects=(),
        scratch=home,
        read=(*visible, *profiles.server_places(settings, server, directory), *_opened(settings, server.read)),
        write=_opened(settings, server.write),
        connect=(*PORTS, *server.connect),
        private=LINK_LOCAL,
    )
    environment = box.environment(os.environ, TOOL_SERVER) | server.env
    return BoxedServer(
        ServerProgram(
            [server.command, *server.args],
            environment,
            directory,
            _roots(server, directory, settings.project if directory == home else directory),
            box,
        ),
        box,
    )


def _roots(server: StdioServer, directory: Path, otherwise: Path) -> list[Path]:
    """The directories that its arguments name, from the one that it runs in, or else another one."""
    paths = [Path(os.path.normpath(directory / word)) for word in server.args if not word.startswith("-")]
    named = [path for path in paths if _exists(path) and path.is_dir()]
    return named or [otherwise]


def _names_file(server: StdioServer, project: Path) -> bool:
    """Whether an argument is a path in the project, such as ``server.py`` or a dot."""
    paths = (word for word in server.args if not word.startswith("-") and not Path(word).is_absolute())
    return any(word and _exists(project / word) for word in paths)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as one that is too long
        return False


def _opened(settings: Settings, places: Iterable[str]) -> list[Path]:
    """Places that a configuration opens, from the project's directory on."""
    paths = [settings.project / expanded(place) for place in places]
    for path in paths:
        if settings.home.resolve().is_relative_to(path.resolve()):
            raise BadInput(
                "INVALID_CONFIGURATION", f"{path} contains Workbench's own files. Open directories below it instead."
            )
        if not _exists(path):
            raise BadInput("INVALID_CONFIGURATION", f"{path} is opened, but does not exist. Create it, or remove it.")
    return paths
