"""Workers of machines that have no clone of the project and share no path with it.

A person gives such a machine a token, which enlists workers and does nothing else. Each worker has a token and a
worktree of its own, whose branch it takes and returns as bundles; see `workbench.services.worktrees.sending`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound, TooMany, Unauthenticated, WorkbenchError
from workbench.model import Level, Micros, Role, Wire
from workbench.ops import ANONYMOUS, SAID, SYSTEM, Caller, Columns, Command, Ctx, op
from workbench.rules import access
from workbench.rules.workplace import Workplace
from workbench.services import approvals
from workbench.services.access.personas import require_persona
from workbench.services.agents.register import Registered, add_pending
from workbench.services.agents.rows import require_agent
from workbench.services.processes import departures
from workbench.services.spawning.request import DisplayName, SpawnPersona
from workbench.services.spawning.workplace import make_worktree
from workbench.store.base import Reader, Store, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

TOKEN = "wbh"
"""The kind of a machine's token."""
MachineName = Annotated[
    str,
    SAID,
    Field(max_length=50, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="What the machine is called here."),
]


class AddedMachine(Wire):
    """A machine whose workers may be enlisted with `token`, which is returned only this once."""

    machine: str
    token: str


class EnlistingMachine(Wire):
    """A machine that has a token. `workers`: those that it has enlisted and that may still act."""

    name: str
    added_by: str
    added_at: Micros
    used_at: Micros | None
    workers: int


class EnlistingMachines(Wire):
    """The machines that have a token to enlist workers, by name."""

    SHOWN: ClassVar = Columns(
        "machines", "name workers used_at=used added_at=added added_by", "No machine has a token to enlist workers."
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
    """List the machines that have a token to enlist workers; list_servers has those that share the project's store."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list))
    return EnlistingMachines(machines=[EnlistingMachine(**dict(row)) for row in rows])


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
        tx.emit("machine.removed", f"machine:{name}")
        return _workers(tx, name)

    workers = await ctx.write(change)
    for agent_id in workers:
        await departures.revoke_agent(ctx, agent_id, f"the machine {name} was removed")
    return RemovedMachine(machine=name, revoked=workers)


@op(allow=Level.ANONYMOUS, needs_server=True, tool=False)
async def enlist_elsewhere(ctx: Ctx, persona_id: SpawnPersona = None, name: DisplayName = None) -> EnlistedElsewhere:
    """Enlist a worker of the machine whose token you send: it is admitted at once, with a new worktree of its own."""
    machine = ctx.caller.machine
    if machine is None:
        text = "Send the token of a machine: `workbench machines add NAME` gives one."
        raise Unauthenticated("MACHINE_TOKEN_REQUIRED", text)
    own, token = ctx.of(replace(SYSTEM, name=ctx.caller.name).coming_from(ctx.caller)), access.new_token("wba")
    registered = await own.write(lambda tx: _register(tx, own, machine, name or machine, persona_id, token))
    try:
        worktree = await make_worktree(own, None, name or machine, Workplace())
    except WorkbenchError:
        await approvals.reject(own, registered.approval_id, "its worktree could not be created")
        raise
    choices = {"role": Role.WORKER, "worktree": worktree}
    decision = await approvals.approve(own, registered.approval_id, choices)
    return EnlistedElsewhere(agent_id=decision.outcome["agent_id"], token=token, worktree=worktree)


def _register(tx: Tx, ctx: Ctx, machine: str, name: str, persona_id: str | None, token: str) -> Registered:
    """Register a worker of a machine.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``. TooMany: ``TOO_MANY_WORKERS``.
        Unauthenticated: ``INVALID_TOKEN``: the machine was removed meanwhile.
    """
    if not tx.run(SQL.used, name=machine, now=tx.now):
        raise _unknown()
    if len(_workers(tx, machine)) >= ctx.settings.max_workers_of_machine:
        raise TooMany(
            "TOO_MANY_WORKERS",
            f"{machine} has {ctx.settings.max_workers_of_machine} workers (max_workers_of_machine). Use their tokens, "
            "or have some of them revoked.",
            retry_after_seconds=60,
        )
    if persona_id:
        require_persona(tx, persona_id)
    registered = add_pending(tx, ctx, name, token, capabilities={}, persona_id=persona_id)
    tx.run(SQL.enlist, agent=require_agent(tx, registered.agent_id)["id"], machine=machine)
    return registered


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
