"""Launches the process of an agent that has a slot, with its configuration and a new token."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from workbench.confinement import gpus
from workbench.confinement.gpus import Gpu
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.providers.gateway import AgentKeys
from workbench.rules import access
from workbench.rules.models.upstream import PROVIDERS, withheld_variables
from workbench.rules.profile import RESERVED
from workbench.rules.workplace import Workplace
from workbench.services.processes import processes, termination
from workbench.services.processes.sandbox import ELSEWHERE, confinement_of
from workbench.services.processes.termination import scratch_prefix
from workbench.services.resources import leases
from workbench.services.spawning import definition as definitions
from workbench.services.spawning import on_machine, provider_keys, startup, workplace
from workbench.services.spawning.request import SQL, SpawnRequest, environment_of
from workbench.services.spawning.startup import WorkerStart
from workbench.store.base import Reader, Row, Tx
from workbench.system.tree_removal import remove_tree
from workbench.worker.startup import WorkerConfig, WorktreePlace

log = logging.getLogger(__name__)


async def launch(ctx: Ctx, agent_uid: str) -> int:
    """Start the process of an agent that has a slot; its pid. If that fails, the agent is not queued again.

    Cancelling the caller does not interrupt this, so every process that runs is recorded.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Unavailable: ``SPAWN_FAILED``, ….
        Conflict: ``NOT_RUNNING``: the agent was terminated meanwhile.
    """
    return await ctx.local.repositories.shielded(_launch_or_give_up(ctx, agent_uid))


async def _launch_or_give_up(ctx: Ctx, agent_uid: str) -> int:
    try:
        return await _launch(ctx, agent_uid)
    except Exception as error:
        reason = error.message if isinstance(error, WorkbenchError) else f"its process could not be started: {error}"
        await ctx.write(lambda tx: termination.give_up(tx, agent_uid, reason))
        raise


async def _launch(ctx: Ctx, agent_uid: str) -> int:
    spawn, place = await ctx.read(lambda tx: _spawn_and_place(tx, ctx, agent_uid))
    request, token = SpawnRequest.of(spawn), access.new_token("wba")
    if request.on is not None:
        return await _launch_there(ctx, agent_uid, request, token)
    environment = await environment_of(ctx, agent_uid, request)
    snapshot = await definitions.snapshot_of(ctx, request, spawn)
    definition = await definitions.of_agent(ctx, request, spawn, snapshot)
    place_there = await workplace.resolve(ctx, workplace.levels_of(spawn, request, snapshot))
    environment = await startup.variables(ctx, place_there) | environment
    keys = await provider_keys.of_agent(ctx, agent_uid)
    gpu = await _take_gpu(ctx, agent_uid, place_there)
    confinement = confinement_of(ctx.settings)
    await ctx.write(lambda tx: tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(token)))
    scratch = await asyncio.to_thread(_new_scratch, ctx)
    try:
        repository = await startup.repository_of(ctx, place)
        start = WorkerStart(
            token,
            scratch,
            provider_keys.without_keys(environment, keys),
            confinement,
            provider_keys.setup_without_keys(definition, keys),
            place_there,
            gpu,
            tuple(sorted(keys)),
            await startup.included(ctx, repository, place_there),
        )
        config = await asyncio.to_thread(startup.worker_config, ctx, request, place, repository, start)
        ref = await asyncio.to_thread(_start, ctx, agent_uid, config, keys)
        account = await asyncio.to_thread(startup.account_of, config, keys)
        await _record(ctx, agent_uid, request, ref, start, lambda tx: startup.enlist(tx, agent_uid, config, account))
    except (WorkbenchError, OSError) as error:
        await asyncio.to_thread(remove_tree, scratch)
        raise error if isinstance(error, WorkbenchError) else _not_started(error) from error
    return ref.pid


async def _launch_there(ctx: Ctx, agent_uid: str, request: SpawnRequest, token: str) -> int:
    """Start an agent on another machine; the pid of its process here."""
    start = await asyncio.to_thread(on_machine.start_of, ctx, agent_uid, request, token)
    scratch = await asyncio.to_thread(_new_scratch, ctx)
    own = WorkerStart(token, scratch, {}, ELSEWHERE, None)

    def run() -> ProcessRef:
        return ctx.local.processes.start(
            [sys.executable, "-P", "-m", start.MODULE],
            cwd=scratch,
            env=_environment(ctx, (), {}),
            stdin_text=start.as_json(),
            log=processes.log_of(ctx, agent_uid),
        )

    try:
        await ctx.write(lambda tx: tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(token)))
        ref = await asyncio.to_thread(run)
        await _record(ctx, agent_uid, request, ref, own, lambda tx: None)
    except WorkbenchError:
        await asyncio.to_thread(remove_tree, scratch)
        raise
    return ref.pid


async def _take_gpu(ctx: Ctx, agent_uid: str, place: Workplace) -> Gpu | None:
    """The GPU of an agent, if its workplace asks for one: no other running agent has it, and no attempt holds it.

    Raises:
        Unavailable: ``GPU_UNAVAILABLE``.
    """
    found = await asyncio.to_thread(gpus.find) if place.gpu else []

    def change(tx: Tx) -> Gpu | None:
        gpu = gpus.choose(found, leases.taken_gpus(tx, ctx.local.machine.only, agent_uid)) if place.gpu else None
        tx.run(SQL.take_gpu, agent=agent_uid, gpu=gpu and gpu.name)
        return gpu

    return await ctx.write(change)


def _new_scratch(ctx: Ctx) -> Path:
    """Create the scratch directory of an agent. Blocks."""
    try:
        return Path(tempfile.mkdtemp(prefix=scratch_prefix(ctx)))
    except OSError as error:
        raise _not_started(error) from error


def _not_started(error: OSError) -> Unavailable:
    return Unavailable("SPAWN_FAILED", f"The agent cannot be started: {error}.")


def _spawn_and_place(tx: Reader, ctx: Ctx, agent_uid: str) -> tuple[Row, WorktreePlace | None]:
    spawn = tx.one(SQL.get, agent=agent_uid)
    assert spawn is not None, "it has a slot"
    return spawn, workplace.place(tx, ctx, spawn["assigned_worktree"])


def _start(ctx: Ctx, agent_uid: str, config: WorkerConfig, keys: AgentKeys) -> ProcessRef:
    """Start the process. Blocks."""
    return ctx.local.processes.start(
        [sys.executable, "-P", "-m", "workbench.worker"],
        cwd=config.worktree.path if config.worktree else config.scratch,
        env=_environment(ctx, config.profile.passes, keys),
        stdin_text=config.as_json(),
        log=processes.log_of(ctx, agent_uid),
    )


async def _record(
    ctx: Ctx, agent_uid: str, request: SpawnRequest, ref: ProcessRef, start: WorkerStart, enlist: Callable[[Tx], None]
) -> None:
    """Record the process of an agent. If that fails, or the agent was terminated meanwhile, end the process.

    Args:
        enlist: records what it works with.

    Raises:
        Conflict: ``NOT_RUNNING``. WorkbenchError: an error of the store.
    """
    confinement, definition = start.confinement, start.definition
    started = {"agent": agent_uid, "scratch": str(start.scratch), "confinement": confinement.model_dump_json()}
    values = {"agent": agent_uid, "pid": ref.pid, "started": ref.started, "mark": ref.mark, "profile": request.profile}

    def change(tx: Tx) -> None:
        if not tx.run(SQL.started, started):
            raise Conflict("NOT_RUNNING", "The agent was terminated while its process was starting.")
        version = definitions.version(definition)
        tx.run(SQL.process, values, **version, now=tx.now)
        definitions.record(tx, agent_uid, definition)
        enlist(tx)
        facts = {"pid": ref.pid, "profile": request.profile, "enforced": confinement.enforced}
        if definition is not None:
            facts |= {"definition": definition.id} | version | {"include": list(definition.include)}
        tx.emit("agent.spawned", f"agent:{agent_uid}", **facts, missing=confinement.missing)

    try:
        await ctx.write(change)
    except WorkbenchError:
        await _end(ctx, ref)
        raise


async def _end(ctx: Ctx, ref: ProcessRef) -> None:
    """End a process that was not recorded."""
    try:
        await asyncio.to_thread(ctx.local.processes.terminate, ref, 0.0)
    except Unavailable as error:
        log.warning("a process that was just started: %s: %s", error.code, error.message)
    ctx.local.processes.forget(ref)


def _environment(ctx: Ctx, passes: Collection[str], keys: AgentKeys) -> dict[str, str]:
    """The server's environment without variables that could affect the worker, and without the store's password and
    those of providers that the gateway answers for, or that its profile does not pass on; its interpreter is first in
    PATH."""
    withheld = set(withheld_variables(PROVIDERS)) - set(passes) | set(withheld_variables(keys))
    values = {key.value for key in keys.values()} | set(ctx.settings.database_secrets)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in withheld and value.strip() not in values and not name.startswith(RESERVED)
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)])
    return inherited | {"PATH": path, "WORKBENCH_PROJECT": str(ctx.settings.project)}
