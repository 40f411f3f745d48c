"""Workers of machines that have no clone of the project and share no path with it.

A person gives such a machine a token, which enlists workers and does nothing else. Each worker has a token and a
worktree of its own, whose branch it takes and returns as bundles; see `workbench.services.worktrees.sending`.
"""

from __future__ import annotations

import re
import shutil
from asyncio import gather, to_thread
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import quote

from pydantic import Field

from workbench.clusters import facts as clusters
from workbench.clusters.facts import ClusterFacts
from workbench.errors import BadInput, Conflict, Hint, NotFound, TooMany, Unauthenticated, WorkbenchError
from workbench.model import Int64, Level, Micros, Role, Wire
from workbench.ops import ANONYMOUS, SAID, SYSTEM, Caller, Columns, Command, Ctx, op
from workbench.rules import access
from workbench.rules.profile import Profile
from workbench.rules.workplace import Workplace
from workbench.services import holds
from workbench.services.agents.changes import update_agent
from workbench.services.agents.decide import admit_at_once
from workbench.services.agents.register import add_pending
from workbench.services.agents.rows import agent_by_uid, require_agent
from workbench.services.processes import departures, profiles
from workbench.services.resources import machine as resources
from workbench.services.spawning.definition import persona_of
from workbench.services.spawning.request import DisplayName, ProfileName, SpawnPersona, capabilities_of
from workbench.services.worktrees.creation import create_with_workplace
from workbench.state.machine import DescribedMachine, SshMachine
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Store, Tx
from workbench.store.queries import beside
from workbench.system import atomic_file

SQL = beside(__file__)

TOKEN = "wbh"
"""The kind of a machine's token."""
NO_SSH = "This machine has no ssh. Install OpenSSH's client."
MachineName = Annotated[
    str,
    SAID,
    Field(max_length=50, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="What the machine is called here."),
]
EnlistingKey = Annotated[
    str,
    Field(
        min_length=32,
        max_length=200,
        description="A secret that you choose: sent again, such as after a lost answer, it enlists no other worker.",
    ),
]


class MachineFacts(Wire):
    """What a machine says of itself. It is shown, and nothing is decided by it."""

    system: str = Field("", max_length=200, description="Its operating system.")
    python: str = Field("", max_length=200, description="The version of Python there.")
    workbench: str = Field("", max_length=200, description="The version of Workbench there.")
    git: str | None = Field(None, max_length=200, description="The version of git there; empty: there is none.")
    cores: int | None = Field(None, ge=1, le=1_000_000, description="Its processor cores.")
    memory_bytes: Int64 | None = Field(None, ge=0, description="Its memory.")
    devices: list[Annotated[str, Field(max_length=200)]] = Field([], max_length=64, description="Such as its GPUs.")
    namespaces: bool | None = Field(None, description="Whether its boxes have files and a network of their own.")
    missing: list[Annotated[str, Field(max_length=200)]] = Field(
        [], max_length=20, description="What else its boxes do not enforce, in words."
    )

    def save(self, settings: Settings, machine: str) -> None:
        """Save what a machine of the settings says, for `load`. Blocks.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        atomic_file.replace(_facts_file(settings, machine), self.model_dump_json(), 0o600)

    @classmethod
    def load(cls, settings: Settings, machine: str) -> tuple[Self | None, int | None]:
        """What a machine of the settings has said last, and when, microseconds UTC; neither, if nothing. Blocks."""
        file = _facts_file(settings, machine)
        try:
            return cls.model_validate_json(atomic_file.read(file)), file.stat().st_mtime_ns // 1_000
        except (OSError, ValueError):
            return None, None

    @property
    def has(self) -> Iterator[str]:
        """What the machine has, in words."""
        if self.cores is not None:
            yield f"{self.cores} core{'' if self.cores == 1 else 's'}"
        if self.memory_bytes is not None:
            yield f"{self.memory_bytes / 1e9:.1f} GB"
        yield from self.devices

    @property
    def lacks(self) -> Iterator[str]:
        """What it lacks, in words."""
        if self.namespaces is False:
            yield "namespaces"
        if self.git == "":
            yield "git"
        yield from self.missing


def _facts_file(settings: Settings, machine: str) -> Path:
    return settings.machine_facts / f"{quote(machine, safe='')}.json"


class AddedMachine(Wire):
    """A machine whose workers may be enlisted with `token`, which is returned only this once."""

    machine: str
    token: str


class EnlistingMachine(Wire):
    """A machine elsewhere. `workers`: those that it has enlisted and that may still act.

    `kind`: `worker` has a token to enlist workers; the others are of the settings, and agents are spawned on them;
    `dask` and `slurm` execute sweeps, too. `facts`: what it said of itself when it last enlisted one, or, of one of
    kind `ssh`, when the last agent there began (`used_at`), which nobody has checked; null: nothing. `has` and `lacks`
    say the same in words; those of `dask` and `slurm` are what the scheduler and the settings say now, or why it cannot
    be used, with the next step.
    """

    name: str
    kind: Literal["worker", "dask", "slurm", "ssh"]
    added_by: str | None
    added_at: Micros | None
    used_at: Micros | None
    workers: int
    facts: MachineFacts | None
    has: str
    lacks: str

    @classmethod
    def of(cls, row: Row) -> EnlistingMachine:
        """The machine in a row."""
        facts = MachineFacts.model_validate_json(row["facts"]) if row["facts"] else None
        told = facts or MachineFacts()
        words = {"has": ", ".join(told.has), "lacks": ", ".join(told.lacks)}
        return cls(**{**dict(row), "facts": facts}, kind="worker", **words)

    @classmethod
    def of_settings(cls, settings: Settings, name: str, machine: DescribedMachine, workers: int) -> EnlistingMachine:
        """The machine that the settings describe. Asks a cluster, for a few seconds. Blocks."""
        facts, told_at = None, None
        if isinstance(machine, SshMachine):
            facts, told_at = MachineFacts.load(settings, name)
            told = facts or MachineFacts()
            lacks = told.lacks if shutil.which("ssh") else [NO_SSH]
            found = ClusterFacts(", ".join((f"ssh to {machine.host}", *told.has)), ", ".join(lacks))
        else:
            found = clusters.of(name, machine)
        at = {"added_by": None, "added_at": None, "used_at": told_at}
        return cls(name=name, kind=machine.kind, workers=workers, facts=facts, has=found.has, lacks=found.lacks, **at)


class EnlistingMachines(Wire):
    """The machines that have a token to enlist workers, by name, and those of the settings."""

    SHOWN: ClassVar = Columns(
        "machines",
        "name kind workers has lacks used_at=used added_at=added added_by",
        "No machine has a token to enlist workers, and the settings name none.",
    )
    machines: list[EnlistingMachine]


class RemovedMachine(Wire):
    """A machine whose token works no more; `revoked` are the workers that it had enlisted."""

    machine: str
    revoked: list[str]


class EnlistedElsewhere(Wire):
    """A worker of another machine: its token, returned only this once, and the worktree that is its own."""

    agent_id: str
    token: str
    worktree: str


@op(allow=Level.OPERATOR, tool=False, command=Command("machines add NAME", prints="{token}"))
async def add_machine(ctx: Ctx, name: MachineName) -> AddedMachine:
    """Give a machine without a clone of the project a token, which may enlist workers and nothing else."""
    token = access.new_token(TOKEN)

    def change(tx: Tx) -> None:
        if not tx.run(SQL.add, name=name, token_hash=access.token_hash(token), by=tx.actor, now=tx.now):
            raise Conflict(
                "MACHINE_NAME_TAKEN", f"The machine {name!r} has a token. For a new one, remove the machine first."
            )
        tx.emit("machine.added", f"machine:{name}")

    await ctx.write(change)
    return AddedMachine(machine=name, token=token)


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("machines list"), refreshed_by="machine agent")
async def list_machines(ctx: Ctx) -> EnlistingMachines:
    """List the machines that have a token to enlist workers, and those of the settings, of which clusters are asked.

    list_servers has those that share the project's store.
    """
    described = sorted(ctx.settings.described_machines.items())

    def question(tx: Reader) -> tuple[list[Row], list[int]]:
        return tx.all(SQL.list), [len(_workers(tx, name)) for name, _ in described]

    rows, workers = await ctx.read(question)
    asked = (
        to_thread(EnlistingMachine.of_settings, ctx.settings, name, machine, number)
        for (name, machine), number in zip(described, workers, strict=True)
    )
    return EnlistingMachines(machines=[*map(EnlistingMachine.of, rows), *await gather(*asked)])


@op(
    allow=Level.OPERATOR,
    tool=False,
    destructive=True,
    command=Command(
        "machines remove NAME",
        "{machine} has no token any more, and its workers are revoked.",
        asks="Revoke all workers of {name}?",
    ),
)
async def remove_machine(ctx: Ctx, name: MachineName) -> RemovedMachine:
    """Take a machine's token away and revoke the workers that it has enlisted. Their worktrees stay."""

    def change(tx: Tx) -> list[str]:
        if not tx.run(SQL.remove, name=name):
            raise NotFound("MACHINE_NOT_FOUND", f"No machine {name!r} has a token.", Hint("list_machines"))
        resources.forget(tx, name)
        tx.emit("machine.removed", f"machine:{name}")
        return _workers(tx, name)

    workers = await ctx.write(change)
    for agent_id in workers:
        await departures.revoke_agent(ctx, agent_id, f"the machine {name} was removed")
    return RemovedMachine(machine=name, revoked=workers)


@op(allow=Level.ANONYMOUS, needs_server=True, tool=False)
async def enlist_elsewhere(
    ctx: Ctx,
    key: EnlistingKey,
    persona_id: SpawnPersona = None,
    name: DisplayName = None,
    profile: ProfileName = "script",
    facts: Annotated[MachineFacts | None, Field(description="What your machine has; shown to people.")] = None,
) -> EnlistedElsewhere:
    """Enlist a worker of the machine whose token you send: it is admitted at once, with a new worktree of its own.

    With the key of an earlier request, the same worker gets a new token; the one before is void.
    """
    machine = ctx.caller.machine
    if machine is None:
        text = "Send the token of a machine: `workbench machines add NAME` gives one."
        raise Unauthenticated("MACHINE_TOKEN_REQUIRED", text)
    launch = await to_thread(profiles.load, ctx.settings, profile)
    require_no_function(launch)
    told = MachineFacts.model_validate(ctx.secrets.masked(facts.model_dump())) if facts else None
    persona = persona_of(persona_id, None)
    newcomer = _Newcomer(machine, name or machine, persona, launch, access.token_hash(key), access.new_token("wba"))
    own = ctx.of(replace(SYSTEM, name=ctx.caller.name).coming_from(ctx.caller))
    return await ctx.local.repositories.shielded(_enlist(own, newcomer, told))


def require_no_function(profile: Profile) -> None:
    """Refuse a profile whose program calls a function of the project's.

    Raises:
        BadInput: ``BAD_FUNCTION``.
    """
    if any("{function}" in part for part in profile.command or ()):
        raise BadInput(
            "BAD_FUNCTION",
            f"The profile {profile.name} calls a function of the project, which is not sent to other machines. Choose "
            "another profile, or start the worker in the project, on its machine.",
        )


@dataclass(frozen=True, slots=True)
class _Newcomer:
    """A worker that is to be enlisted."""

    machine: str
    name: str
    persona_id: str
    profile: Profile
    key_hash: str | None = field(repr=False)
    token: str = field(repr=False)


async def _enlist(ctx: Ctx, newcomer: _Newcomer, facts: MachineFacts | None) -> EnlistedElsewhere:
    """Enlist a worker, or go on where an earlier request with its key ended."""
    ctx.allowlist.require_writable()
    agent_uid, worktree = await ctx.write(lambda tx: _find_or_register(tx, ctx, newcomer, facts))
    agent_id = await _make_ready(ctx, agent_uid, worktree)
    return EnlistedElsewhere(agent_id=agent_id, token=newcomer.token, worktree=worktree)


async def enlist_for(ctx: Ctx, machine: str, name: str | None, persona_id: str | None, profile: Profile) -> str:
    """Enlist a worker that is to be started on a machine from here; its internal id.

    Raises:
        TooMany: ``TOO_MANY_WORKERS``. WorkbenchError: see `persona_of`, `create_with_workplace`.
    """
    ctx.allowlist.require_writable()
    persona = persona_of(persona_id, None)
    newcomer = _Newcomer(machine, name or persona, persona, profile, None, access.new_token("wba"))
    agent_uid, worktree = await ctx.write(lambda tx: _register(tx, ctx, newcomer))
    await _make_ready(ctx, agent_uid, worktree)
    return agent_uid


async def _make_ready(ctx: Ctx, agent_uid: str, worktree: str) -> str:
    """Let a worker in that was registered, and make its worktree, unless it has one; its id."""
    agent = await ctx.read(lambda tx: agent_by_uid(tx, agent_uid))
    agent_id: str = agent["assigned_agent_id"]
    ctx.allowlist.admit(agent_id)
    if agent["assigned_worktree"] is None:
        try:
            await _make_worktree(ctx, agent_uid, worktree)
            await update_agent(ctx, agent_id, {"worktree": worktree})
        except WorkbenchError:
            await ctx.write(lambda tx: tx.run(SQL.forget_key, agent=agent_uid))
            await departures.revoke_agent(ctx, agent_id, "its worktree could not be created")
            raise
    return agent_id


def _find_or_register(tx: Tx, ctx: Ctx, newcomer: _Newcomer, facts: MachineFacts | None) -> tuple[str, str]:
    """Give the worker with the key its new token, or register one; its internal id and its worktree.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``. TooMany: ``TOO_MANY_WORKERS``. Conflict: ``KEY_TAKEN``.
        Unauthenticated: ``INVALID_TOKEN``: the machine was removed meanwhile.
    """
    if not tx.run(SQL.used, name=newcomer.machine, now=tx.now, facts=facts and facts.model_dump_json()):
        raise _unknown()
    if (row := tx.one(SQL.by_key, key_hash=newcomer.key_hash)) is not None:
        if row["machine"] != newcomer.machine:
            raise Conflict("KEY_TAKEN", "A worker of another machine has this key. Choose another at random.")
        agent_uid: str = row["agent_id"]
        if row["deleted_at"] is None and row["registration_status"] not in access.TURNED_AWAY:
            tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(newcomer.token))
            return agent_uid, row["worktree"]
        tx.run(SQL.forget_key, agent=agent_uid)
    return _register(tx, ctx, newcomer)


def _register(tx: Tx, ctx: Ctx, newcomer: _Newcomer) -> tuple[str, str]:
    machine, profile = newcomer.machine, newcomer.profile
    if len(_workers(tx, machine)) >= ctx.settings.max_workers_of_machine:
        raise TooMany(
            "TOO_MANY_WORKERS",
            f"{machine} has {ctx.settings.max_workers_of_machine} workers (max_workers_of_machine). Use their tokens, "
            "or have some of them revoked.",
            retry_after_seconds=60,
        )
    registered = add_pending(
        tx,
        ctx,
        newcomer.name,
        newcomer.token,
        capabilities=capabilities_of(profile),
        persona_id=newcomer.persona_id,
        profile=profile.name,
    )
    agent_uid: str = require_agent(tx, registered.agent_id)["id"]
    admit_at_once(tx, agent_uid, {"role": Role.WORKER})
    base = re.sub(r"[^a-z0-9_-]+", "-", newcomer.name.lower()).strip("-_")[:40] or "agent"
    worktree = access.free_id(base, {row["name"] for row in tx.all(SQL.taken_names, prefix=base)})
    values = {"machine": machine, "profile": profile.name, "worktree": worktree}
    tx.run(SQL.enlist, values, agent=agent_uid, key_hash=newcomer.key_hash)
    if profile.command is not None:
        holds.enlist(tx, agent_uid, profile.name, None)
    return agent_uid, worktree


async def _make_worktree(ctx: Ctx, agent_uid: str, worktree: str) -> None:
    """Make the worktree of a worker, unless an earlier request with its key has."""
    try:
        await create_with_workplace(ctx, worktree, Workplace())
    except Conflict as error:
        made = {"agent": agent_uid, "by": ctx.caller.name}
        if error.code != "WORKTREE_EXISTS" or await ctx.read(lambda tx: tx.one(SQL.made_for, made)) is None:
            raise


def _workers(tx: Reader, machine: str) -> list[str]:
    return [row["agent_id"] for row in tx.all(SQL.workers, machine=machine)]


async def identify(store: Store, token: str) -> Caller:
    """The caller with the token of a machine: it may enlist workers, besides what anybody may.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    row = await store.read_inline(lambda tx: tx.one(SQL.by_token, token_hash=access.token_hash(token)))
    if row is None:
        raise _unknown()
    return replace(ANONYMOUS, name=f"machine:{row['name']}", machine=row["name"])


def _unknown() -> Unauthenticated:
    return Unauthenticated(
        "INVALID_TOKEN", "No machine has this token (any more). `workbench machines list` says which do."
    )
