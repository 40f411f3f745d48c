"""The servers of a project, and the machines that share it by its database.

On SQLite there is one machine, and one server at a time. On PostgreSQL each machine has one: it says which machine it
is when it starts, and gives a sign of life every `BEAT_SECONDS`. Nobody judges a process of another machine by its pid.
"""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated, ClassVar

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import SECOND, Level, Micros, ServerInfo, Wire
from workbench.ops import SAID, SYSTEM, Columns, Command, Ctx, op
from workbench.ops.duties import duty
from workbench.process import has_ended, process_identity
from workbench.state.machine import Machine, name_of, place_of
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Store, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

BEAT_SECONDS = 5.0
DAY = 86_400 * SECOND
KEPT_DAYS = 30
"""Days for which ended servers are listed."""

MachineName = Annotated[str, Field(min_length=1, max_length=100, description="The machine's name; see list_servers.")]


class ServerOfProject(Wire):
    """A server of the project. `url` is its address on its own machine. `process` says which one it is there.

    `state`: silent: it has not ended, and gave no sign of life for `server_silent_seconds`. `is_this`: it answers now.
    """

    machine: str
    state: str
    url: str
    process: str
    started_at: Micros
    seen_at: Micros
    ended_at: Micros | None
    is_this: bool
    has_turn: bool
    """It performs what is done once in a project: schedules, notifications, …."""


class ServersOfProject(Wire):
    """Servers, the last started first. `machine` is the one that answers; `machines` are all that share the project."""

    SHOWN: ClassVar = Columns(
        "servers", "machine state url process seen_at=seen started_at=started", "No server of this project runs."
    )
    machine: str
    machines: list[str]
    servers: list[ServerOfProject]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("servers list"), refreshed_by="server clock")
async def list_servers(
    ctx: Ctx, ended: Annotated[bool, Field(description="Also those that have ended, of the last 30 days.")] = False
) -> ServersOfProject:
    """List the project's servers, each with its machine: on PostgreSQL, several machines can share a project."""
    rows, machines, now = await ctx.read(
        lambda tx: (tx.all(SQL.list, all=int(ended), now=tx.now), tx.all(SQL.machines), tx.now)
    )
    here = ctx.local.machine
    states = await to_thread(lambda: [_state(ctx, row, now) for row in rows])
    shown = [
        ServerOfProject(
            **{name: row[name] for name in ("machine", "url", "process", "started_at", "seen_at", "ended_at")},
            state=state,
            has_turn=here.is_alone or bool(row["has_turn"]),
            is_this=ctx.local.server is not None and ctx.local.server.nonce == row["nonce"],
        )
        for row, state in zip(rows, states, strict=True)
        if ended or state != "ended"
    ]
    names = [row["name"] for row in machines] or [here.name]
    return ServersOfProject(machine=here.name, machines=names, servers=shown)


class Forgotten(Wire):
    """A machine that is gone for good; `to` has what was recorded of it."""

    machine: str
    to: str


@op(
    allow=Level.OPERATOR,
    tool=False,
    destructive=True,
    command=Command(
        "servers forget MACHINE",
        "{machine} is forgotten; what was recorded of it is {to}'s now. Files of its worktrees that are not here are "
        "lost.",
        asks="Is {machine} gone for good, with the files of its worktrees?",
    ),
)
async def forget_machine(ctx: Ctx, machine: Annotated[MachineName, SAID]) -> Forgotten:
    """Give this machine what is recorded of one that is gone for good: its worktrees can be discarded here then."""
    to = ctx.local.machine.name

    def change(tx: Tx) -> None:
        if ctx.local.machine.has(machine) or machine not in {row["name"] for row in tx.all(SQL.machines)}:
            raise NotFound("MACHINE_NOT_FOUND", f"No other machine of this project is called {machine!r}.")
        if tx.all(SQL.running_on, machine=machine, since=tx.now - silence(ctx.settings)):
            raise Conflict("MACHINE_IN_USE", f"A server runs on {machine}. Stop it there: `workbench stop`.")
        _move(tx, machine, to)
        tx.run(SQL.leave, name=machine)
        tx.emit("machine.forgotten", f"machine:{machine}", to=to)

    await ctx.write(change)
    return Forgotten(machine=machine, to=to)


async def join(store: Store, settings: Settings) -> Machine:
    """This machine, as it takes part in the project; what was recorded before any machine took part is its.

    Raises:
        Conflict: ``MACHINE_NAME_TAKEN``: the settings name it as another one is named.
    """
    if settings.database_url is None:
        return Machine(name_of(settings))
    name, identity = await to_thread(lambda: (name_of(settings), place_of(settings.home)))
    home = str(settings.project)
    rows = await store.read(lambda tx: tx.all(SQL.machines))
    known = next((row for row in rows if row["identity"] == identity), None)
    if known is not None and known["home"] == home and (not settings.machine or known["name"] == name):
        return Machine(known["name"], is_alone=False)
    joined = await store.write(lambda tx: _join(tx, name, identity, home, is_stated=bool(settings.machine)))
    return Machine(joined, is_alone=False)


def _join(tx: Tx, name: str, identity: str, home: str, *, is_stated: bool) -> str:
    rows = tx.all(SQL.machines)
    known = next((row for row in rows if row["identity"] == identity), None)
    others = {row["name"]: row for row in rows if row["identity"] != identity}
    if known is not None and not is_stated:
        tx.run(SQL.move_home, identity=identity, home=home)
        return str(known["name"])
    if name in others and is_stated:
        raise Conflict(
            "MACHINE_NAME_TAKEN",
            f"Another machine of this project is called {name!r}: its clone is at {others[name]['home']} there. Give "
            "this one another name in the setting machine; if the other is gone for good, `workbench servers forget "
            f"{name}` on a third one frees the name.",
        )
    name = next(each for each in _names(name) if each not in others)
    if known is not None:
        _move(tx, known["name"], name)
        tx.run(SQL.rename, identity=identity, name=name, home=home)
    else:
        tx.run(SQL.join, name=name, identity=identity, home=home, now=tx.now)
        if not rows:
            _move(tx, None, name)
    tx.emit("machine.joined", f"machine:{name}", home=home)
    return name


def _names(name: str) -> list[str]:
    return [name, *(f"{name}-{number}" for number in range(2, 1_000))]


def _move(tx: Tx, of: str | None, to: str) -> None:
    """Give a machine what is recorded of another one; None: all there is."""
    for query in (
        SQL.worktrees_to,
        SQL.steps_to,
        SQL.closed_to,
        SQL.spawns_to,
        SQL.attempts_to,
        SQL.schedules_to,
        SQL.servers_to,
        SQL.resources_to,
        SQL.leases_to,
        SQL.waits_to,
        SQL.runs_to,
        SQL.koi_to,
    ):
        tx.run(query, of=of, to=to)


def begin(tx: Tx, ctx: Ctx, server: ServerInfo) -> int:
    """Record that a server starts; earlier ones of its machine have ended. Until when it has the turn; see `beat`."""
    machine = ctx.local.machine
    if not machine.is_alone:
        tx.run(SQL.end_turn_of_machine, machine=machine.name)
    tx.run(SQL.end_earlier, nonce=server.nonce, machine=machine.only, now=tx.now)
    tx.run(SQL.forget, before=tx.now - KEPT_DAYS * DAY)
    about = {"nonce": server.nonce, "machine": machine.name, "process": process_identity(), "url": server.url}
    tx.run(SQL.begin, about, now=tx.now)
    if machine.is_alone:
        return 0
    tx.emit("server.started", f"server:{server.nonce}", machine=machine.name)
    return _take_turn(tx, ctx, server.nonce)


def end(tx: Tx, machine: Machine, nonce: str) -> None:
    """Record that a server ends; if it was its turn, another one takes it."""
    tx.run(SQL.end_turn, nonce=nonce)
    if tx.run(SQL.end, nonce=nonce, now=tx.now) and not machine.is_alone:
        tx.emit("server.stopped", f"server:{nonce}", machine=machine.name)


def left_connected(tx: Reader, settings: Settings) -> set[str]:
    """The servers that hold connections, by nonce, and have ended or give no sign of life."""
    return {row["server"] for row in tx.all(SQL.left_connected, since=tx.now - silence(settings))}


def others_run(tx: Reader, ctx: Ctx) -> bool:
    """Whether the server of another machine runs, by its signs of life."""
    return bool(running_elsewhere(tx, ctx))


def running_elsewhere(tx: Reader, ctx: Ctx) -> dict[str, str]:
    """The servers of other machines that run, by nonce, each with its machine."""
    if ctx.local.machine.is_alone:
        return {}
    since = tx.now - silence(ctx.settings)
    return {
        row["nonce"]: row["machine"]
        for row in tx.all(SQL.list, all=0, now=tx.now)
        if not ctx.local.machine.has(row["machine"]) and row["seen_at"] >= since
    }


def silence(settings: Settings) -> int:
    """How long a server may be silent before it counts as gone, in microseconds."""
    return int(settings.server_silent_seconds * SECOND)


@duty("telling that the server runs", BEAT_SECONDS)
async def beat(ctx: Ctx) -> None:
    """Give a sign of life, if other machines could ask for one, and take the project's turn if it is free."""
    server = ctx.local.server
    if server is None or ctx.local.machine.is_alone:
        return

    def change(tx: Tx) -> int:
        tx.run(SQL.beat, nonce=server.nonce, now=tx.now)
        return _take_turn(tx, ctx, server.nonce)

    ctx.local.turn.until = await ctx.of(SYSTEM).write(change, durable=False)


def _take_turn(tx: Tx, ctx: Ctx, server: str) -> int:
    """Take the project's turn, or keep it; until when, or 0 if another server has it."""
    until = tx.now + silence(ctx.settings)
    return until if tx.run(SQL.take_turn, nonce=server, until=until, now=tx.now) else 0


def _state(ctx: Ctx, row: Row, now: int) -> str:
    """Whether a server runs: by its process if it is of this machine, else by its last sign of life."""
    if row["ended_at"] is not None:
        return "ended"
    if ctx.local.machine.has(row["machine"]) and (is_over := has_ended(row["process"])) is not None:
        return "ended" if is_over else "running"
    return "running" if row["seen_at"] >= now - silence(ctx.settings) else "silent"
