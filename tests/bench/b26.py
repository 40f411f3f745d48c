"""B26: how long a kernel that is attached waits for an answer when its server moves, is killed, or stops."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

import psutil

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, by_name, within
from tests.kernel.conftest import Kernel, started

PING = "wb.call('ping')"
PID = "import os; os.getpid()"
MOVED, KILLED, STOPPED = "the server has moved to another port", "the server is killed", "the server stops"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round has three kernels of its own."""
    return by_name([_round() for _ in range(1 if quick else rounds)], "s")


def _round() -> dict[str, float]:
    with scratch() as directory, started(directory) as first, started(directory) as second, started(directory) as third:
        start = f'%workbench start --project "{directory}"'
        first.run(f"{start} --port 0")
        for attached in (second, third):
            attached.run(start)
        with _suspended(second, third):  # so that neither takes over
            first.run("%workbench stop")
            first.run(f"{start} --port 0")
        moved = _answer(second)
        first.kill()
        killed = _answer(second)
        serving, following = (second, third) if third.run("wb.host.attached") == "True" else (third, second)
        began = time.perf_counter()
        serving.run("%workbench stop")
        _answer(following)
        return {MOVED: moved, KILLED: killed, STOPPED: time.perf_counter() - began}


@contextlib.contextmanager
def _suspended(*kernels: Kernel) -> Iterator[None]:
    processes = [psutil.Process(int(kernel.run(PID))) for kernel in kernels]
    for process in processes:
        process.suspend()
    yield
    for process in processes:
        process.resume()


def _answer(kernel: Kernel) -> float:
    """Seconds until a call is answered."""
    began = time.perf_counter()
    kernel.run(PING)
    return time.perf_counter() - began


ROW = Row(
    "B26",
    "a kernel that is attached gets an answer",
    "–",
    {name: within(5, "s") for name in (MOVED, KILLED, STOPPED)},
    run,
)
