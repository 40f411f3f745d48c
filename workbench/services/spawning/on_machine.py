"""Agents on machines of the settings, by ssh or on a cluster: what cannot go there, and what starts there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from workbench.clusters import dask, slurm
from workbench.clusters.over_dask import DaskStart
from workbench.errors import BadInput, Hint, NotFound, Refused, Unavailable
from workbench.model import Level, ServerInfo
from workbench.ops import Ctx
from workbench.rules.access import LOOPBACK
from workbench.rules.profile import Profile
from workbench.services.processes import profiles, termination
from workbench.services.spawning import elsewhere
from workbench.services.spawning.request import SpawnRequest
from workbench.state.machine import Cluster, DaskMachine, DescribedMachine, SshMachine
from workbench.trust.withheld import set_but_not_trusted
from workbench.worker.over_ssh import SshStart

DIRECTORY = ".local/state/workbench/elsewhere/"
"""Below the home there: the directories of its agents, by their internal ids."""
_LIMITS = {"cpu_seconds": "cpu", "memory_bytes": "memory", "wall_seconds": "wall", "tasks": "tasks"}


def machine_of(ctx: Ctx, name: str) -> DescribedMachine:
    """A machine on which agents can be spawned. Blocks.

    Raises:
        NotFound: ``MACHINE_NOT_FOUND``. BadInput: ``MACHINE_UNFIT``. Unavailable: ``SSH_NOT_HERE``,
            ``DASK_NOT_INSTALLED``, ``SLURM_NOT_HERE``.
    """
    machines = ctx.settings.described_machines
    if (machine := machines.get(name)) is None:
        there = ", ".join(sorted(machines)) or "none"
        text = f"The settings have no machine {name!r}; they have: {there}. Describe it as [machines.{name}]."
        text += set_but_not_trusted(ctx.settings.project, "machines")
        raise NotFound("MACHINE_NOT_FOUND", text, Hint("list_machines"))
    if isinstance(machine, SshMachine):
        if shutil.which("ssh") is None:
            raise Unavailable("SSH_NOT_HERE", elsewhere.NO_SSH)
    else:
        dask.require_installed() if isinstance(machine, DaskMachine) else slurm.require_possible(name)
        _server_for(ctx, name, machine)
    return machine


def _server_for(ctx: Ctx, name: str, machine: Cluster) -> str:
    """The address at which a cluster reaches this server.

    Raises:
        BadInput: ``MACHINE_UNFIT``: the server listens on this machine only, and the cluster is not evidently here.
    """
    own = _server(ctx).url
    is_here = isinstance(machine, DaskMachine) and urlsplit(machine.address).hostname in LOOPBACK
    if not machine.server and urlsplit(own).hostname in LOOPBACK and not is_here:
        raise BadInput(
            "MACHINE_UNFIT",
            f"Agents on {name} do not reach this server at {own}, an address of this machine only. Open a way for them "
            '(a proxy with TLS, or ssh -R; docs/machines.md), and name its end there: server = "https://…" in '
            f"[machines.{name}].",
        )
    return (machine.server or own).rstrip("/")


def _server(ctx: Ctx) -> ServerInfo:
    assert ctx.local.server is not None, "it needs the server"
    return ctx.local.server


async def check(ctx: Ctx, request: SpawnRequest, stays: Mapping[str, Any]) -> Profile:
    """Refuse what cannot be spawned on a machine of the settings; the profile.

    Args:
        stays: what was asked for that is only possible on this machine, by name.

    Raises:
        Refused: ``FORBIDDEN``. BadInput: ``NOT_ELSEWHERE``, ``BAD_FUNCTION``. WorkbenchError: see `machine_of`,
            `profiles.load`.
    """
    if ctx.caller.level is not Level.OPERATOR:
        raise Refused("FORBIDDEN", "Only the operator spawns agents on other machines. Leave out `on`, or ask.")
    await asyncio.to_thread(machine_of, ctx, str(request.on))
    if unfit := sorted(name for name, value in stays.items() if value):
        text = f"{', '.join(unfit)} cannot be given for an agent on {request.on}: it has a new worktree, is admitted at"
        raise BadInput("NOT_ELSEWHERE", f"{text} once, and takes any task it can. Leave that out, or leave out `on`.")
    profile = await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    elsewhere.require_no_function(profile)
    return profile


def start_of(ctx: Ctx, agent_uid: str, request: SpawnRequest, token: str) -> SshStart | DaskStart:
    """What starts an agent on its machine.

    Raises:
        WorkbenchError: see `machine_of`.
    """
    name = str(request.on)
    machine, told = machine_of(ctx, name), str(termination.told_end(ctx, agent_uid))
    limits = {_LIMITS[limit]: value for limit, value in request.limits.model_dump(exclude_none=True).items()}
    if isinstance(machine, SshMachine):
        return SshStart(
            machine=name,
            host=machine.host,
            command=machine.command,
            options=machine.options,
            server=urlsplit(_server(ctx).url).netloc,
            token=token,
            directory=DIRECTORY + agent_uid,
            limits=limits,
            told=told,
        )
    return DaskStart(
        machine=name,
        described=machine.model_dump(),
        server=_server_for(ctx, name, machine),
        server_file=str(ctx.settings.server_file),
        token=token,
        directory=DIRECTORY,
        agent=agent_uid,
        limits=limits,
        told=told,
    )
