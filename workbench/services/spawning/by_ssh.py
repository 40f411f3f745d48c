"""Agents on machines of the settings that are reached by ssh: what cannot go there, and what starts there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from workbench.errors import BadInput, Hint, NotFound, Refused, Unavailable
from workbench.model import Level
from workbench.ops import Ctx
from workbench.rules.profile import Profile
from workbench.services.processes import profiles, termination
from workbench.services.spawning import elsewhere
from workbench.services.spawning.request import SpawnRequest
from workbench.state.machine import SshMachine
from workbench.trust.withheld import set_but_not_trusted
from workbench.worker.over_ssh import SshStart

DIRECTORY = ".local/state/workbench/elsewhere/"
"""Below the home there: the directories of its agents, by their internal ids."""
_LIMITS = {"cpu_seconds": "cpu", "memory_bytes": "memory", "wall_seconds": "wall", "tasks": "tasks"}


def machine_of(ctx: Ctx, name: str) -> SshMachine:
    """A machine on which agents can be spawned.

    Raises:
        NotFound: ``MACHINE_NOT_FOUND``. BadInput: ``MACHINE_UNFIT``. Unavailable: ``SSH_NOT_HERE``.
    """
    machines = ctx.settings.described_machines
    if (machine := machines.get(name)) is None:
        there = ", ".join(sorted(machines)) or "none"
        text = f"The settings have no machine {name!r}; they have: {there}. Describe it as [machines.{name}]."
        text += set_but_not_trusted(ctx.settings.project, "machines")
        raise NotFound("MACHINE_NOT_FOUND", text, Hint("list_machines"))
    if not isinstance(machine, SshMachine):
        text = f"{name} is of kind {machine.kind}: it executes sweeps only (`workbench sweep … --dask {name}`)."
        raise BadInput("MACHINE_UNFIT", f'{text} Agents are spawned on machines of kind "ssh".')
    if shutil.which("ssh") is None:
        raise Unavailable("SSH_NOT_HERE", elsewhere.NO_SSH)
    return machine


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


def start_of(ctx: Ctx, agent_uid: str, request: SpawnRequest, token: str) -> SshStart:
    """What starts an agent on its machine.

    Raises:
        WorkbenchError: see `machine_of`.
    """
    assert ctx.local.server is not None, "it needs the server"
    machine = machine_of(ctx, str(request.on))
    limits = request.limits.model_dump(exclude_none=True)
    return SshStart(
        machine=str(request.on),
        host=machine.host,
        command=machine.command,
        options=machine.options,
        server=urlsplit(ctx.local.server.url).netloc,
        token=token,
        directory=DIRECTORY + agent_uid,
        limits={_LIMITS[name]: value for name, value in limits.items()},
        told=str(termination.told_end(ctx, agent_uid)),
    )
