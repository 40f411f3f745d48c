"""Launching the process of an agent that was given room, with its configuration and a new token."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.rules import access
from workbench.rules.profile import RESERVED
from workbench.services.processes import processes
from workbench.services.processes.sandbox import Confinement, confinement_of
from workbench.services.spawning import startup, workplace
from workbench.services.spawning.request import SQL, SpawnRequest, environment_of
from workbench.store.base import Reader, Row, Tx
from workbench.worker import scratch as directories
from workbench.worker.startup import WorkerConfig, WorktreePlace


async def launch(ctx: Ctx, agent_uid: str) -> int:
    """Start the process of an agent that was given room; its pid.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Unavailable: ``SPAWN_FAILED``, …. Conflict: ``NOT_RUNNING``: ended meanwhile.
    """
    spawn, place = await ctx.read(lambda tx: _given_room(tx, ctx, agent_uid))
    request, token = SpawnRequest.of(spawn), access.new_token("wba")
    environment = await environment_of(ctx, agent_uid, request)
    held = confinement_of(ctx.settings)
    await ctx.write(lambda tx: tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(token)))
    own = await asyncio.to_thread(_scratch)
    try:
        borrowed = await startup.borrowed(ctx, place)
        config = await asyncio.to_thread(
            startup.worker_config, ctx, request, place, borrowed, token, own, environment, held
        )
        ref = await asyncio.to_thread(_process, ctx, agent_uid, config)
        await _note(ctx, agent_uid, request, ref, own, held)
    except (WorkbenchError, OSError) as error:
        await asyncio.to_thread(directories.remove, own)
        raise error if isinstance(error, WorkbenchError) else _not_started(error) from error
    return ref.pid


def _scratch() -> Path:
    """A new directory for an agent's tasks. Blocks."""
    try:
        return Path(tempfile.mkdtemp(prefix="workbench-"))
    except OSError as error:
        raise _not_started(error) from error


def _not_started(error: OSError) -> Unavailable:
    return Unavailable("SPAWN_FAILED", f"The agent cannot be started: {error}.")


def _given_room(tx: Reader, ctx: Ctx, agent_uid: str) -> tuple[Row, WorktreePlace | None]:
    spawn = tx.one(SQL.get, agent=agent_uid)
    assert spawn is not None, "it was given room"
    return spawn, workplace.place(tx, ctx, spawn["assigned_worktree"])


def _process(ctx: Ctx, agent_uid: str, config: WorkerConfig) -> ProcessRef:
    """Start the process. Blocks."""
    return ctx.processes.start(
        [sys.executable, "-P", "-m", "workbench.worker"],
        cwd=config.place.path if config.place else config.scratch,
        env=_environment(ctx),
        stdin_text=config.as_json(),
        log=processes.log_of(ctx, agent_uid),
    )


async def _note(ctx: Ctx, agent_uid: str, request: SpawnRequest, ref: ProcessRef, own: Path, held: Confinement) -> None:
    """Write down the process of an agent, unless it was ended meanwhile: then so is the process."""
    began = {"agent": agent_uid, "scratch": str(own), "confinement": held.model_dump_json()}
    values = {"agent": agent_uid, "pid": ref.pid, "started": ref.started, "profile": request.profile}

    def change(tx: Tx) -> bool:
        if not tx.run(SQL.started, began):
            return False
        tx.run(SQL.process, values, log=str(processes.log_of(ctx, agent_uid)), now=tx.now)
        told = {"pid": ref.pid, "profile": request.profile, "enforced": held.enforced}
        tx.emit("agent.spawned", f"agent:{agent_uid}", **told, missing=held.missing)
        return True

    try:
        noted = await ctx.write(change)
    except WorkbenchError:
        noted = False
    if not noted:
        await asyncio.to_thread(ctx.processes.terminate, ref, 0.0)
        ctx.processes.forget(ref)
        raise Conflict("NOT_RUNNING", "The agent was ended while its process was started.")


def _environment(ctx: Ctx) -> dict[str, str]:
    """The person's environment without what could steer the worker, its interpreter first in PATH."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(RESERVED)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return kept | {"PATH": path, "WORKBENCH_PROJECT": str(ctx.settings.project)}
