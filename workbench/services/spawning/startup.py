"""The configuration of a worker process: its worktree, profile, token, limits and sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from workbench.confinement import Box, Limits
from workbench.ops import Ctx
from workbench.rules.profile import Profile
from workbench.services.processes import profiles, sandbox
from workbench.services.processes.sandbox import Confinement
from workbench.services.spawning.request import SpawnRequest
from workbench.worker.startup import WorkerConfig, WorktreePlace


def worker_config(
    ctx: Ctx,
    request: SpawnRequest,
    place: WorktreePlace | None,
    borrowed: Sequence[Path],
    token: str,
    scratch: Path,
    environment: Mapping[str, str],
    confinement: Confinement,
) -> WorkerConfig:
    """Build the configuration of a worker. Blocks."""
    assert ctx.server is not None, "it needs the server"
    settings, profile = ctx.settings, profiles.load(ctx.settings, request.profile)
    return WorkerConfig(
        url=ctx.server.url,
        token=token,
        scratch=scratch,
        box=_box(ctx, profile, place, borrowed, scratch),
        project=settings.project,
        profile=profile,
        agent_mcp_url=ctx.server.mcp_url,
        worktree=place,
        function=request.function,
        task_id=request.task_id,
        limits=Limits(**request.limits.model_dump()),
        environment=environment,
        missing=confinement.missing,
        mcp_url=ctx.server.mcp_url if request.mcp else None,
        server_file=settings.server_file,
        heartbeat_seconds=settings.heartbeat_seconds,
        patience_seconds=settings.worker_patience_seconds,
        grace_seconds=settings.terminate_grace_seconds / 4,
        finish_grace_seconds=settings.finish_grace_seconds,
        import_bytes=settings.max_import_bytes,
    )


async def borrowed(ctx: Ctx, place: WorktreePlace | None) -> Sequence[Path]:
    """The object directories that a worktree's repository borrows from."""
    if place is None:
        return ()
    repository = await ctx.repositories.open()
    return await asyncio.to_thread(repository.object_directories)


def _box(ctx: Ctx, profile: Profile, place: WorktreePlace | None, borrowed: Sequence[Path], scratch: Path) -> Box:
    """What the commands of an agent may access. Without a worktree, they can write only to their scratch directory,
    and read the project except its entries that begin with a dot."""
    settings = ctx.settings
    assert ctx.server is not None, "it needs the server"
    server = urlsplit(ctx.server.url).port or 0
    read = [*profiles.programs(profile), *(Path(path).expanduser() for path in profile.read)]
    if place is None:
        read += [entry for entry in settings.project.iterdir() if not entry.name.startswith(".")]
    return sandbox.box(
        settings,
        worktree=place.path if place else scratch,
        git_dir=place.git_dir if place else scratch,
        objects=borrowed,
        scratch=scratch,
        read=read,
        connect=[server if port == "server" else port for port in profile.connect],
    )
