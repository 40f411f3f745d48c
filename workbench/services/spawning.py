"""Spawning agents: who may, where, with what; waiting for room; starting again.

An agent has one process at a time, and the same identity in all of them. Its token is made anew each time a process
is started, and is nowhere but in that process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from workbench.confinement import Box, Limits
from workbench.errors import BadInput, Conflict, NotFound, Refused, Unavailable, WorkbenchError
from workbench.model import Level, Registration, Wire
from workbench.ops import Ctx, op
from workbench.process import ProcessRef
from workbench.rules import access, lifecycle
from workbench.rules.profile import RESERVED, Profile
from workbench.services import approvals, confinement, profiles, registration, tasks, vault, workers, worktrees
from workbench.services.confinement import Confinement, confinement_of
from workbench.services.personas import require_persona
from workbench.services.registration import Registered
from workbench.services.repositories import place_of
from workbench.services.workers import LimitsOf
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.worker import scratch as directories
from workbench.worker.orders import Orders, Place

SQL = beside(__file__)

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

log = logging.getLogger(__name__)

Environment = Annotated[
    dict[str, str],
    Field(max_length=100, description="Extra variables; not WORKBENCH_*, LD_*, GIT_* or PYTHON*."),
]
TaskId = Annotated[int | None, Field(description="The one task it is for, then it ends; null: whatever it can claim.")]


class Spawned(Wire):
    """An agent with a process, or that waits for one (`queued`). It works once its registration is approved."""

    agent_id: str
    status: Registration
    approval_id: int | None
    state: Literal["running", "queued"]
    pid: int | None
    worktree: str | None
    log: str
    confinement: Confinement


class Enlisted(Wire):
    """A worker that somebody runs by hand, and its orders as JSON; the agent's token is in them."""

    agent_id: str
    orders: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What an agent is spawned with; kept, so that it can be started again."""

    profile: str
    function: str | None
    task_id: int | None
    limits: LimitsOf
    mcp: bool
    has_environment: bool

    def as_json(self) -> str:
        """As it is stored. The environment is not in it."""
        names = ("function", "task_id", "mcp", "has_environment")
        kept = {name: getattr(self, name) for name in names}
        return json.dumps(kept | {"limits": self.limits.model_dump(exclude_none=True)})

    @classmethod
    def of(cls, row: Row) -> Wish:
        """What a row of `spawns` says."""
        said: dict[str, Any] = json.loads(row["orders"])
        return cls(
            row["profile"],
            said.get("function"),
            said.get("task_id"),
            LimitsOf(**said.get("limits", {})),
            bool(said.get("mcp")),
            bool(said.get("has_environment")),
        )


@op(allow=Level.PLANNER, needs_server=True)
async def spawn_agent(
    ctx: Ctx,
    persona_id: str,
    assigned_worktree: Annotated[
        str | None, Field(description="The worktree the agent works in and may not leave; the task's when null.")
    ] = None,
    new_worktree: Annotated[bool, Field(description="Make the worktree; of a free name, if none is given.")] = False,
    name: Annotated[str | None, Field(min_length=1, max_length=100)] = None,
    environment: Environment = {},
    profile: Annotated[str, Field(description="How it works: script runs each task's command; see list_profiles.")] = (
        "script"
    ),
    function: Annotated[str | None, Field(description="For the profile python: package.module:name.")] = None,
    task_id: TaskId = None,
    limits: LimitsOf = LimitsOf(),
    mcp: Annotated[bool, Field(description="Talk to the server over MCP instead of plain HTTP.")] = False,
    approve: Annotated[
        Literal["auto", "ask"],
        Field(description="Whether the operator's spawn is admitted at once; a planner's always asks."),
    ] = "auto",
) -> Spawned:
    """Start a worker process with its own identity. It registers, waits for approval, then takes tasks.

    When as many run as may, it waits for room, in the order of asking.
    """
    check_environment(environment)
    wish = Wish(profile, function, task_id, limits, mcp, bool(environment))
    await _check_profile(ctx, wish)
    confinement_of(ctx.settings)
    worktree = await ctx.read(lambda tx: _check(tx, ctx, persona_id, assigned_worktree, task_id, new_worktree))
    if new_worktree:
        worktree = await _make_worktree(ctx, worktree, name or persona_id)
    made, internal, at_once = await _enter(ctx, name or persona_id, persona_id, worktree, wish)
    try:
        await asyncio.to_thread(vault.keep, ctx.settings, internal, environment)
        agent_id, status = await _admitted(ctx, made, approve)
        pid = await _launch(ctx, internal) if at_once else None
    except WorkbenchError as error:
        reason = error.message
        await ctx.write(lambda tx: workers.give_up(tx, internal, reason))
        await asyncio.to_thread(vault.forget, ctx.settings, internal)
        raise
    return _spawned(ctx, internal, agent_id, status, made.approval_id, pid, worktree)


@op(allow=Level.PLANNER, needs_server=True, destructive=True)
async def restart_agent(ctx: Ctx, agent_id: str) -> Spawned:
    """End the process of an agent you spawned, if it runs, and start another: same identity and orders, new token."""

    def question(tx: Reader) -> tuple[Row, Row]:
        agent = registration.require_agent(tx, agent_id)
        workers.require_authority(ctx.caller, agent)
        workers.require_spawn(tx, agent_id, agent["id"])
        if agent["registration_status"] in (Registration.REJECTED, Registration.REVOKED):
            raise Conflict("WRONG_STATE", f"{agent_id} is {agent['registration_status']}. Spawn another.")
        spawn = tx.one(SQL.get, agent=agent["id"])
        assert spawn is not None, "it was there a moment ago"
        check_place(tx, ctx, agent["assigned_worktree"])
        return agent, spawn

    agent, spawn = await ctx.read(question)
    internal: str = agent["id"]
    await _check_profile(ctx, Wish.of(spawn))
    await _environment_of(ctx, internal, Wish.of(spawn))
    confinement_of(ctx.settings)
    await workers.end(ctx, internal, "it is started again", keep=True)

    def change(tx: Tx) -> bool:
        tx.run(SQL.queue_again, agent=internal, now=tx.now)
        tx.emit("agent.restarted", f"agent:{internal}", session=agent["session_id"])
        return _take_slot(tx, ctx, internal)

    try:
        pid = await _launch(ctx, internal) if await ctx.write(change) else None
    except WorkbenchError as error:
        reason = error.message
        await ctx.write(lambda tx: workers.give_up(tx, internal, reason))
        raise
    status = Registration(agent["registration_status"])
    return _spawned(ctx, internal, agent_id, status, None, pid, agent["assigned_worktree"])


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def enlist_worker(
    ctx: Ctx,
    persona_id: str,
    scratch: Annotated[str, Field(description="An empty directory of its own; who runs it removes it.")],
    assigned_worktree: str | None = None,
    new_worktree: bool = False,
    name: Annotated[str | None, Field(min_length=1, max_length=100)] = None,
    environment: Environment = {},
    profile: str = "script",
    function: str | None = None,
    task_id: TaskId = None,
    limits: LimitsOf = LimitsOf(),
    mcp: bool = False,
) -> Enlisted:
    """Admit a worker that a person runs by hand (`workbench worker`); the orders are for its standard input."""
    check_environment(environment)
    wish = Wish(profile, function, task_id, limits, mcp, bool(environment))
    await _check_profile(ctx, wish)
    held = confinement_of(ctx.settings)
    worktree = await ctx.read(lambda tx: _check(tx, ctx, persona_id, assigned_worktree, task_id, new_worktree))
    if new_worktree:
        worktree = await _make_worktree(ctx, worktree, name or persona_id)
    token = access.new_token("wba")

    def change(tx: Tx) -> Registered:
        more = {"persona_id": persona_id, "worktree": worktree, "profile": profile}
        return registration.add_pending(tx, ctx, name or persona_id, token, capabilities={}, **more)

    made = registration.entered(ctx, await ctx.write(change))
    agent_id, _ = await _admitted(ctx, made, "auto")
    place = await ctx.read(lambda tx: _place(tx, ctx, worktree))
    borrowed = await _borrowed(ctx, place)
    orders = await asyncio.to_thread(_orders, ctx, wish, place, borrowed, token, Path(scratch), environment, held)
    return Enlisted(agent_id=agent_id, orders=orders.as_json())


async def start_queued(ctx: Ctx) -> None:
    """Start those that wait, as far as there is room; what cannot be started waits no longer."""
    if not await ctx.read(lambda tx: _startable(tx, ctx)):
        return
    for internal in await ctx.write(lambda tx: _take_slots(tx, ctx)):
        try:
            await _launch(ctx, internal)
        except WorkbenchError as error:
            reason, agent = error.message, internal
            log.warning("%s: %s", error.code, error.message)
            await ctx.write(lambda tx, agent=agent, reason=reason: workers.give_up(tx, agent, reason))  # type: ignore[misc]


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


def check_place(tx: Reader, ctx: Ctx, worktree: str | None) -> None:
    """Refuse a place where no agent of the caller's may work.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Refused: ``FORBIDDEN``, ``WORKTREE_REQUIRED``.
        BadInput: ``BAD_WORKTREE_NAME``.
    """
    if worktree is None:
        if not ctx.settings.spawn_outside_worktrees:
            raise Refused("WORKTREE_REQUIRED", "Agents work in worktrees here. Name one, or ask for a new one.")
        return
    worktrees.check_owner(ctx.caller, _active(tx, access.check_worktree_name(worktree)))


def _active(tx: Reader, worktree: str) -> Row:
    row = tx.one(worktrees.SQL.get, name=worktree)
    if row is None or row["status"] != "active":
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no active worktree {worktree!r}. Create it first.")
    return row


def _place(tx: Reader, ctx: Ctx, worktree: str | None) -> Place | None:
    if worktree is None:
        return None
    row = _active(tx, worktree)
    lies = place_of(ctx, row)
    return Place(worktree, lies.path, lies.git_dir, row["branch_name"])


def _check(
    tx: Reader, ctx: Ctx, persona_id: str, worktree: str | None, task_id: int | None, new_worktree: bool
) -> str | None:
    """Refuse what could never work; the worktree that was meant."""
    persona = require_persona(tx, persona_id)
    if task_id is not None:
        task = tasks.seen(tx, ctx.caller, task_id)
        if task["status"] not in lifecycle.OPEN:
            raise Conflict("WRONG_STATE", f"Task {task_id} is {task['status']}.", status=task["status"])
        if task["persona_id"] != persona.id or (task["worktree"] and worktree not in (None, task["worktree"])):
            where = f" in the worktree {task['worktree']}" if task["worktree"] else ""
            raise Conflict("TASK_DOES_NOT_FIT", f"Task {task_id} is for a {task['persona_id']}{where}.")
        worktree = worktree or task["worktree"] or None
    if not new_worktree:
        check_place(tx, ctx, worktree)
    return worktree


async def _check_profile(ctx: Ctx, wish: Wish) -> None:
    profile = await asyncio.to_thread(profiles.load, ctx.settings, wish.profile)
    if lacks := profiles.missing(profile):
        raise Unavailable(
            "PROFILE_UNAVAILABLE",
            f"The profile {profile.name} needs {', '.join(lacks)}, which is not here.",
            needs=lacks,
        )
    wants = any("{function}" in part for part in profile.command or ())
    if wants != bool(wish.function) or (wish.function and not _FUNCTION.fullmatch(wish.function)):
        what = "a function, as package.module:name" if wants else "no function"
        raise BadInput("BAD_FUNCTION", f"The profile {profile.name} takes {what}.")


async def _make_worktree(ctx: Ctx, name: str | None, like: str) -> str:
    """A new worktree of the caller's; its name."""
    if name is None:
        base = re.sub(r"[^a-z0-9_-]+", "-", like.lower()).strip("-_")[:40] or "agent"
        taken = {row["name"] for row in await ctx.read(lambda tx: tx.all(SQL.taken_names, prefix=base))}
        name = access.free_id(base, taken)
    return (await worktrees.create_worktree(ctx, name)).name


async def _enter(
    ctx: Ctx, name: str, persona_id: str, worktree: str | None, wish: Wish
) -> tuple[Registered, str, bool]:
    """Register the agent and its place in the queue, in one transaction; its internal id; whether there is room."""

    def change(tx: Tx) -> tuple[Registered, str, bool]:
        waiting = len(tx.all(SQL.queue))
        if waiting >= ctx.settings.max_agents_queued:
            raise Unavailable(
                "TOO_MANY_AGENTS",
                f"{waiting} agents wait for room, as many as the setting max_agents_queued allows. "
                "Terminate one, or wait until one ends.",
            )
        made = registration.add_pending(
            tx,
            ctx,
            name,
            access.new_token("wba"),
            capabilities={},
            persona_id=persona_id,
            worktree=worktree,
            parent=ctx.caller.agent,
            profile=wish.profile,
        )
        agent: str = registration.require_agent(tx, made.agent_id)["id"]
        values = {"agent": agent, "profile": wish.profile, "orders": wish.as_json(), "parent": ctx.caller.agent}
        tx.run(SQL.add, values, now=tx.now)
        return made, agent, _take_slot(tx, ctx, agent)

    made, internal, at_once = await ctx.write(change)
    return registration.entered(ctx, made), internal, at_once


async def _admitted(ctx: Ctx, made: Registered, approve: str) -> tuple[str, Registration]:
    if approve != "auto" or ctx.caller.level is not Level.OPERATOR:
        return made.agent_id, made.status
    decision = await approvals.approve(ctx, made.approval_id)
    return decision.outcome["agent_id"], Registration(decision.outcome["status"])


# Room.


def _startable(tx: Reader, ctx: Ctx) -> list[Row]:
    """Those of the queue for whom there is room, in its order; nobody waits for a planner that has its share."""
    busy = tx.all(SQL.busy)
    room = ctx.settings.max_agents_running - len(busy)
    shares = Counter(row["spawned_by"] for row in busy if row["spawned_by"])
    found: list[Row] = []
    for row in tx.all(SQL.queue):
        if len(found) >= room:
            break
        if row["spawned_by"] and shares[row["spawned_by"]] >= ctx.settings.max_agents_per_planner:
            continue
        shares[row["spawned_by"]] += 1
        found.append(row)
    return found


def _take_slot(tx: Tx, ctx: Ctx, agent: str) -> bool:
    """Let an agent start if there is room; else it waits in the queue, and that is told."""
    if agent in {row["agent_id"] for row in _startable(tx, ctx)}:
        tx.run(SQL.starting, agent=agent)
        return True
    tx.emit("agent.queued", f"agent:{agent}")
    return False


def _take_slots(tx: Tx, ctx: Ctx) -> list[str]:
    taken = []
    for row in _startable(tx, ctx):
        if row["deleted_at"] is not None or row["registration_status"] not in (
            *access.MAY_ACT,
            Registration.PENDING,
        ):
            workers.give_up(tx, row["agent_id"], "it is not admitted any more")
        else:
            tx.run(SQL.starting, agent=row["agent_id"])
            taken.append(row["agent_id"])
    return taken


# Starting.


async def _launch(ctx: Ctx, internal: str) -> int:
    """Start the process of an agent that was given room; its pid.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Unavailable: ``SPAWN_FAILED``, …. Conflict: ``NOT_RUNNING``: ended meanwhile.
    """
    spawn, place = await ctx.read(lambda tx: _given_room(tx, ctx, internal))
    wish, token = Wish.of(spawn), access.new_token("wba")
    environment = await _environment_of(ctx, internal, wish)
    held = confinement_of(ctx.settings)
    await ctx.write(lambda tx: tx.run(SQL.new_token, agent=internal, token_hash=access.token_hash(token)))
    own = await asyncio.to_thread(_scratch)
    try:
        borrowed = await _borrowed(ctx, place)
        orders = await asyncio.to_thread(_orders, ctx, wish, place, borrowed, token, own, environment, held)
        ref = await asyncio.to_thread(_process, ctx, internal, orders)
        await _note(ctx, internal, wish, ref, own, held)
    except (WorkbenchError, OSError) as error:
        await asyncio.to_thread(directories.remove, own)
        raise error if isinstance(error, WorkbenchError) else _not_started(error) from error
    return ref.pid


def _scratch() -> Path:
    """A new directory for an agent's tasks. Blocks."""
    try:
        return Path(tempfile.mkdtemp(prefix="workbench-"))
    except OSError as error:
        raise _not_started(error) from error


def _not_started(error: OSError) -> Unavailable:
    return Unavailable("SPAWN_FAILED", f"The agent cannot be started: {error}.")


def _given_room(tx: Reader, ctx: Ctx, internal: str) -> tuple[Row, Place | None]:
    spawn = tx.one(SQL.get, agent=internal)
    assert spawn is not None, "it was given room"
    return spawn, _place(tx, ctx, spawn["assigned_worktree"])


def _process(ctx: Ctx, internal: str, orders: Orders) -> ProcessRef:
    """Start the process. Blocks."""
    return ctx.processes.start(
        [sys.executable, "-P", "-m", "workbench.worker"],
        cwd=orders.place.path if orders.place else orders.scratch,
        env=_environment(ctx),
        stdin_text=orders.as_json(),
        log=workers.log_of(ctx, internal),
    )


async def _note(ctx: Ctx, internal: str, wish: Wish, ref: ProcessRef, own: Path, held: Confinement) -> None:
    """Write down the process of an agent, unless it was ended meanwhile: then so is the process."""
    began = {"agent": internal, "scratch": str(own), "confinement": held.model_dump_json()}
    values = {"agent": internal, "pid": ref.pid, "started": ref.started, "profile": wish.profile}

    def change(tx: Tx) -> bool:
        if not tx.run(SQL.started, began):
            return False
        tx.run(SQL.process, values, log=str(workers.log_of(ctx, internal)), now=tx.now)
        told = {"pid": ref.pid, "profile": wish.profile, "enforced": held.enforced}
        tx.emit("agent.spawned", f"agent:{internal}", **told, missing=held.missing)
        return True

    try:
        noted = await ctx.write(change)
    except WorkbenchError:
        noted = False
    if not noted:
        await asyncio.to_thread(ctx.processes.terminate, ref, 0.0)
        ctx.processes.forget(ref)
        raise Conflict("NOT_RUNNING", "The agent was ended while its process was started.")


def _orders(
    ctx: Ctx,
    wish: Wish,
    place: Place | None,
    borrowed: Sequence[Path],
    token: str,
    own: Path,
    environment: Mapping[str, str],
    held: Confinement,
) -> Orders:
    """What the worker is told. Blocks."""
    assert ctx.server is not None, "it needs the server"
    settings, profile = ctx.settings, profiles.load(ctx.settings, wish.profile)
    return Orders(
        url=ctx.server.url,
        token=token,
        scratch=own,
        box=_box(ctx, profile, place, borrowed, own),
        project=settings.project,
        profile=profile,
        agent_mcp_url=ctx.server.mcp_url,
        place=place,
        function=wish.function,
        task_id=wish.task_id,
        limits=Limits(**wish.limits.model_dump()),
        environment=environment,
        missing=held.missing,
        mcp_url=ctx.server.mcp_url if wish.mcp else None,
        server_file=settings.server_file,
        heartbeat_seconds=settings.heartbeat_seconds,
        patience_seconds=settings.worker_patience_seconds,
        grace_seconds=settings.terminate_grace_seconds / 4,
    )


async def _borrowed(ctx: Ctx, place: Place | None) -> Sequence[Path]:
    """The object directories that a worktree's repository borrows from."""
    if place is None:
        return ()
    repository = await ctx.repositories.open()
    return await asyncio.to_thread(repository.object_directories)


def _box(ctx: Ctx, profile: Profile, place: Place | None, borrowed: Sequence[Path], own: Path) -> Box:
    """What the commands of an agent may touch. Without a worktree: nothing but its scratch directory is written, and
    the project is read but for what begins with a dot."""
    settings = ctx.settings
    assert ctx.server is not None, "it needs the server"
    server = urlsplit(ctx.server.url).port or 0
    read = [*profiles.programs(profile), *(Path(path).expanduser() for path in profile.read)]
    if place is None:
        read += [entry for entry in settings.project.iterdir() if not entry.name.startswith(".")]
    return confinement.box(
        settings,
        worktree=place.path if place else own,
        git_dir=place.git_dir if place else own,
        objects=borrowed,
        scratch=own,
        read=read,
        connect=[server if port == "server" else port for port in profile.connect],
    )


def _environment(ctx: Ctx) -> dict[str, str]:
    """The person's environment without what could steer the worker, its interpreter first in PATH."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(RESERVED)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return kept | {"PATH": path, "WORKBENCH_PROJECT": str(ctx.settings.project)}


async def _environment_of(ctx: Ctx, internal: str, wish: Wish) -> dict[str, str]:
    if not wish.has_environment:
        return {}
    kept = await asyncio.to_thread(vault.recall, ctx.settings, internal)
    if kept is None:
        raise Unavailable("ENVIRONMENT_LOST", "The variables it was spawned with are not kept any more. Spawn another.")
    return kept


def _spawned(
    ctx: Ctx,
    internal: str,
    agent_id: str,
    status: Registration,
    approval_id: int | None,
    pid: int | None,
    worktree: str | None,
) -> Spawned:
    return Spawned(
        agent_id=agent_id,
        status=status,
        approval_id=approval_id,
        state="queued" if pid is None else "running",
        pid=pid,
        worktree=worktree,
        log=str(workers.log_of(ctx, internal)),
        confinement=confinement_of(ctx.settings),
    )
