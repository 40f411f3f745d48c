"""Agents' processes: which ones run, what they use, and how they ended.

They are started in `workbench.services.spawning` and ended in `termination`. The variables that an agent was spawned
with are kept for restarts in files that only their owner can read. They are not in the store, because its rows are
exported, queried and backed up, and variables often hold secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workbench.errors import NotFound, Refused, Unavailable
from workbench.model import Int64, Level, Micros, Wire
from workbench.ops import OPERATOR, Caller, Ctx, op
from workbench.ops.parameters import AgentId
from workbench.process import TreeUsage
from workbench.services.agents import directory
from workbench.services.agents.directory import AgentInfo
from workbench.services.agents.rows import require_agent
from workbench.services.processes.sandbox import ELSEWHERE, Confinement
from workbench.services.processes.termination import process_of
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

TAIL_BYTES = 256_000


class Tail(NamedTuple):
    """Lines of a log, and the byte up to which they were read."""

    lines: list[str]
    after: int | None


class ResourceLimits(Wire):
    """Limits of each task's command with everything it starts."""

    cpu_seconds: float | None = Field(None, gt=0, description="Seconds of processor time.")
    memory_bytes: Annotated[Int64, Field(ge=1_000_000)] | None = Field(None, description="Bytes of memory.")
    wall_seconds: float | None = Field(None, gt=0, description="Seconds from start to end.")
    tasks: Annotated[Int64, Field(ge=1)] | None = Field(None, description="Attempts after which the agent ends.")


class Child(Wire):
    """A descendant of an agent's process."""

    pid: int
    name: str
    cpu_seconds: float
    memory_bytes: int


class Process(Wire):
    """The process of a spawned agent, with everything it started. `log_tail` has the last lines of its log, up to the
    byte `log_after`, or those after the one that you gave; the last one when it is complete, or the process ended.

    `cpu_percent` is in percent of one processor, since the previous call or, for the first one, since the start.
    `reason` says why the process ended or, while it runs, why it could not be ended. `definition_hash` is the version
    of its definition that it was started with, `prompt_hash` that of the system prompt it was given, with the rules and
    references in `include`.
    """

    agent_id: str
    machine: str
    """The machine that it runs on. Of one on another machine, its use, its descendants and its log are known there; of
    one on a machine without a clone, the log is here, and the use is that of ssh, if that has started it; else it
    counts as ended once it was silent for `silent_seconds`."""
    state: Literal["queued", "running", "ended"]
    running: bool
    pid: int | None
    profile: str
    mode: Literal["queue", "task"]
    task_id: int | None
    worktree: str | None
    definition: str | None
    definition_hash: str | None
    prompt_hash: str | None
    include: list[str] | None
    limits: ResourceLimits
    confinement: Confinement
    cpu_seconds: float
    cpu_percent: float
    memory_bytes: int
    children: list[Child]
    exit_code: int | None
    reason: str | None
    spawned_at: Micros
    ended_at: Micros | None
    log: str
    log_tail: list[str]
    log_after: int | None
    queue_place: int | None


class ManagedAgent(AgentInfo):
    """An agent that was spawned, with its process."""

    process: Process | None


class ManagedAgents(Wire):
    """Agents that were spawned, oldest first."""

    agents: list[ManagedAgent]


@op(allow=Level.PLANNER, reads=True, command="ps", refreshed_by="agent")
async def get_managed_agents(ctx: Ctx) -> ManagedAgents:
    """List the agents you spawned, with their processes. The operator gets all spawned agents."""

    def question(tx: Reader) -> list[tuple[Row, Row | None]]:
        rows = tx.all(SQL.managed, parent=ctx.caller.agent)
        return [(row, tx.one(SQL.of_agent, agent=row["id"])) for row in rows]

    rows = await ctx.read(question)
    usages = await _usages(ctx, [process for _, process in rows if process])
    agents = []
    for agent, row in rows:
        process = _process(ctx, agent["assigned_agent_id"], row, usages.get(agent["id"])) if row else None
        agents.append(ManagedAgent(**directory.agent_of(ctx, agent).model_dump(), process=process))
    return ManagedAgents(agents=agents)


@op(allow=Level.PLANNER, reads=True, command="ps")
async def get_agent_process_info(
    ctx: Ctx,
    agent_id: AgentId,
    log_lines: Annotated[int, Field(ge=0, le=1_000, description="How many of the last lines of its log.")] = 50,
    log_after: Annotated[
        Annotated[Int64, Field(ge=0)] | None, Field(description="Read on: lines after this byte of the log.")
    ] = None,
) -> Process:
    """Get the process of an agent you spawned: its usage, descendants, exit code and the end of its log.

    Of a worker elsewhere, it has the log only.
    """

    def question(tx: Reader) -> Row:
        agent = require_agent(tx, agent_id)
        require_authority(ctx.caller, agent)
        there = tx.one(SQL.elsewhere, agent=agent["id"])
        return _of_elsewhere(there) if there else require_spawn(tx, agent_id, agent["id"])

    row = await ctx.read(question)
    usages = await _usages(ctx, [row])
    tail = await asyncio.to_thread(_tail, ctx, row, log_lines, log_after)
    return _process(ctx, agent_id, row, usages.get(row["agent_id"]), tail)


def log_of(ctx: Ctx, agent_uid: str) -> Path:
    """The log file of an agent."""
    return ctx.settings.logs / f"{agent_uid}.log"


def require_authority(caller: Caller, agent: Row) -> None:
    """Refuse a caller that is not the operator and did not spawn the agent.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if caller.level < OPERATOR.level and agent["parent_agent_id"] != caller.agent:
        raise Refused(
            "FORBIDDEN", f"Only the planner that spawned {agent['assigned_agent_id']}, or the operator, may do this."
        )


def require_spawn(tx: Reader, agent_id: str, agent_uid: str) -> Row:
    """The row of an agent's spawn, with its process if it has one.

    Raises:
        NotFound: ``PROCESS_NOT_FOUND``.
    """
    row = tx.one(SQL.of_agent, agent=agent_uid)
    if row is None:
        raise NotFound("PROCESS_NOT_FOUND", f"{agent_id} was not spawned by Workbench; it has no process.")
    return row


def _of_elsewhere(row: Row) -> Row:
    """The row of a worker of a machine without a clone, like that of a spawn."""
    return {**row, "request": json.dumps({"on": row["elsewhere"]}), "confinement": ELSEWHERE.model_dump_json()}


async def _usages(ctx: Ctx, rows: Sequence[Row]) -> dict[str, TreeUsage]:
    """The usage of the running processes, by agent."""
    refs = {
        row["agent_id"]: process_of(row)
        for row in rows
        if row["pid"] and row["ended_at"] is None and ctx.local.machine.has(row["machine"])
    }
    usages = await asyncio.to_thread(ctx.local.processes.usage, list(refs.values())) if refs else {}
    return {agent: usages[ref] for agent, ref in refs.items()}


def _process(ctx: Ctx, agent_id: str, row: Row, usage: TreeUsage | None, tail: Tail = Tail([], None)) -> Process:
    request: dict[str, Any] = json.loads(row["request"])
    state, machine = _state(row), row["machine"] or ctx.local.machine.name  # that has the process and its log
    log = str(log_of(ctx, row["agent_id"]))
    usage = usage or TreeUsage()
    return Process(
        agent_id=agent_id,
        machine=request.get("on") or machine,
        state=state,
        running=state == "running",
        pid=row["pid"] if state != "queued" else None,
        profile=row["profile"],
        mode="task" if request.get("task_id") else "queue",
        task_id=request.get("task_id"),
        worktree=row["worktree"],
        definition=row["definition"],
        definition_hash=row["definition_hash"],
        prompt_hash=row["prompt_hash"],
        include=json.loads(row["include"]) if row["include"] else None,
        limits=ResourceLimits(**request.get("limits", {})),
        confinement=Confinement(**json.loads(row["confinement"])),
        cpu_seconds=round(usage.cpu_seconds, 2),
        cpu_percent=round(usage.cpu_percent, 1),
        memory_bytes=usage.memory_bytes,
        children=[
            Child(
                pid=child.pid, name=child.name, cpu_seconds=round(child.cpu_seconds, 2), memory_bytes=child.memory_bytes
            )
            for child in usage.descendants
        ],
        exit_code=row["exit_code"] if state == "ended" else None,
        reason=row["reason"] if state != "queued" else None,
        spawned_at=row["spawned_at"] or row["asked_at"],
        ended_at=row["ended_at"] if state == "ended" else None,
        log=log if ctx.local.machine.has(machine) else f"{machine}:{log_of(ctx, row['agent_id']).name}",
        log_tail=tail.lines,
        log_after=tail.after,
        queue_place=row["place"] if row["state"] == "queued" else None,
    )


def _state(row: Row) -> Literal["queued", "running", "ended"]:
    if row["state"] in ("queued", "starting"):
        return "queued"
    is_there = row["state"] == "there" or row["pid"] is not None
    return "running" if is_there and row["ended_at"] is None else "ended"


def _tail(ctx: Ctx, row: Row, most: int, after: int | None) -> Tail:
    """Lines of the log of an agent, without secrets: the last ones, or the next ones after a byte."""
    if not most:
        return Tail([], after)
    if not ctx.local.machine.has(row["machine"]):
        told = [f"The log of this agent is on the machine {row['machine']}: read it there."] if after is None else []
        return Tail(told, after or 0)
    try:
        with log_of(ctx, row["agent_id"]).open("rb") as log:
            size = os.fstat(log.fileno()).st_size
            start = max(0, size - TAIL_BYTES) if after is None else min(after, size)
            log.seek(start)
            written = log.read(TAIL_BYTES)
    except OSError:
        return Tail([], after)
    lines = written.splitlines(keepends=True)
    if after is None:
        return Tail(_shown(ctx, lines)[-most:], start + len(written))
    is_full = len(written) == TAIL_BYTES
    if lines and not lines[-1].endswith(b"\n") and (len(lines) > 1 if is_full else _state(row) != "ended"):
        lines.pop()  # its rest comes later
    return Tail(_shown(ctx, lines[:most]), start + len(b"".join(lines[:most])))


def _shown(ctx: Ctx, lines: Iterable[bytes]) -> list[str]:
    return str(ctx.secrets.masked(b"".join(lines).decode("utf-8", "replace"))).splitlines()


def save_environment(settings: Settings, agent_uid: str, environment: Mapping[str, str]) -> None:
    """Save the variables of an agent, if there are any. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    if not environment:
        return
    path = _environment_file(settings, agent_uid)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(dict(environment), file)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def load_environment(settings: Settings, agent_uid: str) -> dict[str, str] | None:
    """The saved variables of an agent; None if there are none, or the file cannot be read. Blocks."""
    try:
        variables = json.loads(_environment_file(settings, agent_uid).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return {str(name): str(value) for name, value in variables.items()} if isinstance(variables, dict) else None


def remove_environment(settings: Settings, agent_uid: str) -> None:
    """Remove the saved variables of an agent. Blocks."""
    _environment_file(settings, agent_uid).unlink(missing_ok=True)


def _environment_file(settings: Settings, agent_uid: str) -> Path:
    return settings.home / "environments" / f"{agent_uid}.json"
