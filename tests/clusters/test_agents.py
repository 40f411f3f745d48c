"""Agents that are spawned on a Dask cluster: one of real processes, whose home is a directory of its own."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests import given
from tests.conftest import Served, git
from tests.elsewhere import workers_in

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def cluster(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A cluster with one worker of one thread."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    (on_disk / "home").mkdir()
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(on_disk / "home"))
        cluster = distributed.LocalCluster(**options, silence_logs=50)
    with cluster:
        yield cluster


async def test_agents_that_do_not_reach_the_server_are_refused_with_the_setting_to_make(
    served: Served, machines: dict[str, Any], repository: Path
) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")
    machines |= {"gpu": {"kind": "dask", "address": "tls://head:8786"}}
    machines |= {"hpc": {"kind": "slurm", "cores": 1, "memory": "1 GB"}}
    spawn = {"persona_id": "implementer"}
    error = await given.refuses("MACHINE_UNFIT", served.workbench.call("spawn_agent", **spawn, on="gpu"))
    assert served.info.url in error.message
    assert 'server = "https://…" in [machines.gpu]' in error.message
    await given.refuses("SLURM_NOT_HERE", served.workbench.call("spawn_agent", **spawn, on="hpc"))
    assert (await served.workbench.call("get_managed_agents"))["agents"] == []


@pytest.mark.long
async def test_an_agent_spawned_on_a_cluster_works_there_and_leaves_its_threads_to_others(
    served: Served, machines: dict[str, Any], repository: Path, on_disk: Path, cluster: LocalCluster, monkeypatch: Any
) -> None:
    workbench, home = served.workbench, on_disk / "home"
    monkeypatch.setitem(workbench.settings.__dict__, "terminate_grace_seconds", 30.0)  # to send what is left
    machines["gpu"] = {"kind": "dask", "address": cluster.scheduler_address}
    agent = await workbench.call("spawn_agent", persona_id="implementer", on="gpu", name="far")
    first = await given.task(workbench, "work", run="pwd > made.txt")
    task = await given.reached(workbench, first, "completed", "failed")
    (commit,) = (one.removeprefix("commit:") for one in task["artifacts"])
    assert str(home) in git("show", f"{commit}:made.txt", cwd=repository)
    (shown,) = (await workbench.call("list_machines"))["machines"]
    assert (shown["name"], shown["kind"], shown["workers"]) == ("gpu", "dask", 1)

    second = await given.task(workbench, "long", run="cat made.txt > kept; echo begun; exec sleep 600")
    await given.until(lambda: "| begun" in Path(agent["log"]).read_text())
    assert await asyncio.to_thread(as_client, cluster, other_work) == 42
    token = "wba_"
    assert token not in str(workers_in(home)[0].cmdline()) + str(workers_in(home)[0].environ())
    process = await workbench.call("get_agent_process_info", agent_id=agent["agent_id"])
    here = psutil.Process(process["pid"])
    assert token not in str(here.cmdline()) + str(here.environ()) + Path(agent["log"]).read_text()
    scheduler = cluster.scheduler
    kept = pickle.dumps([(key, task.run_spec) for key, task in scheduler.tasks.items()])
    assert (served.info.url.encode() in kept, token.encode() in kept) == (True, False)
    told = str(scheduler.get_events())
    assert (process_key(scheduler) in told, token in told) == (True, False)

    await workbench.call("terminate_agent", agent_id=agent["agent_id"])
    await given.until(lambda: not workers_in(home))
    task = await given.reached(workbench, second, "pending")
    assert len(task["attempts"]) == 1
    await given.until(lambda: not scheduler.tasks)


def process_key(scheduler: Any) -> str:
    """The key of the only task."""
    (key,) = scheduler.tasks
    return str(key)


@pytest.mark.long
async def test_agents_that_a_cluster_ends_or_cannot_run_say_why_and_none_begins_twice(
    served: Served, machines: dict[str, Any], repository: Path, on_disk: Path, cluster: LocalCluster
) -> None:
    workbench, home, scheduler = served.workbench, on_disk / "home", cluster.scheduler
    far = {"kind": "dask", "address": cluster.scheduler_address}
    machines |= {"gpu": far, "stray": far | {"server": "http://127.0.0.1:9"}}
    spawn = partial(workbench.call, "spawn_agent", persona_id="implementer")
    stray, *agents = [await spawn(on=machine) for machine in ("stray", "gpu", "gpu")]
    run = "echo > made; echo begun; exec sleep 600"
    tasks = [await given.task(workbench, name, run=run) for name in ("one", "other")]
    await given.until(lambda: all("| begun" in Path(agent["log"]).read_text() for agent in agents))
    told = (await given.ended(served.workbench, stray["agent_id"]))["reason"]
    assert re.match(r"NO_SERVER: .*at http://127.0.0.1:9: All connection attempts failed\. .*\[machines.stray\]", told)

    await asyncio.to_thread(as_client, cluster, partial(cancel, next(iter(scheduler.tasks))))
    waiting = {asyncio.create_task(given.ended(served.workbench, agent["agent_id"])) for agent in agents}
    (cancelled,), (running,) = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert re.match("DASK_CANCELLED: .*Restart the agent", cancelled.result()["reason"])
    (dask_worker,) = cluster.workers.values()
    os.kill(dask_worker.pid, signal.SIGKILL)
    assert re.match("DASK_WORKER_LOST: .*Restart the agent", (await running)["reason"])
    assert all("to send what it has" in Path(agent["log"]).read_text() for agent in agents)
    await given.until(lambda: not workers_in(home))
    for task in tasks:
        (_,) = (await given.reached(workbench, task, "pending"))["attempts"]
        await given.until(partial(given.is_kept, served.workbench, task))

    await asyncio.to_thread(as_client, cluster, become_older)
    older = await spawn(on="gpu")
    own = metadata.version("workbench-agents")
    told = (await given.ended(served.workbench, older["agent_id"]))["reason"]
    assert re.match(rf"DASK_WORKER_UNFIT: .* has Workbench 0\.0\.1, and the server {own}\. .*=={own}", told)


def cancel(key: str, client: Client) -> None:
    """Cancel a task of somebody else."""
    from distributed import Future

    Future(key, client).cancel(force=True)


def become_older(client: Client) -> None:
    """Let the worker, which has been started again, say another version."""
    client.wait_for_workers(1)
    client.run(setattr, metadata, "version", lambda _: "0.0.1")


def other_work(client: Client) -> int:
    """What a task of somebody else answers."""
    answer: int = client.submit(int, "42").result(timeout=60)
    return answer


def as_client(cluster: LocalCluster, use: Callable[[Client], Any]) -> Any:
    """What another client of the cluster does."""
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        return use(client)
