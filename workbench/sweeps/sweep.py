"""The runs of a sweep, several at a time, until all are done or it is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass

from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps.execution import RunOutcome
from workbench.sweeps.executor import Executor
from workbench.sweeps.job import SweepJob
from workbench.sweeps.progress import SweepProgress
from workbench.sweeps.watch import GRACE_SECONDS

SHOW_SECONDS = 0.2
END_SECONDS = 10.0
"""How long threads may take to notice that their kernels were ended."""


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep.

    Args:
        outcomes: the outcomes of the runs to execute, in the order in which they ended.
        interrupted: it was interrupted, and not all runs are done.
    """

    job: SweepJob
    progress: SweepProgress
    interrupted: bool

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        """See above."""
        return self.progress.outcomes

    @property
    def failed(self) -> list[RunOutcome]:
        """The runs that failed, by number."""
        return sorted(
            (outcome for outcome in self.outcomes if outcome.state == "failed"), key=lambda outcome: outcome.run.number
        )


def execute_sweep(
    executor: Executor, runs: Sequence[PlannedRun], progress: SweepProgress, show: Callable[[SweepProgress], None]
) -> SweepResult:
    """Execute runs, and record each. Call it within `leftovers.only_one`, in the main thread.

    The first interrupt stops the code of all kernels, which has a moment to clean up; the second ends them at once.

    Args:
        runs: those that are not completed.
        show: shows the progress; called often, in this thread.

    Raises:
        Unavailable: see `Executor.check`.
    """
    threads = ThreadPoolExecutor(executor.at_once, "workbench-sweep")
    waiting: set[Future[None]] = set()
    try:
        for run in runs:
            waiting.add(threads.submit(_run, executor, run, progress))
        while waiting:
            waiting -= wait(waiting, SHOW_SECONDS, FIRST_COMPLETED).done
            show(progress)
            executor.check()
    except BaseException as error:
        _stop(threads, waiting, executor)
        show(progress)
        if not isinstance(error, KeyboardInterrupt):
            raise
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
    show(progress)
    return SweepResult(executor.job, progress, executor.cancelled)


def _run(executor: Executor, run: PlannedRun, progress: SweepProgress) -> None:
    if executor.cancelled:
        return
    outcome = executor.execute(run, lambda done, cells: progress.note(run, done, cells))
    if outcome is not None:
        progress.end(outcome)


def _stop(threads: ThreadPoolExecutor, waiting: set[Future[None]], executor: Executor) -> None:
    """Cancel all runs: interrupt them, then end them."""
    thread = threading.Thread(target=executor.ask_all, name="workbench-sweep-stop", daemon=True)
    with suppress(KeyboardInterrupt):
        thread.start()
        threads.shutdown(wait=False, cancel_futures=True)
        _wait(waiting, GRACE_SECONDS + SHOW_SECONDS)
    thread.join()
    executor.end_all()
    _wait(waiting, END_SECONDS)


def _wait(futures: set[Future[None]], seconds: float) -> None:
    """Wait for the runs that began; `wait` would also wait for those that were cancelled in the queue."""
    wait({future for future in futures if not future.cancelled()}, seconds)
