"""The configuration of a worker process: its worktree, profile, token, limits and sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from workbench.confinement import Box, BoxLimits
from workbench.drivers import AgentSetup
from workbench.ops import Ctx
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.profile import Profile
from workbench.services.processes import profiles, sandbox
from workbench.services.processes.sandbox import Confinement
from workbench.services.spawning.request import SpawnRequest
from workbench.state.home import expanded
from workbench.worker.startup import WorkerConfig, WorktreePlace


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """The values that a worker gets at one start.

    Args:
        token: its new token.
        scratch: its scratch directory.
        environment: variables for its commands.
        definition: its definition as it is now.
        models: the providers that the gateway answers for; their keys are in none of these.
    """

    token: str = field(repr=False)
    scratch: Path
    environment: Mapping[str, str] = field(repr=False)
    confinement: Confinement
    definition: AgentSetup | None
    models: tuple[str, ...] = ()


def worker_config(
    ctx: Ctx, request: SpawnRequest, place: WorktreePlace | None, borrowed: Sequence[Path], start: WorkerStart
) -> WorkerConfig:
    """Build the configuration of a worker. Blocks."""
    assert ctx.server is not None, "it needs the server"
    settings, profile = ctx.settings, profiles.load(ctx.settings, request.profile)
    return WorkerConfig(
        url=ctx.server.url,
        token=start.token,
        scratch=start.scratch,
        box=_box(ctx, profile, place, borrowed, start),
        project=settings.project,
        profile=profile,
        agent_mcp_url=ctx.server.mcp_url,
        worktree=place,
        definition=start.definition,
        models=start.models,
        function=request.function,
        task_id=request.task_id,
        limits=BoxLimits(**request.limits.model_dump()),
        environment=start.environment,
        secret_variables=request.secret,
        missing=start.confinement.missing,
        mcp_url=ctx.server.mcp_url if request.mcp else None,
        server_file=settings.server_file,
        heartbeat_seconds=settings.heartbeat_seconds,
        patience_seconds=settings.worker_patience_seconds,
        grace_seconds=settings.terminate_grace_seconds / 4,
        finish_grace_seconds=settings.finish_grace_seconds,
        import_bytes=settings.max_import_bytes,
    )


async def borrowed(ctx: Ctx, place: WorktreePlace | None) -> Sequence[Path]:
    """The object directories that a worktree's repository borrows from, wherever the project is now."""
    if place is None:
        return ()
    repository = await ctx.repositories.open()
    await asyncio.to_thread(repository.anchor_worktree, place.path, place.git_dir)
    return await asyncio.to_thread(repository.object_directories)


def _box(ctx: Ctx, profile: Profile, place: WorktreePlace | None, borrowed: Sequence[Path], start: WorkerStart) -> Box:
    """The box of an agent's commands. Without a worktree, they can write only to their scratch directory, and read the
    project except its entries that begin with a dot. The programs and ports of its definition's MCP servers are added:
    the operator trusts those."""
    settings = ctx.settings
    assert ctx.server is not None, "it needs the server"
    own_port = urlsplit(ctx.server.url).port or 0
    to_gateway = [own_port] if start.models else []
    servers = [server.server for server in start.definition.servers.values()] if start.definition else []
    read = [*profiles.programs(profile), *(expanded(path) for path in profile.read)]
    read += [
        path
        for server in servers
        if isinstance(server, StdioServer)
        for path in profiles.server_places(settings, server)
    ]
    if place is None:
        read += [entry for entry in settings.project.iterdir() if not entry.name.startswith(".")]
    return sandbox.box(
        settings,
        worktree=place.path if place else start.scratch,
        git_dir=place.git_dir if place else start.scratch,
        objects=borrowed,
        scratch=start.scratch,
        read=read,
        connect=[*to_gateway, *(own_port if port == "server" else port for port in profile.connect), *_ports(servers)],
    )


def _ports(servers: Iterable[StdioServer | HttpServer]) -> Iterator[int]:
    for server in servers:
        if isinstance(server, HttpServer):
            address = urlsplit(server.url)
            yield address.port or (443 if address.scheme == "https" else 80)
