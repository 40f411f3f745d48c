"""What an agent is spawned with: checked before, and kept so that it can be started again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Unavailable
from workbench.model import Int64
from workbench.ops import Ctx
from workbench.rules.profile import RESERVED
from workbench.services.processes import environments, profiles
from workbench.services.processes.processes import ResourceLimits
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

Environment = Annotated[
    dict[str, str],
    Field(max_length=100, description="Extra variables; not WORKBENCH_*, LD_*, GIT_* or PYTHON*."),
]
TaskId = Annotated[
    Int64 | None, Field(description="The one task it is for, then it ends; null: whatever it can claim.")
]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """What an agent is spawned with; kept, so that it can be started again."""

    profile: str
    function: str | None
    task_id: int | None
    limits: ResourceLimits
    mcp: bool
    has_environment: bool

    def as_json(self) -> str:
        """As it is stored. The environment is not in it."""
        names = ("function", "task_id", "mcp", "has_environment")
        kept = {name: getattr(self, name) for name in names}
        return json.dumps(kept | {"limits": self.limits.model_dump(exclude_none=True)})

    @classmethod
    def of(cls, row: Row) -> SpawnRequest:
        """What a row of `spawns` says."""
        said: dict[str, Any] = json.loads(row["request"])
        return cls(
            row["profile"],
            said.get("function"),
            said.get("task_id"),
            ResourceLimits(**said.get("limits", {})),
            bool(said.get("mcp")),
            bool(said.get("has_environment")),
        )


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse variables that could steer the worker.

    Raises:
        BadInput: ``BAD_ENVIRONMENT``.
    """
    for name in environment:
        if name.upper().startswith(RESERVED) or not name.isidentifier():
            raise BadInput(
                "BAD_ENVIRONMENT",
                f"The variable {name!r} may not be set; names that begin with {', '.join(RESERVED)} are kept.",
            )


async def check_profile(ctx: Ctx, request: SpawnRequest) -> None:
    """Refuse a profile that is not there, lacks what it needs, or takes another function than is named.

    Raises:
        NotFound, BadInput: see `profiles.load`. Unavailable: ``PROFILE_UNAVAILABLE``. BadInput: ``BAD_FUNCTION``.
    """
    profile = await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    if lacks := profiles.missing(profile):
        raise Unavailable(
            "PROFILE_UNAVAILABLE",
            f"The profile {profile.name} needs {', '.join(lacks)}, which is not here.",
            needs=lacks,
        )
    wants = any("{function}" in part for part in profile.command or ())
    if wants != bool(request.function) or (request.function and not _FUNCTION.fullmatch(request.function)):
        what = "a function, as package.module:name" if wants else "no function"
        raise BadInput("BAD_FUNCTION", f"The profile {profile.name} takes {what}.")


async def environment_of(ctx: Ctx, agent_uid: str, request: SpawnRequest) -> dict[str, str]:
    """The variables that an agent was spawned with.

    Raises:
        Unavailable: ``ENVIRONMENT_LOST``.
    """
    if not request.has_environment:
        return {}
    kept = await asyncio.to_thread(environments.recall, ctx.settings, agent_uid)
    if kept is None:
        raise Unavailable("ENVIRONMENT_LOST", "The variables it was spawned with are not kept any more. Spawn another.")
    return kept
