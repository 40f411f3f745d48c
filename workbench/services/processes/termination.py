"""Ending agents' processes with all they started: on request, because their worktree goes, because the servers stop.

A process that the system does not end, such as one in an uninterruptible sleep, is a *survivor*: its row has a reason
and no end. It is logged, shown, and tried again by `end_survivors`. Nothing else waits for it or fails with it, and it
takes no other agent's room: with SIGKILL pending it runs no more of its program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from workbench.errors import Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.rules import access
from workbench.services.agents.status import on_agent_exit
from workbench.services.tasks import attempts
from workbench.store.base import Row, Tx
from workbench.store.queries import beside
from workbench.worker import scratch

SQL = beside(__file__)

KILL_SECONDS = 5.0
"""How long a process may take to end after SIGKILL, before it counts as a survivor."""
RETRY_KILL_SECONDS = 0.5
"""The same for a survivor, which was killed before."""

log = logging.getLogger(__name__)


async def end(ctx: Ctx, agent_uid: str, reason: str, *, keep: bool = False) -> bool:
    """End the process of an agent, or its waiting for one; False when it has neither.

    Args:
        keep: it is about to be started again: it stays admitted, or goes on waiting for admission.

    Raises:
        Unavailable: ``PROCESS_SURVIVED``: the process is a survivor from now on.
    """
    row = await ctx.read(lambda tx: tx.one(SQL.running_of, agent=agent_uid))
    if row is None:
        return await ctx.write(lambda tx: give_up(tx, agent_uid, reason, keep=keep))
    await _terminate(ctx, row, "agent.terminated", reason, keep=keep)
    return True


async def end_all(ctx: Ctx, reason: str, worktree: str | None = None) -> None:
    """End every process of an agent, or those of one worktree, at the same time; agents that wait get none.

    Survivors, and failures of the store, are logged: what the processes are ended for goes on.
    """
    waiting = await ctx.read(lambda tx: tx.all(SQL.waiting, worktree=worktree))
    running = await ctx.read(lambda tx: tx.all(SQL.running, worktree=worktree))
    await _for_each([*waiting, *running], lambda row: end(ctx, row["agent_id"], reason))


async def recover(ctx: Ctx) -> None:
    """End what an earlier server left running, and remove the scratch directories it left."""
    await end_all(ctx, "left over from an earlier server")
    await _for_each(await ctx.read(lambda tx: tx.all(SQL.left_scratch)), lambda row: _remove_scratch(ctx, row))


async def reap(ctx: Ctx) -> None:
    """Note the processes that ended by themselves, and end what they left behind.

    Only then can others claim what they held: the command of a worker that was killed may still be running.
    """
    rows = await ctx.read(lambda tx: tx.all(SQL.running, worktree=None))
    exited = [row for row in rows if ctx.processes.ended_by_itself(process_of(row))]
    await _for_each(exited, lambda row: _terminate(ctx, row, "agent.exited", ""))


async def end_survivors(ctx: Ctx) -> None:
    """Try again to end the survivors, and note those that have ended since."""
    rows = await ctx.read(lambda tx: tx.all(SQL.survivors))
    await _for_each(rows, lambda row: _terminate(ctx, row, "agent.exited", row["reason"], again=True))


def give_up(tx: Tx, agent_uid: str, reason: str, *, keep: bool = False) -> bool:
    """Stop waiting for a process to be started for an agent; False if it did not wait.

    Its token is replaced: should a process be started all the same by a server that has crashed, it can do nothing.
    """
    if not tx.run(SQL.give_up, agent=agent_uid, reason=reason):
        return False
    tx.run(SQL.new_token, agent=agent_uid, token_hash=access.token_hash(access.new_token("wba")))
    if not keep:
        tx.emit("agent.terminated", f"agent:{agent_uid}", pid=None, exit_code=None, reason=reason)
        on_agent_exit(tx, agent_uid, reason or "it was ended before it began")
    return True


def process_of(row: Row) -> ProcessRef:
    """The process that a row is about."""
    return ProcessRef(row["pid"], row["started"], row["mark"])


async def _terminate(ctx: Ctx, row: Row, kind: str, reason: str, *, keep: bool = False, again: bool = False) -> None:
    """End a process and note its end; if it survives, note that instead.

    When this is cancelled, the process is ended all the same, and `reap` notes it.

    Args:
        again: it is a survivor, that has been killed before.
    """
    ref, grace = process_of(row), 0.0 if again else ctx.settings.terminate_grace_seconds
    with ctx.processes.ending(ref):
        try:
            patience = RETRY_KILL_SECONDS if again else KILL_SECONDS
            await asyncio.to_thread(ctx.processes.terminate, ref, grace, patience)
        except Unavailable as error:
            survived = error
            if await ctx.write(lambda tx: _note_survival(tx, row, reason, survived)):
                log.warning("agent %s: %s: %s", row["agent_id"], error.code, error.message)
            raise
        await ctx.write(lambda tx: _note_end(tx, ctx, row, kind, reason, keep))
    ctx.processes.forget(ref)
    await _remove_scratch(ctx, row)


def _note_survival(tx: Tx, row: Row, reason: str, error: Unavailable) -> bool:
    """Make a survivor of a process; False if it was one before."""
    because = f"{reason.rstrip('.')}. {error.message}" if reason else error.message
    if not tx.run(SQL.survived, agent=row["agent_id"], pid=row["pid"], reason=because):
        return False
    tx.emit("agent.survived", f"agent:{row['agent_id']}", pid=row["pid"], reason=because, **error.details)
    return True


def _note_end(tx: Tx, ctx: Ctx, row: Row, kind: str, reason: str, keep: bool) -> None:
    code = ctx.processes.exit_code(process_of(row))
    values = {"agent": row["agent_id"], "pid": row["pid"], "exit_code": code, "reason": reason or None}
    if not tx.run(SQL.ended, values, now=tx.now):
        return
    tx.emit(kind, f"agent:{row['agent_id']}", pid=row["pid"], exit_code=code, reason=reason)
    attempts.release_all(tx, row["agent_id"], reason or "the agent's process ended")
    if not keep:
        on_agent_exit(tx, row["agent_id"], reason or "the agent's process ended")


async def _remove_scratch(ctx: Ctx, row: Row) -> None:
    """Remove the scratch directory of a process that has ended."""
    if row["scratch"] and await asyncio.to_thread(scratch.remove, Path(row["scratch"])):
        values = {"agent": row["agent_id"], "scratch": row["scratch"]}
        await ctx.write(lambda tx: tx.run(SQL.scratch_removed, values))


async def _for_each(rows: Sequence[Row], work: Callable[[Row], Awaitable[object]]) -> None:
    """Do something for all rows at the same time. A failure is logged and concerns its row only."""
    for row, result in zip(rows, await asyncio.gather(*map(work, rows), return_exceptions=True), strict=True):
        if isinstance(result, WorkbenchError):
            if result.code == "PROCESS_SURVIVED":  # logged when it was noted
                continue
            log.warning("agent %s: %s: %s", row["agent_id"], result.code, result.message)
        elif isinstance(result, BaseException):
            log.error("agent %s: its process could not be ended", row["agent_id"], exc_info=result)
