"""The usage of processes over time is recorded while it changes, thinned with age, and can be queried."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from tests.conftest import Admit, Clock
from workbench.analytics.live import Live, refresh
from workbench.analytics.reports import report
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.process import marked, process_identity
from workbench.rules.sweeps.grid import run_mark
from workbench.services.processes import samples
from workbench.state.settings import Settings
from workbench.store.queries import Query, beside

pytestmark = pytest.mark.anyio

SQL = beside(samples.__file__)
SPAWNED = Query(
    "spawned",
    "INSERT INTO spawns (agent_id, profile, request, confinement, state, machine, asked_at) "
    "VALUES (:agent, 'script', '{}', '{}', 'started', :machine, 0)",
)
STARTED = Query(
    "started",
    "INSERT INTO processes (agent_id, profile, pid, started, mark, spawned_at) "
    "VALUES (:agent, 'script', :pid, :started, NULL, 0)",
)


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


async def add(workbench: Workbench, uid: str | None, cpu_seconds: float, megabytes: int) -> None:
    """A sample as of now."""
    values = {"kind": "agent", "owner": uid, "pid": 7, "cpu_seconds": cpu_seconds, "processes": 2}
    values["memory_bytes"] = megabytes * 1_000_000
    await workbench.store.write(lambda tx: tx.run(SQL.add, values, now=tx.now))


async def rows(live: Live, workbench: Workbench, query: str = "FROM process_samples ORDER BY sampled_at") -> list[Any]:
    """Ask a question now."""
    return live.answer(await refresh(live, workbench.store), query).fetchall()


@pytest.mark.long
async def test_a_query_follows_the_usage_of_processes(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    uid, live = (await admit("ada")).caller.agent, Live()
    assert await rows(live, workbench) == []
    await add(workbench, uid, 1.0, 100)
    clock.forward(5)
    await add(workbench, uid, 3.5, 300)
    query = "SELECT agent, cpu_seconds, cpu_percent, memory_bytes, processes FROM process_samples ORDER BY sampled_at"
    expected = [("ada", 1.0, None, 100_000_000, 2), ("ada", 3.5, 50.0, 300_000_000, 2)]
    assert await rows(live, workbench, query) == expected == await rows(Live(), workbench, query)
    news = await refresh(live, workbench.store)
    made = report("processes", lambda query, **options: live.answer(news, query, **options))
    assert made.sentence == "Of 1 measured, ada used most memory (300 MB), ada most processor time (3.5 s)."
    assert made.chart is not None
    assert "<svg" in made.html()


async def test_samples_are_thinned_with_age_and_forgotten(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    uid = (await admit("ada")).caller.agent
    clock.now -= clock.now % (60 * SECOND) - 60 * SECOND
    for second in range(0, 120, 20):
        await add(workbench, uid, second, 100)
        clock.forward(20)
    clock.forward(3_600 + 60)
    await samples.prune(workbench._ctx)
    assert await rows(Live(), workbench, "SELECT cpu_seconds FROM process_samples ORDER BY 1") == [(0.0,), (60.0,)]
    clock.forward(8 * 86_400)
    await samples.prune(workbench._ctx)
    assert await rows(Live(), workbench) == []


async def test_a_process_is_sampled_while_it_runs(workbench: Workbench, admit: Admit) -> None:
    uid = (await admit("ada")).caller.agent
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        values = {"agent": uid, "pid": process.pid, "started": psutil.Process(process.pid).create_time()}
        machine = workbench._ctx.local.machine.name
        await workbench.store.write(lambda tx: (tx.run(SPAWNED, agent=uid, machine=machine), tx.run(STARTED, values)))
        await samples.sample(workbench._ctx)
        [(kind, name, agent, run, pid, _, _, percent, memory, processes)] = await rows(Live(), workbench)
        assert (kind, name, agent, run, pid) == ("agent", "ada", "ada", None, process.pid)
        assert (percent, processes) == (None, 1)
        assert memory > 1_000_000
        process.communicate(b"\n")
    before = await rows(Live(), workbench)
    await samples.sample(workbench._ctx)
    assert await rows(Live(), workbench) == before


async def test_the_kernels_of_runs_are_sampled(workbench: Workbench) -> None:
    sweep = await workbench.call(
        "start_sweep", name="grid", notebook="n.ipynb", notebook_sha256="0" * 64, specification={}
    )
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    kernel = marked(os.environ, run_mark("one", str(workbench.settings.project)))
    with (
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=kernel) as of_sweep,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alone,
    ):
        for process in (of_sweep, alone):
            assert process.stdout is not None
            await asyncio.to_thread(process.stdout.readline)
        await workbench.call(
            "start_run", name="first", key="one", sweep_id=sweep["id"], process=process_identity(alone.pid)
        )
        await workbench.call("start_run", name="second", process=process_identity(alone.pid))
        await samples.sample(workbench._ctx)
        found = await rows(Live(), workbench, "SELECT kind, name, agent, run_id, pid FROM process_samples ORDER BY 2")
        assert found == [("run", "first", None, 1, of_sweep.pid), ("run", "second", None, 2, alone.pid)]
        of_sweep.communicate(b"\n")
        alone.communicate(b"\n")
