"""Executors of a sweep's runs: threads of this process, or the workers of a Dask cluster (`sweeps.dask`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps.execution import OnCell, RunOutcome, execute_run
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.sweeps.watch import Watch


class Executor(Protocol):
    """Executes runs of one sweep. Its methods may be called in any thread, several at a time."""

    @property
    def job(self) -> SweepJob:
        """The sweep."""
        ...

    @property
    def at_once(self) -> int:
        """How many runs it takes at a time."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether all runs were cancelled."""
        ...

    def execute(self, run: PlannedRun, on_cell: OnCell) -> RunOutcome | None:
        """Execute one run, and wait for its end. None: it was not begun, because all were cancelled.

        Args:
            on_cell: called with how many cells are done, and how many there are; with zeros when the run begins.
        """
        ...

    def check(self) -> None:
        """Called often while runs are under way.

        Raises:
            Unavailable: it can execute no more.
        """
        ...

    def ask_all(self) -> None:
        """Cancel all runs, and interrupt the code of those under way; code that does not end soon is killed."""
        ...

    def end_all(self) -> None:
        """Cancel all runs, and end those under way at once."""
        ...


@dataclass(frozen=True)
class LocalExecutor:
    """Executes runs in threads of this process, whose kernels are its children."""

    call: SweepCall
    job: SweepJob
    watch: Watch

    @property
    def at_once(self) -> int:
        """See `Executor`."""
        return self.job.limits.workers

    @property
    def cancelled(self) -> bool:
        """See `Executor`."""
        return self.watch.cancelled

    def execute(self, run: PlannedRun, on_cell: OnCell) -> RunOutcome:
        """See `Executor`."""
        return execute_run(self.call, self.job, run, self.watch, on_cell)

    def check(self) -> None:
        """See `Executor`: it always can."""

    def ask_all(self) -> None:
        """See `Executor`."""
        self.watch.ask_all()

    def end_all(self) -> None:
        """See `Executor`."""
        self.watch.end_all()


@contextmanager
def in_this_process(call: SweepCall, job: SweepJob) -> Iterator[Executor]:
    """An executor that uses threads."""
    with Watch() as watch:
        yield LocalExecutor(call, job, watch)
