"""The terms of a worker on a machine without a clone: what a local one is told in its configuration."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Refused
from workbench.model import Level, Micros, Wire, __version__
from workbench.ops import Ctx, op
from workbench.present.inert import inert_line
from workbench.rules.workplace import Workplace
from workbench.services.processes import profiles, workplaces
from workbench.services.resources import machine
from workbench.services.resources.machine import StatedResource
from workbench.services.spawning import provider_keys, startup, workplace
from workbench.services.spawning.elsewhere import MachineFacts
from workbench.services.spawning.request import SQL
from workbench.services.spawning.workplace import WorkplaceLevels
from workbench.services.worktrees.rows import require_worktree
from workbench.store.base import Reader, Row
from workbench.trust.withheld import included

TOLD = (
    *("heartbeat_seconds", "terminate_grace_seconds", "finish_grace_seconds", "max_import_bytes"),
    *("max_agent_session_bytes", "agent_silence_seconds", "max_result_bytes", "max_frame_bytes"),
    "keep_attempts_days",
)
"""The settings of the project that a worker keeps wherever it is."""
MOST_SHOWN = 5
ADVICE = "Give tasks that need them a persona that only workers on the project's machine have."


class WorkerTerms(Wire):
    """How a worker of a machine without a clone works.

    `machine`: what its machine is called. `profile` and `workplace`: as the project has them; `environment`: variables
    for its commands, of which those in `secret_variables` are secret; `models`: the providers whose models its commands
    ask this server for; `settings`: by the names that they have; `stays`: coded lines about what its worktree lacks
    there; `now`: this server's clock.
    """

    agent_id: str
    machine: str
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
    stays: list[str]
    object_format: Literal["sha1", "sha256"]
    version: str
    now: Micros


@op(allow=Level.WORKER, tool=False)
async def worker_terms(
    ctx: Ctx,
    resources: Annotated[
        list[StatedResource] | None,
        Field(max_length=200, description="What your machine lends to tasks; null: the same as before."),
    ] = None,
    facts: Annotated[
        MachineFacts | None, Field(description="What your machine has, if it was not told when you were enlisted.")
    ] = None,
) -> WorkerTerms:
    """Get how you work, as a worker of a machine without a clone: your profile, your workplace and your limits.

    Nobody checks what your machine says that it has: tasks that need it are offered to its workers, and nothing else.
    """
    agent_uid, settings = ctx.caller.agent or "", ctx.settings

    def question(tx: Reader) -> tuple[Row, Row]:
        worker = tx.one(SQL.elsewhere, agent=agent_uid)
        if worker is None or worker["assigned_worktree"] is None:
            text = "Only a worker that a machine without a clone has enlisted, and that has its worktree, gets terms."
            raise Refused("FORBIDDEN", f"{text} `workbench worker --server` enlists one.")
        return worker, require_worktree(tx, worker["assigned_worktree"])

    worker, row = await ctx.read(question)
    if resources is not None:
        stock = {(one.name, one.device): one for one in resources}
        rows = ctx.secrets.masked([one.model_dump() for one in stock.values()])
        await ctx.write(lambda tx: machine.state(tx, machine.elsewhere(worker["machine"]), rows))
    if facts is not None and worker["spawned"]:
        told = MachineFacts.model_validate(ctx.secrets.masked(facts.model_dump()))
        await to_thread(told.save, settings, worker["machine"])
    profile = await to_thread(profiles.load, settings, worker["profile"])
    place = await workplace.resolve(
        ctx, WorkplaceLevels(worker["persona_id"], row["name"], None, None, spawn={}, by_agent=False)
    )
    keys = await provider_keys.of_agent(ctx, agent_uid)
    return WorkerTerms(
        agent_id=worker["assigned_agent_id"],
        machine=worker["machine"],
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
        stays=list(await _stays(ctx, row["branch_name"], place)),
        object_format="sha256" if len(row["base_commit"]) == 64 else "sha1",
        version=__version__,
        now=ctx.store.now(),
    )


async def _stays(ctx: Ctx, branch: str, place: Workplace) -> Iterator[str]:
    """Coded lines about what a worktree elsewhere does not have."""
    repository = await ctx.local.repositories.open()
    commit = await to_thread(repository.commit, branch)
    contents, submodules = await to_thread(repository.beside_bundles, commit)
    files = [*place.include, *await to_thread(included, ctx.settings.project)]
    lacks = {
        "LFS_STAYS": (contents, "The contents of files of Git LFS {} are not sent: there are pointers in their place."),
        "SUBMODULES_STAY": (submodules, "The files of submodules {} are not sent: their directories are empty."),
        "INCLUDE_STAYS": (files, "The ignored files that new worktrees include {} are not sent."),
    }
    return (f"{code}: {text.format(f'({_shown(names)})')} {ADVICE}" for code, (names, text) in lacks.items() if names)


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(inert_line(name)[:100] for name in names[:MOST_SHOWN]) + more
