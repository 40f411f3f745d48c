"""Runs that wait for their turn when a sweep is interrupted."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import cast

import pytest

from workbench.errors import Unavailable
from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps import sweep
from workbench.sweeps.execution import OnCell, RunOutcome
from workbench.sweeps.job import SweepJob
from workbench.sweeps.progress import SweepProgress

pytestmark = pytest.mark.timeout(60)


class OneAtATime:
    """An executor whose run lasts until it is cancelled."""

    job = cast(SweepJob, SimpleNamespace(name="queue"))
    at_once = 1

    def __init__(self) -> None:
        self.began = threading.Event()
        self.asked = threading.Event()

    @property
    def cancelled(self) -> bool:
        return self.asked.is_set()

    def execute(self, run: PlannedRun, on_cell: OnCell) -> RunOutcome | None:
        self.began.set()
        self.asked.wait()
        return RunOutcome(run, run.number, "cancelled", 0.1, Unavailable("RUN_CANCELLED", "The sweep was interrupted."))

    def check(self) -> None: ...

    def ask_all(self) -> None:
        self.asked.set()

    def end_all(self) -> None:
        self.asked.set()


def test_an_interrupted_sweep_does_not_wait_for_runs_that_never_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "END_SECONDS", 3600.0)
    executor, runs = OneAtATime(), [planned(number) for number in range(1, 6)]

    def interrupt_once(progress: SweepProgress) -> None:
        executor.began.wait()
        if not executor.cancelled:
            raise KeyboardInterrupt

    result = sweep.execute_sweep(executor, runs, SweepProgress("queue", len(runs), {}), interrupt_once)
    assert result.interrupted
    assert [one.run.number for one in result.outcomes] == [1]


def planned(number: int) -> PlannedRun:
    return PlannedRun(number, f"key-{number}", {}, {}, 1)
