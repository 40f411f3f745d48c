"""The terms of a worker on a machine without a clone: what a local one is told in its configuration."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any, Literal

from workbench.errors import Refused
from workbench.model import Level, Micros, Wire, __version__
from workbench.ops import Ctx, op
from workbench.services.processes import profiles, workplaces
from workbench.services.spawning import provider_keys, startup, workplace
from workbench.services.spawning.request import SQL
from workbench.services.spawning.workplace import WorkplaceLevels
from workbench.services.worktrees.rows import require_worktree
from workbench.store.base import Reader, Row

TOLD = (
    *("heartbeat_seconds", "terminate_grace_seconds", "finish_grace_seconds", "max_import_bytes"),
    *("max_agent_session_bytes", "agent_silence_seconds", "max_result_bytes"),
)
"""The settings of the project that a worker keeps wherever it is."""


class WorkerTerms(Wire):
    """How a worker of a machine without a clone works.

    `profile` and `workplace`: as the project has them; `environment`: variables for its commands, of which those in
    `secret_variables` are secret; `models`: the providers whose models its commands ask this server for; `settings`:
    by the names that they have; `now`: this server's clock.
    """

    agent_id: str
    worktree: str
    branch_name: str
    target: str
    profile: dict[str, Any]
    workplace: dict[str, Any]
    environment: dict[str, str]
    secret_variables: list[str]
    models: list[str]
    confinement: Literal["auto", "required", "off"]
    settings: dict[str, float]
    object_format: Literal["sha1", "sha256"]
    version: str
    now: Micros


@op(allow=Level.WORKER, reads=True, tool=False)
async def worker_terms(ctx: Ctx) -> WorkerTerms:
    """Get how you work, as a worker of a machine without a clone: your profile, your workplace and your limits."""
    agent_uid, settings = ctx.caller.agent or "", ctx.settings

    def question(tx: Reader) -> tuple[Row, Row]:
        worker = tx.one(SQL.elsewhere, agent=agent_uid)
        if worker is None or worker["assigned_worktree"] is None:
            text = "Only a worker that a machine without a clone has enlisted, and that has its worktree, gets terms."
            raise Refused("FORBIDDEN", f"{text} `workbench worker --server` enlists one.")
        return worker, require_worktree(tx, worker["assigned_worktree"])

    worker, row = await ctx.read(question)
    profile = await to_thread(profiles.load, settings, worker["profile"])
    place = await workplace.resolve(
        ctx, WorkplaceLevels(worker["persona_id"], row["name"], None, None, spawn={}, by_agent=False)
    )
    keys = await provider_keys.of_agent(ctx, agent_uid)
    return WorkerTerms(
        agent_id=worker["assigned_agent_id"],
        worktree=row["name"],
        branch_name=row["branch_name"],
        target=row["integration_target"],
        profile=profile.model_dump(mode="json"),
        workplace=place.as_json(),
        environment=provider_keys.without_keys(await startup.variables(ctx, place), keys),
        secret_variables=list(workplaces.secret_variables(place)),
        models=sorted(keys),
        confinement=settings.confinement,
        settings={name: getattr(settings, name) for name in TOLD}
        | {"worker_patience_seconds": settings.elsewhere_patience_seconds},
        object_format="sha256" if len(row["base_commit"]) == 64 else "sha1",
        version=__version__,
        now=ctx.store.now(),
    )
