"""The part of a sweep in a worker of a Dask cluster: it executes runs as in a sweep without Dask.

A worker that sees the project and reaches its server reports its runs there; another one executes them in a copy, see
`copied`. Interrupting a sweep reaches its runs through `ask` and `end`. If the sweep itself was killed, Dask forgets
its tasks, and the worker ends the runs. One that cannot do so, because it hangs, is ended with them: see `leftovers`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from workbench.client.discovery import find_server
from workbench.client.lasting import LastingConnection
from workbench.client.project_server import server_file
from workbench.clusters.dask import PACKAGE, is_wanted
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps.dask.copied import Connected, CopiedProject, LacksFiles, NeededArchive, Returned
from workbench.sweeps.execution import RunOutcome, execute_run
from workbench.sweeps.job import SweepJob
from workbench.sweeps.leftovers import note_worker
from workbench.sweeps.plan import require_kernel
from workbench.sweeps.watch import GRACE_SECONDS, Watch, end_marked

FILES = "workbench-files"
"""The directory in that of a worker with the files of projects."""
END_SECONDS = 10.0
"""How long to wait for the end of runs when a sweep leaves a worker."""
TICK_SECONDS = 0.05


@dataclass(frozen=True)
class SeesNoProject:
    """The answer of a worker that does not see the project, and was to report a run to the project's server."""


Answer = RunOutcome | Returned | LacksFiles | SeesNoProject | None
"""What a worker answers that is to execute a run; None: all were cancelled before."""


class SweepPlugin(WorkerPlugin):  # type: ignore[misc]
    """A sweep in a worker: present from its registration, or from the worker's start, to the sweep's end.

    Args:
        topic: that of the events about cells.
        version: of Workbench, where the sweep was started.
        nonce: of the project's server, by which a worker knows it; None: none runs.
        connected: serves the copy of a project.
        environment: for a worker that belongs to the sweep: its environment variables; it then ignores Ctrl-C in the
            terminal, which is the sweep's. None: the worker is somebody else's, and stays as it is.
    """

    def __init__(
        self,
        job: SweepJob,
        topic: str,
        nonce: str | None,
        connected: Connected,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._job = job
        self._topic = topic
        self._nonce = nonce
        self._connected = connected
        self._version = metadata.version(PACKAGE)
        self._environment = environment
        self._unfit: WorkbenchError | None = None
        self._sees_project = False

    async def setup(self, worker: Worker) -> None:
        """Called by Dask, in the worker's event loop."""
        self._worker = worker
        self._tasks: set[Any] = set()
        self._lock = threading.Lock()
        self._watch = Watch(self._is_wanted)
        self._call = LastingConnection(server_file(self._job.project))
        self.copy = CopiedProject(self._job, Path(worker.local_directory) / FILES, worker.address, self._connected)
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

    def require_fit(self) -> bool:
        """Check that this worker can execute the runs; whether it sees the project.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``.
        """
        if self._unfit is not None:
            raise self._unfit
        return self._sees_project

    def execute(self, run: PlannedRun, archive: NeededArchive | None) -> Answer:
        """Execute a run, as a task; None: all were cancelled before.

        Args:
            archive: the project's files, of which to make a copy; None: report the run to the project's server.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``.
        """
        self.require_fit()
        if archive is None and not self._sees_project:
            return SeesNoProject()
        if self._watch.cancelled:
            return None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which this thread's kernel would inherit
        task = self._worker.get_current_task()
        with self._lock:
            self._tasks.add(task)
        tell = partial(self._tell, run.number)
        try:
            if archive is not None:
                return self.copy.execute(archive, run, self._watch, tell)
            return execute_run(self._call, self._job, run, self._watch, tell)
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

        if self._environment is not None:
            note_worker(self._job.outputs)
        if (own_version := metadata.version(PACKAGE)) != self._version:
            raise self._unfit_error(f"has Workbench {own_version}, and the sweep {self._version}. Install the same")
        self._sees_project = asyncio.run(self._finds_server())
        if not self._sees_project:
            self._require_copyable()
        try:
            require_kernel(json.loads(self._job.text), self._job.notebook)
        except WorkbenchError as error:
            raise self._unfit_error(f"cannot run the notebook. {error.message.rstrip('.')}") from None
        if self._sees_project:
            self._call.start()

    async def _finds_server(self) -> bool:
        """Whether the project's directory is here, and its server is within reach: not those of another clone."""
        if not self._job.outputs.is_dir():
            return False
        server = await find_server(server_file(self._job.project))
        return server is not None and server.info.nonce == self._nonce

    def _require_copyable(self) -> None:
        """Check that a copy of the project's files serves this sweep.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``.
        """
        job, unseen = self._job, f"does not see {self._job.project}, or not its server"
        if job.space is None:
            raise self._unfit_error(f"{unseen}, so that its runs cannot coordinate with others. Leave out --share")
        if not job.directory.is_relative_to(job.project):
            raise self._unfit_error(f"{unseen}, and is sent its files only. Move {job.notebook} into the project")

    def _unfit_error(self, why: str) -> Unavailable:
        return Unavailable("DASK_WORKER_UNFIT", f"The Dask worker {self._worker.address} {why}.")

    def _is_wanted(self) -> bool:
        """Whether the sweep still waits for the runs: Dask cancels their tasks when it leaves."""
        with self._lock:
            return is_wanted(self._worker, self._tasks)

    def _tell(self, number: int, done: int, cells: int) -> None:
        self._worker.log_event(self._topic, [number, done, cells])

    def _close(self) -> None:
        self._watch.ask_all()
        self._wait(GRACE_SECONDS)
        self._watch.end_all()
        self._wait(END_SECONDS)
        self._watch.__exit__()
        self._call.stop()
        self.copy.close()

    def _wait(self, seconds: float) -> None:
        """Wait until no run is under way, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self._tasks and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)


def execute(name: str, run: PlannedRun, archive: NeededArchive | None) -> Answer:
    """A task: execute a run of the sweep whose plugin has this name."""
    plugin: SweepPlugin = get_worker().plugins[name]
    return plugin.execute(run, archive)


def require_fit(name: str, dask_worker: Worker) -> bool:
    """Called in each worker; see `SweepPlugin.require_fit`."""
    is_seen: bool = dask_worker.plugins[name].require_fit()
    return is_seen


async def receive(name: str, archive: NeededArchive, offset: int, data: bytes, dask_worker: Worker) -> int:
    """Called in one worker; see `CopiedProject.receive`."""
    return await asyncio.to_thread(dask_worker.plugins[name].copy.receive, archive, offset, data)


async def read(name: str, number: int, sha256: str, offset: int, dask_worker: Worker) -> bytes:
    """Called in one worker; see `CopiedProject.read`."""
    return await asyncio.to_thread(dask_worker.plugins[name].copy.read, number, sha256, offset)


async def forget(name: str, number: int, dask_worker: Worker) -> None:
    """Called in one worker; see `CopiedProject.forget`."""
    await asyncio.to_thread(dask_worker.plugins[name].copy.forget, number)


def ask(name: str, dask_worker: Worker) -> None:
    """Called in each worker; see `SweepPlugin.ask`."""
    dask_worker.plugins[name].ask()


def end(name: str, dask_worker: Worker) -> None:
    """Called in each worker; see `SweepPlugin.end`."""
    dask_worker.plugins[name].end()


def clear(job: SweepJob) -> None:
    """Called in each worker once no run is under way: end the processes that killed workers left on the machine."""
    end_marked(job.mark)
