"""The parameters that an agent is spawned with: validated, and stored for restarts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, Unavailable
from workbench.model import Int64
from workbench.ops import Ctx
from workbench.rules.profile import RESERVED
from workbench.services.access.authentication import COMMANDS_ONLY, SUPERVISED
from workbench.services.processes import environments, profiles
from workbench.services.processes.processes import ResourceLimits
from workbench.services.tasks.rows import visible_row
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

Environment = Annotated[
    dict[str, str],
    Field(max_length=100, description="Extra variables; not WORKBENCH_*, LD_*, GIT_* or PYTHON*."),
]
OnlyTask = Annotated[Int64 | None, Field(description="Run only this task, then end; null: any tasks it can claim.")]
DisplayName = Annotated[
    str | None, Field(min_length=1, max_length=100, description="Its display name; default: the persona's id.")
]
ProfileName = Annotated[str, Field(description="Launch profile: script runs each task's command; see list_profiles.")]
Function = Annotated[str | None, Field(description="For the profile python: package.module:name.")]
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

    def as_json(self) -> str:
        """The stored form, without the environment."""
        names = ("function", "task_id", "mcp", "has_environment")
        values = {name: getattr(self, name) for name in names}
        return json.dumps(values | {"limits": self.limits.model_dump(exclude_none=True)})

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
        )


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse variables that could affect the worker itself.

    Raises:
        BadInput: ``BAD_ENVIRONMENT``.
    """
    for name in environment:
        if name.upper().startswith(RESERVED) or not name.isidentifier():
            raise BadInput(
                "BAD_ENVIRONMENT",
                f"The variable {name!r} may not be set; names that begin with {', '.join(RESERVED)} are reserved.",
            )


async def check_profile(ctx: Ctx, request: SpawnRequest) -> dict[str, Any]:
    """Refuse a profile that does not exist or lacks what it needs, or a function or task that does not fit it.

    Returns:
        What an agent with this profile can do: its capabilities.

    Raises:
        NotFound, BadInput: see `profiles.load`. Unavailable: ``PROFILE_UNAVAILABLE``. BadInput: ``BAD_FUNCTION``.
        NotFound: ``TASK_NOT_FOUND``. Conflict: ``NO_COMMAND``.
    """
    profile = await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    if lacks := profiles.missing(profile):
        raise Unavailable(
            "PROFILE_UNAVAILABLE",
            f"The profile {profile.name} needs {', '.join(lacks)}, which is not installed or set here.",
            needs=lacks,
        )
    wants = any("{function}" in part for part in profile.command or ())
    if wants != bool(request.function) or (request.function and not _FUNCTION.fullmatch(request.function)):
        what = "a function, as package.module:name" if wants else "no function"
        raise BadInput("BAD_FUNCTION", f"The profile {profile.name} takes {what}.")
    if profile.command is not None:
        return {SUPERVISED: True}
    if request.task_id is not None:
        task_id = request.task_id
        _require_command(await ctx.read(lambda tx: visible_row(tx, ctx.caller, task_id)), profile.name)
    return {COMMANDS_ONLY: True}


def _require_command(task: Row, profile: str) -> None:
    if task["run"] is None:
        raise Conflict(
            "NO_COMMAND",
            f"Task {task['id']} has no command, and the profile {profile} only runs commands. "
            "Choose the profile of an LLM agent, such as claude.",
        )


async def environment_of(ctx: Ctx, agent_uid: str, request: SpawnRequest) -> dict[str, str]:
    """The variables that an agent was spawned with.

    Raises:
        Unavailable: ``ENVIRONMENT_LOST``.
    """
    if not request.has_environment:
        return {}
    saved = await asyncio.to_thread(environments.load, ctx.settings, agent_uid)
    if saved is None:
        raise Unavailable("ENVIRONMENT_LOST", "The variables it was spawned with are lost. Spawn another agent.")
    return saved
