"""Hands the runs of a sweep to the workers of a Dask cluster, each as one task, and waits for them.

If each worker sees the project, they report their runs to its server themselves. If one does not, all execute runs in
copies of the project's files, and what came of these is recorded here: see `carrier`.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench.client.project_server import server_file
from workbench.clusters.dask import LOST_SECONDS, SETUP_SECONDS, WORKERLESS_SECONDS, answer, require_same_version
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.state.server_file import ServerFile
from workbench.sweeps.dask import worker
from workbench.sweeps.dask.carrier import Carrier, CopiedRun, WorkerGone
from workbench.sweeps.dask.copied import Connected, LacksFiles, NeededArchive, Returned
from workbench.sweeps.dask.worker import Answer, SeesNoProject
from workbench.sweeps.execution import OnCell, RunOutcome, fail_run
from workbench.sweeps.job import SweepCall, SweepJob

if TYPE_CHECKING:
    from distributed import Client

ANSWER_SECONDS = 10.0
PIECE_SECONDS = 120.0
"""Within which a worker has to take or give a piece of a file."""
POLL_SECONDS = 1.0
CHECK_SECONDS = 2.0
END_SECONDS = 10.0
TRIES = 5

log = logging.getLogger(__name__)


@dataclass
class _Listener:
    """Hears of the cells of one run.

    Attributes:
        begun: how many workers have begun it.
        news: set when one begins, or when there is an answer.
    """

    on_cell: OnCell
    begun: int = 0
    news: threading.Event = field(default_factory=threading.Event)

    def tell(self, done: int, cells: int) -> None:
        """Called when a worker begins, with zeros, and when it has executed a cell."""
        if not cells:
            self.begun += 1
            self.news.set()
        self.on_cell(done, cells)


@dataclass(frozen=True)
class _Work:
    """A run to execute: unpickling it executes it. The scheduler passes it on as bytes, and needs no Workbench."""

    name: str
    run: PlannedRun
    archive: NeededArchive | None

    def __reduce__(self) -> tuple[Callable[..., Answer], tuple[Any, ...]]:
        return worker.execute, (self.name, self.run, self.archive)


class DaskExecutor:
    """Executes runs on a cluster; see `workbench.sweeps.executor.Executor`.

    Args:
        name: of the sweep's plugin in the workers.
        patience: seconds for which the cluster may be without workers.

    Attributes:
        lost: the reason why it cannot execute any more; None: it can.
        carrier: sends the project's files to workers that do not see it.
    """

    def __init__(
        self, client: Client, call: SweepCall, job: SweepJob, name: str, patience: float = WORKERLESS_SECONDS
    ) -> None:
        self._patience = patience
        self.job = job
        self.at_once = job.limits.workers
        self.cancelled = False
        self._client = client
        self._call = call
        self._name = name
        self._lock = threading.Lock()
        self._listeners: dict[int, _Listener] = {}
        self.lost: WorkbenchError | None = None
        self.carrier = Carrier(self._ask_worker, job, name)
        self._give_up_at = float("inf")
        self._checked = self._answered = self._had_workers = time.monotonic()

    def execute(self, run: PlannedRun, on_cell: OnCell) -> RunOutcome | None:
        """See `Executor`."""
        with self._listen(run, on_cell) as listener:
            if self.carrier.archive is None:
                answer = self._execute_in_project(run, listener)
                if not isinstance(answer, SeesNoProject):
                    return answer
                self._use_copies()
            return None if self.carrier.archive is None else self._execute_in_copy(run, listener, self.carrier.archive)

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
                listener.tell(done, cells)

    @contextmanager
    def _listen(self, run: PlannedRun, on_cell: OnCell) -> Iterator[_Listener]:
        with self._lock:
            listener = self._listeners[run.number] = _Listener(on_cell)
        try:
            yield listener
        finally:
            with self._lock:
                del self._listeners[run.number]

    def _execute_in_project(self, run: PlannedRun, listener: _Listener) -> RunOutcome | SeesNoProject | None:
        """Let a worker execute a run, and report it to the project's server."""
        answer: RunOutcome | SeesNoProject | None = None
        for _ in range(TRIES):
            submitted = self._submit(run, listener)
            assert not isinstance(submitted, Returned | LacksFiles)
            answer = submitted
            if not isinstance(answer, RunOutcome) or answer.error is None or answer.error.code != "RUN_RUNNING":
                break
            # the worker that ran it has left the cluster, and runs somewhere that cannot be seen from here
            with suppress(Conflict):
                self._call("end_run", run_id=answer.error.details["run_id"], state="lost")
        return answer

    def _use_copies(self) -> None:
        """Let runs be executed in copies of the project's files from now on."""
        try:
            self.carrier.pack()
        except WorkbenchError as error:
            self._lose(error)

    def _execute_in_copy(self, run: PlannedRun, listener: _Listener, archive: NeededArchive) -> RunOutcome | None:
        """Let a worker execute a run in a copy of the project's files, and record here what came of it."""
        started_at, sent = time.monotonic(), set[str]()
        record = CopiedRun(self._call, replace(self.job, space=None, session=None), run, self.carrier)
        tries = 0
        error: WorkbenchError = _worker_lost_error()
        while tries < TRIES:
            answer = self._submit(run, listener, record, archive)
            tries += not isinstance(answer, LacksFiles) or answer.worker in sent
            try:
                if isinstance(answer, LacksFiles):
                    sent.add(answer.worker)
                    self.carrier.send(answer.worker)
                elif not isinstance(answer, Returned):
                    assert answer is None or isinstance(answer, RunOutcome)
                    return answer or record.cancel()
                elif not self._was_sent_away(answer):
                    return record.end(answer)
            except WorkerGone:
                continue
            except WorkbenchError as failure:  # the files did not arrive
                error = failure
        return fail_run(self._call, record.job, run, error, time.monotonic() - started_at)

    def _was_sent_away(self, returned: Returned) -> bool:
        """Whether a worker has ended a run because the worker itself ends, as a batch system does with it."""
        error = returned.outcome.error
        return not self.cancelled and error is not None and error.code == "RUN_CANCELLED"

    def _submit(
        self,
        run: PlannedRun,
        listener: _Listener,
        record: CopiedRun | None = None,
        archive: NeededArchive | None = None,
    ) -> Answer:
        """Let the cluster execute a run; it may begin it more than once if workers die.

        Args:
            record: that of a run in a copy, which is kept here.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        started_at = time.monotonic()
        task = f"{self._name}-{run.number}-{uuid4().hex}"
        try:
            work = pickle.dumps(_Work(self._name, run, archive))
            future = self._client.submit(pickle.loads, work, key=task, pure=False, retries=0)
            return self._wait_for_result(future, listener, record)
        except KilledWorker:
            run_error = _worker_lost_error()
        except (FutureCancelledError, OSError):
            self._lose(_lost_error())
            return None
        except WorkbenchError as error:
            self._lose(error)
            return None
        except Exception as defect:  # it must not end the other runs
            if self._client.status in ("closing", "closed"):  # it has given up the scheduler
                self._lose(_lost_error())
                return None
            run_error = Unavailable("RUN_FAILED", f"The run failed: {defect!r}")
        job = self.job if record is None else record.job
        return fail_run(self._call, job, run, run_error, time.monotonic() - started_at)

    def _wait_for_result(self, future: Any, listener: _Listener, record: CopiedRun | None) -> Answer:
        """The result of a task; None if the sweep was cancelled and no answer comes."""
        future.add_done_callback(lambda _: listener.news.set())
        try:
            while time.monotonic() < self._give_up_at:
                listener.news.wait(POLL_SECONDS)
                listener.news.clear()
                if record is not None:
                    record.begin(listener.begun)
                if future.done():
                    result: Answer = future.result(timeout=ANSWER_SECONDS)
                    return result
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
        elif self._answered - self._had_workers > self._patience:
            self._lose(
                Unavailable(
                    "DASK_NO_WORKERS",
                    f"The Dask cluster has had no workers for {self._patience:g} s. Start some, and run the sweep "
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

    def _ask_worker(self, address: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in one worker.

        Raises:
            WorkerGone. WorkbenchError: what the function raises.
        """
        try:
            return self._ask(self._client.run, function, *args, workers=[address], seconds=PIECE_SECONDS)[address]
        except WorkbenchError:
            raise
        except Exception as error:  # whatever the network does
            raise WorkerGone(address) from error

    def _ask(self, function: Callable[..., Any], *args: Any, seconds: float = ANSWER_SECONDS, **options: Any) -> Any:
        return answer(self._client, function, *args, seconds=seconds, **options)


@contextmanager
def on_cluster(
    client: Client,
    call: SweepCall,
    job: SweepJob,
    is_own: bool,
    serve: Connected,
    patience: float = WORKERLESS_SECONDS,
) -> Iterator[DaskExecutor]:
    """An executor that uses a cluster, whose workers have the sweep's plugin meanwhile.

    Args:
        is_own: the cluster belongs to the sweep.
        serve: serves the copy of a project, in a worker.
        patience: seconds for which the cluster may be without workers.

    Raises:
        Unavailable: ``DASK_WORKER_UNFIT``, ``DASK_UNREACHABLE``. WorkbenchError: see `project_copy.pack`.
    """
    name = f"workbench-{job.mark}"
    topic = f"{name}-{uuid4().hex}"
    executor = DaskExecutor(client, call, job, name, patience)
    server = ServerFile(server_file(job.project)).load().info
    plugin = worker.SweepPlugin(job, topic, server.nonce if server else None, serve, {**os.environ} if is_own else None)
    client.subscribe_topic(topic, executor.on_event)
    try:
        try:
            require_same_version(client, "the sweep")
            answer(client, client.register_plugin, plugin, name=name, seconds=SETUP_SECONDS)
            sees_project = answer(client, client.run, worker.require_fit, name, seconds=SETUP_SECONDS)
            if not all(sees_project.values()):
                executor.carrier.pack()
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
        executor.carrier.close()


def _worker_lost_error() -> Unavailable:
    return Unavailable(
        "DASK_WORKER_LOST",
        "The Dask workers that ran it died, one after the other. Run it again with --retry-failed.",
    )


def _lost_error() -> Unavailable:
    return Unavailable(
        "DASK_LOST",
        "The connection to the Dask scheduler was lost. Once it is back, run the sweep again with --resume.",
    )
