"""The parameters that an agent is spawned with: validated, and stored for restarts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from workbench.definition_files import Snapshot
from workbench.drivers import Fit
from workbench.errors import BadInput, Conflict, Hint, Unavailable, WorkbenchError
from workbench.model import Int64, Json
from workbench.ops import Ctx
from workbench.ops.duties import recovers
from workbench.rules.profile import RESERVED, Profile
from workbench.rules.workplace import as_json, parse
from workbench.services.access import secret_marks
from workbench.services.access.authentication import COMMANDS_ONLY, SUPERVISED
from workbench.services.agents.grants import ToolRef
from workbench.services.processes import processes, profiles
from workbench.services.processes.processes import ResourceLimits
from workbench.services.tasks.rows import visible_row
from workbench.store.base import Row
from workbench.store.queries import beside
from workbench.worker import person

SQL = beside(__file__)

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

Environment = Annotated[
    dict[str, str],
    Field(max_length=100, description="Extra variables; not WORKBENCH_*, LD_*, GIT_* or PYTHON*."),
]
SecretVariables = Annotated[
    list[str],
    Field(
        max_length=100,
        description="Variables in environment that are secret though neither name nor value says so.",
    ),
]
OnlyTask = Annotated[Int64 | None, Field(description="Run only this task; null: any it can claim.")]
DisplayName = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="Its display name; default: its definition's or persona's.",
    ),
]
SpawnPersona = Annotated[
    str | None, Field(description="Its persona, such as implementer; see get_personas. Default: its definition's.")
]
ProfileName = Annotated[str, Field(description="Launch profile: script runs each task's command; see list_profiles.")]
Function = Annotated[str | None, Field(description="For the profile python: package.module:name.")]
Tools = Annotated[
    list[ToolRef],
    Field(
        max_length=200,
        description="MCP servers, tools, notebook or *: what of list_tools it may call; no more than you may.",
    ),
]
WorkplaceKeys = Annotated[
    dict[str, Json],
    Field(max_length=20, description="Keys of its workplace, such as read or network; see get_workplace."),
    WithJsonSchema({"type": "object"}),
]
OnMachine = Annotated[str | None, Field(max_length=50, description="A machine of the settings; the operator's only.")]
Limits = Annotated[ResourceLimits, Field(description="Limits of each task's command with everything it starts.")]
OverMcp = Annotated[bool, Field(description="Talk to the server over MCP instead of plain HTTP.")]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """The parameters that an agent is spawned with, which are stored for restarts."""

    profile: str
    function: str | None
    task_id: int | None
    limits: ResourceLimits
    mcp: bool
    has_environment: bool
    definition: str | None = None
    """The path of the definition when the agent was spawned."""
    include: tuple[str, ...] = ()
    """The names of the definition's rules and references that are used on request only."""
    secret: tuple[str, ...] = ()
    """The names of the variables that are secret, whatever their name and form."""
    workplace: Mapping[str, Any] = field(default_factory=dict)
    """The keys of its workplace that the spawn stated, but for the variables; see `workbench.rules.workplace.parse`."""
    on: str | None = None
    """The machine of the settings on which it works; None: this one."""

    def as_json(self) -> str:
        """The stored form, without the environment."""
        names = ("function", "task_id", "mcp", "has_environment", "definition", "include", "secret", "on")
        values = {name: getattr(self, name) for name in names}
        stated = {"limits": self.limits.model_dump(exclude_none=True), "workplace": as_json(self.workplace)}
        return json.dumps(values | stated)

    @classmethod
    def of(cls, row: Row) -> SpawnRequest:
        """The request in a row of `spawns`."""
        stored: dict[str, Any] = json.loads(row["request"])
        return cls(
            row["profile"],
            stored.get("function"),
            stored.get("task_id"),
            ResourceLimits(**stored.get("limits", {})),
            bool(stored.get("mcp")),
            bool(stored.get("has_environment")),
            stored.get("definition"),
            tuple(stored.get("include", ())),
            tuple(stored.get("secret", ())),
            parse(stored.get("workplace", {}), "The spawn"),
            stored.get("on"),
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """What an agent with a profile can do, and what its program uses of its definition, if it has one."""

    capabilities: Mapping[str, Any]
    fit: Fit | None

    @property
    def unused(self) -> tuple[str, ...]:
        """What its program does not use of its definition."""
        return self.fit.unused if self.fit else ()


def check_environment(environment: Mapping[str, str], secret: Collection[str]) -> None:
    """Refuse variables that could affect the worker itself, and secret ones that are not given.

    Raises:
        BadInput: ``BAD_ENVIRONMENT``.
    """
    for name in environment:
        if name.upper().startswith(RESERVED) or not name.isidentifier():
            raise BadInput(
                "BAD_ENVIRONMENT",
                f"The variable {name!r} may not be set; names that begin with {', '.join(RESERVED)} are reserved.",
            )
    if missing := sorted(set(secret) - set(environment)):
        raise BadInput(
            "BAD_ENVIRONMENT", f"The variable {missing[0]!r} is to be secret, but has no value. Give it in environment."
        )


async def learn_secrets(ctx: Ctx, request: SpawnRequest, environment: Mapping[str, str]) -> None:
    """Mask from now on what is secret of what an agent's commands get: its variables, and the person's own.

    Raises:
        WorkbenchError: see `profiles.load`.
    """

    def values() -> list[str]:
        return list(person.secrets(profiles.load(ctx.settings, request.profile), environment, request.secret))

    await secret_marks.learn(ctx, await asyncio.to_thread(values))


@recovers
async def recover(ctx: Ctx) -> None:
    """Learn the secrets of the workers that an earlier server left running."""
    for spawn in await ctx.read(lambda tx: tx.all(SQL.running, machine=ctx.local.machine.only)):
        request = SpawnRequest.of(spawn)
        with suppress(WorkbenchError):  # their variables are lost, or their profile: nothing more is known of them
            await environment_of(ctx, spawn["agent_id"], request)


async def check_profile(ctx: Ctx, request: SpawnRequest, snapshot: Snapshot | None) -> Checked:
    """Refuse a profile that does not exist or lacks what it needs, or a definition, function or task that does not fit
    it.

    Raises:
        BadInput: ``DEFINITION_DOES_NOT_FIT``, ``PROVIDER_UNKNOWN``.
        NotFound, BadInput: see `profiles.load`. Unavailable: ``PROFILE_UNAVAILABLE``. BadInput: ``BAD_FUNCTION``.
        NotFound: ``TASK_NOT_FOUND``. Conflict: ``NO_COMMAND``.
    """
    profile = await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    fit = profiles.fitted(profile, snapshot.definition) if snapshot else None
    if lacks := profiles.missing(profile, fit):
        raise Unavailable(
            "PROFILE_UNAVAILABLE",
            f"The profile {profile.name} needs {', '.join(lacks)}, which is not here. Install or set it.",
            Hint("list_profiles", "{} lists the others."),
            needs=lacks,
        )
    wants = any("{function}" in part for part in profile.command or ())
    if wants != bool(request.function) or (request.function and not _FUNCTION.fullmatch(request.function)):
        what = "a function, as package.module:name" if wants else "no function"
        raise BadInput("BAD_FUNCTION", f"The profile {profile.name} takes {what}.")
    if profile.command is None and request.task_id is not None:
        task_id = request.task_id
        _require_command(await ctx.read(lambda tx: visible_row(tx, ctx.caller, task_id)), profile.name)
    return Checked(capabilities_of(profile), fit)


def capabilities_of(profile: Profile) -> dict[str, bool]:
    """What an agent with a profile can do: a profile without a command runs those of tasks, and does no others."""
    return {COMMANDS_ONLY if profile.command is None else SUPERVISED: True}


def _require_command(task: Row, profile: str) -> None:
    if task["run"] is None:
        raise Conflict(
            "NO_COMMAND",
            f"Task {task['id']} has no command, and the profile {profile} only runs commands. "
            "Choose the profile of an LLM agent, such as claude.",
        )


async def environment_of(ctx: Ctx, agent_uid: str, request: SpawnRequest) -> dict[str, str]:
    """The variables that an agent was spawned with; what is secret of them is masked from now on.

    Raises:
        Unavailable: ``ENVIRONMENT_LOST``. WorkbenchError: see `learn_secrets`.
    """
    if not request.has_environment:
        await learn_secrets(ctx, request, {})
        return {}
    environment = await asyncio.to_thread(processes.load_environment, ctx.settings, agent_uid)
    if environment is None:
        raise Unavailable("ENVIRONMENT_LOST", "The variables it was spawned with are lost. Spawn another agent.")
    await learn_secrets(ctx, request, environment)
    return environment
