"""Hands the runs of a sweep to the workers of a Dask cluster, each as one task, and waits for them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps.dask import worker
from workbench.sweeps.execution import OnCell, RunOutcome, fail_run
from workbench.sweeps.job import SweepCall, SweepJob

if TYPE_CHECKING:
    from distributed import Client

SETUP_SECONDS = 120.0
"""Workers first import what runs need."""
ANSWER_SECONDS = 10.0
POLL_SECONDS = 1.0
CHECK_SECONDS = 2.0
LOST_SECONDS = 20.0
"""How long a scheduler may be silent before the sweep ends."""
WORKERLESS_SECONDS = 60.0
"""How long a cluster may be without workers before the sweep ends: new ones take time to start."""
END_SECONDS = 10.0
TRIES = 5

log = logging.getLogger(__name__)


class DaskExecutor:
    """Executes runs on a cluster; see `workbench.sweeps.executor.Executor`.

    Args:
        name: of the sweep's plugin in the workers.

    Attributes:
        lost: the reason why it cannot execute any more; None: it can.
    """

    def __init__(self, client: Client, call: SweepCall, job: SweepJob, name: str) -> None:
        self.job = job
        self.at_once = job.limits.workers
        self.cancelled = False
        self._client = client
        self._call = call
        self._name = name
        self._lock = threading.Lock()
        self._listeners: dict[int, OnCell] = {}
        self.lost: WorkbenchError | None = None
        self._give_up_at = float("inf")
        self._checked = self._answered = self._had_workers = time.monotonic()

    def execute(self, run: PlannedRun, on_cell: OnCell) -> RunOutcome | None:
        """See `Executor`."""
        with self._listen(run, on_cell):
            for _ in range(TRIES):
                outcome = self._submit(run)
                if outcome is None or outcome.error is None or outcome.error.code != "RUN_RUNNING":
                    return outcome
                # the worker that ran it has left the cluster, and runs somewhere that cannot be seen from here
                with suppress(Conflict):
                    self._call("end_run", run_id=outcome.error.details["run_id"], state="lost")
            return outcome

    def check(self) -> None:
        """See `Executor`.

        Raises:
            Unavailable: ``DASK_LOST``, ``DASK_NO_WORKERS``, ``DASK_WORKER_UNFIT``.
        """
        if self.lost is None and time.monotonic() - self._checked > CHECK_SECONDS:
            self._checked = time.monotonic()
            self._count_workers()
        if self.lost is not None:
            raise self.lost

    def ask_all(self) -> None:
        """See `Executor`."""
        self.cancelled = True
        self._call_everywhere(worker.ask)

    def end_all(self) -> None:
        """See `Executor`."""
        self.cancelled = True
        self._give_up_at = time.monotonic() + END_SECONDS
        self._call_everywhere(worker.end)

    def on_event(self, event: tuple[float, Any]) -> None:
        """Called with the workers' reports about cells."""
        number, done, cells = event[1]
        with self._lock:
            if (listener := self._listeners.get(number)) is not None:
                listener(done, cells)

    @contextmanager
    def _listen(self, run: PlannedRun, on_cell: OnCell) -> Iterator[None]:
        with self._lock:
            self._listeners[run.number] = on_cell
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[run.number]

    def _submit(self, run: PlannedRun) -> RunOutcome | None:
        """Let the cluster execute a run; it may begin it more than once if workers die."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        started_at = time.monotonic()
        task = f"{self._name}-{run.number}-{uuid4().hex}"
        try:
            future = self._client.submit(worker.execute, self._name, run, key=task, pure=False, retries=0)
            outcome: RunOutcome | None = self._wait_for_result(future)
            return outcome
        except KilledWorker:
            worker_error = Unavailable(
                "DASK_WORKER_LOST",
                "The Dask workers that ran it died, one after the other. Run it again with --retry-failed.",
            )
            return fail_run(self._call, self.job, run, worker_error, time.monotonic() - started_at)
        except (FutureCancelledError, OSError):
            self._lose(_lost_error())
        except WorkbenchError as error:
            self._lose(error)
        except Exception as defect:  # it must not end the other runs
            run_error = Unavailable("RUN_FAILED", f"The run failed: {defect!r}")
            return fail_run(self._call, self.job, run, run_error, time.monotonic() - started_at)
        return None

    def _wait_for_result(self, future: Any) -> Any:
        """The result of a task; None if the sweep was cancelled and no answer comes."""
        try:
            while time.monotonic() < self._give_up_at:
                with suppress(TimeoutError):
                    return future.result(timeout=POLL_SECONDS)
            return None
        finally:
            future.release()

    def _count_workers(self) -> None:
        try:
            number = self._ask(self._client.scheduler.identity, n_workers=0)["n_workers"]
        except Exception:  # whatever the network does
            if time.monotonic() - self._answered > LOST_SECONDS:
                self._lose(_lost_error())
            return
        self._answered = time.monotonic()
        if number:
            self._had_workers = self._answered
        elif self._answered - self._had_workers > WORKERLESS_SECONDS:
            self._lose(
                Unavailable(
                    "DASK_NO_WORKERS",
                    f"The Dask cluster has had no workers for {WORKERLESS_SECONDS:g} s. Start some, and run the sweep "
                    "again with --resume.",
                )
            )

    def _lose(self, error: WorkbenchError) -> None:
        self.lost = self.lost or error

    def _call_everywhere(self, function: Callable[..., None]) -> None:
        """Call a function in each worker that answers."""
        if self.lost is not None and self.lost.code == "DASK_LOST":
            return
        try:
            self._ask(self._client.run, function, self._name, on_error="ignore")
        except Exception as error:  # runs that cannot be reached are ended by their workers
            log.warning("the Dask workers could not be told that the sweep ends: %s", error)

    def _ask(self, function: Callable[..., Any], *args: Any, seconds: float = ANSWER_SECONDS, **options: Any) -> Any:
        return answer(self._client, function, *args, seconds=seconds, **options)


@contextmanager
def on_cluster(client: Client, call: SweepCall, job: SweepJob, is_own: bool) -> Iterator[DaskExecutor]:
    """An executor that uses a cluster, whose workers have the sweep's plugin meanwhile.

    Args:
        is_own: the cluster belongs to the sweep.

    Raises:
        Unavailable: ``DASK_WORKER_UNFIT``, ``DASK_UNREACHABLE``.
    """
    name = f"workbench-{job.mark}"
    topic = f"{name}-{uuid4().hex}"
    executor = DaskExecutor(client, call, job, name)
    plugin = worker.SweepPlugin(job, topic, {**os.environ} if is_own else None)
    client.subscribe_topic(topic, executor.on_event)
    try:
        try:
            answer(client, client.register_plugin, plugin, name=name, seconds=SETUP_SECONDS)
            answer(client, client.run, worker.require_fit, name, seconds=SETUP_SECONDS)
        except WorkbenchError:
            raise
        except Exception as error:  # such as a worker that lacks Workbench
            why = " ".join(str(error).split())[:300]
            raise Unavailable("DASK_WORKER_UNFIT", f"A Dask worker cannot run sweeps: {why}") from None
        yield executor
    finally:
        if executor.lost is None or executor.lost.code != "DASK_LOST":
            with suppress(Exception):  # the scheduler may be gone
                client.unsubscribe_topic(topic)
                answer(client, client.unregister_worker_plugin, name, seconds=SETUP_SECONDS)
                answer(client, client.run, worker.clear, job, on_error="ignore", seconds=SETUP_SECONDS)


def _lost_error() -> Unavailable:
    return Unavailable(
        "DASK_LOST",
        "The connection to the Dask scheduler was lost. Once it is back, run the sweep again with --resume.",
    )


def answer(client: Client, function: Callable[..., Any], *args: Any, seconds: float, **options: Any) -> Any:
    """Call a function of a client that asks the scheduler, and wait at most `seconds` for the answer.

    Raises:
        TimeoutError: none came. Exception: what the function raises.
    """

    async def asked() -> Any:
        return await function(*args, **options)

    return client.sync(asked, callback_timeout=seconds)
