"""The part of a sweep in a worker of a Dask cluster: it executes runs as in a sweep without Dask.

Interrupting a sweep reaches its runs through `ask` and `end`. If the sweep itself was killed, Dask forgets its tasks,
and the worker ends the runs. One that cannot do so, because it hangs, is ended with them: see `leftovers`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from workbench.client.discovery import find_server
from workbench.client.lasting import LastingConnection
from workbench.client.project_server import server_file
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps.execution import RunOutcome, execute_run
from workbench.sweeps.job import SweepJob
from workbench.sweeps.leftovers import note_worker
from workbench.sweeps.plan import require_kernel
from workbench.sweeps.watch import GRACE_SECONDS, Watch, end_marked

PACKAGE = "workbench-agents"
END_SECONDS = 10.0
"""How long to wait for the end of runs when a sweep leaves a worker."""
TICK_SECONDS = 0.05


class SweepPlugin(WorkerPlugin):  # type: ignore[misc]
    """A sweep in a worker: present from its registration, or from the worker's start, to the sweep's end.

    Args:
        topic: that of the events about cells.
        version: of Workbench, where the sweep was started.
        environment: for a worker that belongs to the sweep: its environment variables; it then ignores Ctrl-C in the
            terminal, which is the sweep's. None: the worker is somebody else's, and stays as it is.
    """

    def __init__(self, job: SweepJob, topic: str, environment: Mapping[str, str] | None = None) -> None:
        self._job = job
        self._topic = topic
        self._version = metadata.version(PACKAGE)
        self._environment = environment
        self._unfit: WorkbenchError | None = None

    async def setup(self, worker: Worker) -> None:
        """Called by Dask, in the worker's event loop."""
        self._worker = worker
        self._tasks: set[Any] = set()
        self._lock = threading.Lock()
        self._watch = Watch(self._is_wanted)
        self._call = LastingConnection(server_file(self._job.project))
        self._watch.__enter__()
        if self._environment is not None:
            os.environ.clear()
            os.environ.update(self._environment)
            signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which kernels would inherit
        try:
            await asyncio.to_thread(self._prepare)
        except WorkbenchError as error:
            self._unfit = error

    async def teardown(self, worker: Worker) -> None:
        """Called by Dask when the sweep has ended, or another attempt begins: end all its runs here."""
        await asyncio.to_thread(self._close)

    def require_fit(self) -> None:
        """Check that this worker can execute the runs.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``.
        """
        if self._unfit is not None:
            raise self._unfit

    def execute(self, run: PlannedRun) -> RunOutcome | None:
        """Execute a run, as a task; None: all were cancelled before.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``.
        """
        self.require_fit()
        if self._watch.cancelled:
            return None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which this thread's kernel would inherit
        task = self._worker.get_current_task()
        with self._lock:
            self._tasks.add(task)
        try:
            return execute_run(self._call, self._job, run, self._watch, partial(self._tell, run.number))
        finally:
            with self._lock:
                self._tasks.discard(task)

    def ask(self) -> None:
        """See `Executor.ask_all`."""
        self._watch.ask_all()

    def end(self) -> None:
        """See `Executor.end_all`."""
        self._watch.end_all()

    def _prepare(self) -> None:
        """Import what runs need, connect, and check.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``, ``PROJECT_UNWRITABLE``.
        """
        from workbench.sweeps import engine  # noqa: F401 (now, not within the first run)

        project = self._job.project
        if self._environment is not None:
            note_worker(self._job.outputs)
        if (own_version := metadata.version(PACKAGE)) != self._version:
            raise self._unfit_error(f"has Workbench {own_version}, and the sweep {self._version}. Install the same")
        if not self._job.outputs.is_dir():
            raise self._unfit_error(f"does not see {project}. Share the project's directory, at the same path")
        if asyncio.run(find_server(server_file(project))) is None:
            raise self._unfit_error(
                "does not reach the project's server. Let that listen on an address that it reaches"
            )
        try:
            require_kernel(json.loads(self._job.text), self._job.notebook)
        except WorkbenchError as error:
            raise self._unfit_error(f"cannot run the notebook. {error.message.rstrip('.')}") from None
        self._call.start()

    def _unfit_error(self, why: str) -> Unavailable:
        return Unavailable("DASK_WORKER_UNFIT", f"The Dask worker {self._worker.address} {why}.")

    def _is_wanted(self) -> bool:
        """Whether the sweep still waits for the runs: Dask cancels their tasks when it leaves."""
        with self._lock:
            tasks = [self._worker.state.tasks.get(task) for task in self._tasks]
        closes = self._worker.status.name in ("closing", "closed", "failed")
        return not closes and all(task is not None and task.state != "cancelled" for task in tasks)

    def _tell(self, number: int, done: int, cells: int) -> None:
        self._worker.log_event(self._topic, [number, done, cells])

    def _close(self) -> None:
        self._watch.ask_all()
        self._wait(GRACE_SECONDS)
        self._watch.end_all()
        self._wait(END_SECONDS)
        self._watch.__exit__()
        self._call.stop()

    def _wait(self, seconds: float) -> None:
        """Wait until no run is under way, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self._tasks and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)


def execute(name: str, run: PlannedRun) -> RunOutcome | None:
    """A task: execute a run of the sweep whose plugin has this name."""
    plugin: SweepPlugin = get_worker().plugins[name]
    return plugin.execute(run)


def require_fit(name: str, dask_worker: Worker) -> None:
    """Called in each worker; see `SweepPlugin.require_fit`."""
    dask_worker.plugins[name].require_fit()


def ask(name: str, dask_worker: Worker) -> None:
    """Called in each worker; see `SweepPlugin.ask`."""
    dask_worker.plugins[name].ask()


def end(name: str, dask_worker: Worker) -> None:
    """Called in each worker; see `SweepPlugin.end`."""
    dask_worker.plugins[name].end()


def clear(job: SweepJob) -> None:
    """Called in each worker once no run is under way: end the processes that killed workers left on the machine."""
    end_marked(job.mark)
