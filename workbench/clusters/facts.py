"""What the clusters of the settings have and lack, as they say themselves: it is shown, and decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.clusters import dask, slurm
from workbench.errors import Unavailable
from workbench.state.machine import Cluster, DaskMachine

ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class ClusterFacts:
    """What a cluster has, and what it lacks or how to mend that, in words."""

    has: str
    lacks: str


def of(name: str, cluster: Cluster) -> ClusterFacts:
    """The facts of a cluster, within a few seconds. Call it in a thread without an event loop."""
    try:
        if isinstance(cluster, DaskMachine):
            return _of_workers(dask.identity(cluster.address, ANSWER_SECONDS)["workers"])
        slurm.require_possible(name)
    except Unavailable as error:
        has = "" if isinstance(cluster, DaskMachine) else _of_jobs(cluster.jobs, cluster.cores, cluster.memory)
        return ClusterFacts(has, error.message)
    return ClusterFacts(_of_jobs(cluster.jobs, cluster.cores, cluster.memory), "")


def _of_jobs(jobs: int, cores: int, memory: str) -> str:
    return f"{jobs} job{'s' * (jobs != 1)} of {cores} core{'s' * (cores != 1)} and {memory}, once Slurm starts them"


def _of_workers(workers: Mapping[str, Mapping[str, Any]]) -> ClusterFacts:
    if not workers:
        return ClusterFacts("", "It has no workers. Start some: dask worker ADDRESS")
    threads = sum(int(worker.get("nthreads") or 0) for worker in workers.values())
    memory = sum(int(worker.get("memory_limit") or 0) for worker in workers.values())
    devices: Counter[str] = Counter()
    for worker in workers.values():
        devices.update({str(name): int(number) for name, number in (worker.get("resources") or {}).items()})
    parts = [f"{len(workers)} worker{'s' * (len(workers) != 1)}", f"{threads} thread{'s' * (threads != 1)}"]
    parts += [f"{memory / 1e9:.1f} GB"] if memory else []
    return ClusterFacts(", ".join([*parts, *(f"{number} {name}" for name, number in sorted(devices.items()))]), "")
