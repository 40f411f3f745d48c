"""Usage of processes over time: sampled while they work, thinned with age, and deleted after a while.

The processes are agents, the programs of MCP servers and the kernels of runs, if they run on this machine. The server
itself is not measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.process import ProcessRef, ProcessTable, TreeUsage, process_named
from workbench.process.tree import running_processes
from workbench.rules.sweeps.grid import run_mark
from workbench.services.processes.termination import process_of
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
WHOLE = 3_600 * SECOND
"""Younger samples are all kept; of older ones, one a minute."""
DAY = 86_400 * SECOND
CPU_SECONDS = 0.05
MEMORY_SHARE = 0.02
"""A sample that differs less from its predecessor is left out."""


class Sampled(NamedTuple):
    """A process that is sampled with its descendants.

    Args:
        kind: whose it is.
        owner: the internal id of the agent, the name of the server, or the id of the run.
    """

    kind: Literal["agent", "tool server", "run"]
    owner: str
    ref: ProcessRef


@duty("sampling processes", lambda settings: settings.process_sample_seconds or 5.0, share=0.01)
async def sample(ctx: Ctx) -> None:
    """Record what the running processes use, of those for which it has changed."""
    if not ctx.settings.process_sample_seconds:
        return
    agents, runs = await ctx.read(lambda tx: (tx.all(SQL.agents, machine=ctx.local.machine.only), tx.all(SQL.runs)))
    processes = [Sampled("agent", row["agent_id"], process_of(row)) for row in agents]
    processes += [Sampled("tool server", key.name, ref) for key, ref in ctx.local.upstreams.programs()]
    if runs:
        processes += await asyncio.to_thread(lambda: list(_kernels(runs, str(ctx.settings.project))))
    if not processes:
        return

    def last(tx: Reader) -> list[Row | None]:
        return [tx.one(SQL.last, kind=process.kind, owner=process.owner) for process in processes]

    usages = await asyncio.to_thread(ProcessTable().usage, [process.ref for process in processes])
    changed = [
        (process, usage)
        for process, row in zip(processes, await ctx.read(last), strict=True)
        if _has_changed(process, row, usage := usages[process.ref])
    ]
    if changed:
        await ctx.write(lambda tx: _add(tx, changed), durable=False)


def _kernels(runs: Sequence[Row], project: str) -> Iterator[Sampled]:
    """The processes of runs; for a run of a sweep, its kernel, whose environment names the run. Blocks."""
    marks = {run_mark(row["key"], project): row["id"] for row in runs if row["sweep_id"] is not None}
    kernels: dict[str, ProcessRef] = {}
    for process in running_processes() if marks else ():
        for mark in marks.keys() & set(process.marks):
            ref = ProcessRef(process.process.pid, process.process.create_time(), mark)
            kernels[mark] = min(kernels.get(mark, ref), ref, key=lambda each: each.started)
    for mark, ref in kernels.items():
        yield Sampled("run", str(marks[mark]), ref)
    for row in runs:
        if row["sweep_id"] is None and (named := process_named(row["process"])) is not None:
            yield Sampled("run", str(row["id"]), named)


@duty("pruning samples of processes", 600.0, once=True)
async def prune(ctx: Ctx) -> None:
    """Thin what is older than an hour, and delete what is no longer kept."""
    now = ctx.store.now()
    before = now - round(ctx.settings.keep_process_samples_days * DAY)

    def change(tx: Tx) -> None:
        tx.run(SQL.forget, before=before)
        tx.run(SQL.thin, before=now - WHOLE)

    await ctx.write(change, durable=False)


def _has_changed(process: Sampled, row: Row | None, usage: TreeUsage) -> bool:
    """Whether a process uses something else than at its last sample. One that has just ended uses nothing."""
    if not usage.memory_bytes:
        return False
    if row is None or row["pid"] != process.ref.pid or row["processes"] != _count(usage):
        return True
    worked: float = abs(usage.cpu_seconds - row["cpu_seconds"])
    grown: float = abs(usage.memory_bytes - row["memory_bytes"])
    return worked >= CPU_SECONDS or grown > MEMORY_SHARE * row["memory_bytes"]


def _add(tx: Tx, samples: list[tuple[Sampled, TreeUsage]]) -> None:
    for process, usage in samples:
        tx.run(
            SQL.add,
            kind=process.kind,
            owner=process.owner,
            pid=process.ref.pid,
            now=tx.now,
            cpu_seconds=round(usage.cpu_seconds, 3),
            memory_bytes=usage.memory_bytes,
            processes=_count(usage),
        )


def _count(usage: TreeUsage) -> int:
    """The processes of a tree."""
    return 1 + len(usage.descendants)
