"""Termination of agents' processes and everything they started: on request, with their worktree, or with the servers.

A process that SIGKILL does not end, such as one in uninterruptible sleep, is a *survivor*: its row has a reason and no
end. It is logged and listed, and `end_survivors` tries again. Nothing else waits for it or fails because of it, and it
occupies no slot: with SIGKILL pending it executes no more of its program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from workbench.errors import Conflict, Hint, Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.present.inert import inert_line
from workbench.process import ProcessRef
from workbench.rules import access
from workbench.services.agents.rows import on_agent_exit
from workbench.services.tasks import attempts
from workbench.state.root import identity
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.system import atomic_file
from workbench.system.tree_removal import remove_tree

SQL = beside(__file__)

KILL_SECONDS = 5.0
"""How long after SIGKILL a process may take to end before it counts as a survivor."""
RETRY_KILL_SECONDS = 0.5
"""The same when a survivor is killed again."""

ASK_SECONDS = 10.0
"""How long to wait for the server of another machine that was asked to end a process."""

WATCH_SECONDS = 0.25
"""How soon running processes are looked at again: their end is no event."""

log = logging.getLogger(__name__)


async def end(ctx: Ctx, agent_uid: str, reason: str, *, keep: bool = False) -> bool:
    """End an agent's process, or cancel its pending start; False if it has neither.

    A process of another machine is ended by that machine's server, which is asked to.

    Args:
        keep: the agent is about to be restarted, so its registration stays as it is.

    Raises:
        Unavailable: ``PROCESS_SURVIVED``: the process is now a survivor. Conflict: ``ON_ANOTHER_MACHINE``: its server
            has not ended it yet; it will when it runs.
    """
    row = await ctx.read(lambda tx: tx.one(SQL.running_of, agent=agent_uid))
    if row is None:
        return await ctx.write(lambda tx: give_up(tx, agent_uid, reason, keep=keep))
    if not ctx.local.machine.has(row["machine"]):
        await _ask(ctx, row, reason)
        return True
    await _terminate(ctx, row, "agent.terminated", reason, keep=keep)
    return True


async def _ask(ctx: Ctx, row: Row, reason: str) -> None:
    """Ask the server of another machine to end a process, and wait a while for it.

    Raises:
        Conflict: ``ON_ANOTHER_MACHINE``.
    """
    agent, subject = row["agent_id"], f"agent:{row['agent_id']}"

    def change(tx: Tx) -> None:
        tx.run(SQL.ask, agent=agent, reason=reason)
        tx.emit("agent.end_asked", subject, machine=row["machine"], reason=reason)

    await ctx.write(change)
    left = await ctx.feed.until(
        lambda tx: tx.one(SQL.running_of, agent=agent), lambda left: left is None, "agent.*", seconds=ASK_SECONDS
    )
    if left is not None:
        name, machine = row["assigned_agent_id"], row["machine"]
        raise Conflict(
            "ON_ANOTHER_MACHINE",
            f"{name} runs on the machine {machine}. Its server was asked to end it, and does so as soon as it runs.",
            Hint("list_servers", "{} says whether it does."),
            machine=machine,
        )


@duty("ending what other machines ask to end", 5.0, wakes=True)
async def end_asked(ctx: Ctx) -> None:
    """End the agents of this machine that another one was asked to end."""
    machine = ctx.local.machine
    if machine.is_alone:
        return
    for row in await ctx.read(lambda tx: tx.all(SQL.asked, machine=machine.name)):
        await _for_each([row], lambda row: end(ctx, row["agent_id"], row["end_asked"]))
        await ctx.write(partial(_answered, agent=row["agent_id"]))


def _answered(tx: Tx, agent: str) -> None:
    tx.run(SQL.ask, agent=agent, reason=None)


async def end_all(ctx: Ctx, reason: str, worktree: str | None = None) -> None:
    """End all agents' processes on this machine, or those of one worktree, concurrently, and cancel pending starts.

    Survivors and store failures are logged, not raised, so that the caller can go on.
    """
    machine = ctx.local.machine.only
    queued = await ctx.read(lambda tx: tx.all(SQL.waiting, worktree=worktree, machine=machine))
    running = await ctx.read(lambda tx: running_here(tx, ctx, worktree))
    await _for_each([*queued, *running], lambda row: end(ctx, row["agent_id"], reason))


def running_here(tx: Reader, ctx: Ctx, worktree: str | None = None) -> list[Row]:
    """The processes of this machine that run, or those of one worktree, as far as is recorded; without survivors."""
    return tx.all(SQL.running, worktree=worktree, machine=ctx.local.machine.only)


async def end_each_here(ctx: Ctx, agent_uids: Sequence[str], reason: str) -> None:
    """As `end_each`, but only what runs on this machine: every machine's server does it for its own."""
    machine = ctx.local.machine.only
    here = await ctx.read(lambda tx: [uid for uid in agent_uids if tx.one(SQL.here, agent=uid, machine=machine)])
    await end_each(ctx, here, reason)


async def end_each(ctx: Ctx, agent_uids: Sequence[str], reason: str) -> None:
    """End some agents' processes concurrently, and cancel pending starts; failures are logged, as in `end_all`."""
    await _for_each([{"agent_id": uid} for uid in agent_uids], lambda row: end(ctx, row["agent_id"], reason))


async def remove_left_scratch(ctx: Ctx) -> None:
    """Remove the scratch directories that an earlier server left, of processes that have ended."""
    await _for_each(
        await ctx.read(lambda tx: tx.all(SQL.left_scratch, machine=ctx.local.machine.only)),
        lambda row: _remove_scratch(ctx, row),
    )


async def record_exits(ctx: Ctx, rows: Sequence[Row]) -> None:
    """Record processes of an earlier server that were not recognised, and end the descendants that they left.

    A process that has the pid and start time of one, but not its mark, is not ended.
    """

    def checked(row: Row) -> Row:
        another = row["mark"] is not None and ctx.local.processes.alive(process_of(row))
        return {**row, "started": 0.0} if another else row  # then only the mark leads to its descendants

    await _for_each(rows, lambda row: _terminate(ctx, checked(row), "agent.exited", ""))


@duty("noting ended processes", 5.0, wakes=True)
async def reap(ctx: Ctx) -> float | None:
    """Record the processes that exited by themselves, and end what they left running.

    Their tasks are released only then: the command of a worker that was killed may still be running.
    While any run, they are looked at again soon.
    """
    rows = await ctx.read(lambda tx: running_here(tx, ctx))
    exited = [row for row in rows if ctx.local.processes.ended_by_itself(process_of(row))]
    await _for_each(exited, lambda row: _terminate(ctx, row, "agent.exited", ""))
    return WATCH_SECONDS if rows else None


@duty("ending survivors", 5.0)
async def end_survivors(ctx: Ctx) -> None:
    """Try again to end the survivors, and record those that have ended since."""
    rows = await ctx.read(lambda tx: tx.all(SQL.survivors, machine=ctx.local.machine.only))
    await _for_each(rows, lambda row: _terminate(ctx, row, "agent.exited", row["reason"], again=True))


def give_up(tx: Tx, agent_uid: str, reason: str, *, keep: bool = False) -> bool:
    """Cancel the pending start of an agent; False if none was pending.

    Its token is replaced, so that a process started by a server that has since crashed can do nothing.
    """
    if not tx.run(SQL.give_up, agent=agent_uid, reason=reason):
        return False
    replace_token(tx, agent_uid)
    if not keep:
        tx.emit("agent.terminated", f"agent:{agent_uid}", pid=None, exit_code=None, reason=reason)
        on_agent_exit(tx, agent_uid, reason or "it was terminated before it started")
    return True


def replace_token(tx: Tx, agent_uid: str) -> None:
    """Replace the token of an agent by one that no process has."""
    tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(access.new_token("wba")))


def scratch_prefix(ctx: Ctx) -> str:
    """The prefix of the scratch directories that this project makes."""
    return f"workbench-{identity(ctx.settings.home)}-"


def told_end(ctx: Ctx, agent_uid: str) -> Path:
    """The file in which the process of an agent on another machine says why it ended; nothing in a box writes there."""
    return ctx.settings.logs / f"{agent_uid}.end"


def _take_told_end(ctx: Ctx, agent_uid: str) -> str:
    """What an ended process has said, which is removed; empty: nothing. Blocks."""
    file = told_end(ctx, agent_uid)
    with suppress(OSError):
        text = atomic_file.read(file)
        file.unlink()
        return inert_line(str(ctx.secrets.masked(text)))
    return ""


def process_of(row: Row) -> ProcessRef:
    """The process that a row describes."""
    return ProcessRef(row["pid"], row["started"], row["mark"])


async def _terminate(ctx: Ctx, row: Row, kind: str, reason: str, *, keep: bool = False, again: bool = False) -> None:
    """End a process and record its end; if it survives, record that instead.

    If this is cancelled, the process still ends, and `reap` records it.

    Args:
        again: the process is a survivor, which was killed before.
    """
    ref, grace = process_of(row), 0.0 if again else ctx.settings.terminate_grace_seconds
    with ctx.local.processes.ending(ref):
        try:
            patience = RETRY_KILL_SECONDS if again else KILL_SECONDS
            await asyncio.to_thread(ctx.local.processes.terminate, ref, grace, patience)
        except Unavailable as error:
            survived = error
            if await ctx.write(lambda tx: _record_survival(tx, row, reason, survived)):
                log.warning("agent %s: %s: %s", row["agent_id"], error.code, error.message)
            raise
        told = await asyncio.to_thread(_take_told_end, ctx, row["agent_id"])
        await ctx.write(lambda tx: _record_end(tx, ctx, row, kind, reason or told, keep))
    ctx.local.processes.forget(ref)
    await _remove_scratch(ctx, row)


def _record_survival(tx: Tx, row: Row, reason: str, error: Unavailable) -> bool:
    """Record a process as a survivor; False if it already is one."""
    because = f"{reason.rstrip('.')}. {error.message}" if reason else error.message
    if not tx.run(SQL.survived, agent=row["agent_id"], pid=row["pid"], reason=because):
        return False
    replace_token(tx, row["agent_id"])
    tx.emit("agent.survived", f"agent:{row['agent_id']}", pid=row["pid"], reason=because, **error.details)
    return True


def _record_end(tx: Tx, ctx: Ctx, row: Row, kind: str, reason: str, keep: bool) -> None:
    code = ctx.local.processes.exit_code(process_of(row))
    values = {"agent": row["agent_id"], "pid": row["pid"], "exit_code": code, "reason": reason or None}
    if not tx.run(SQL.ended, values, now=tx.now):
        return
    if row["reason"] is None:  # that of a survivor was replaced, and the agent may run again
        replace_token(tx, row["agent_id"])
    tx.emit(kind, f"agent:{row['agent_id']}", pid=row["pid"], exit_code=code, reason=reason)
    attempts.release_all(tx, row["agent_id"], reason or "the agent's process ended")
    if not keep:
        on_agent_exit(tx, row["agent_id"], reason or "the agent's process ended")


async def _remove_scratch(ctx: Ctx, row: Row) -> None:
    """Remove the scratch directory of a process that has ended, but not one that a copied store names."""
    if row["scratch"] is None:
        return
    scratch = Path(row["scratch"])
    if not scratch.name.startswith(scratch_prefix(ctx)) or await asyncio.to_thread(remove_tree, scratch):
        values = {"agent": row["agent_id"], "scratch": row["scratch"]}
        await ctx.write(lambda tx: tx.run(SQL.scratch_removed, values))


async def _for_each(rows: Sequence[Row], work: Callable[[Row], Awaitable[object]]) -> None:
    """Do something for all rows concurrently. A failure is logged and does not affect other rows."""
    for row, result in zip(rows, await asyncio.gather(*map(work, rows), return_exceptions=True), strict=True):
        if isinstance(result, WorkbenchError):
            if result.code == "PROCESS_SURVIVED":  # already logged by `_terminate`
                continue
            log.warning("agent %s: %s: %s", row["agent_id"], result.code, result.message)
        elif isinstance(result, BaseException):
            log.error("agent %s: its process could not be ended", row["agent_id"], exc_info=result)
