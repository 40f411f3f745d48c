"""`python -m workbench.clusters.over_dask`: a worker on a Dask cluster, as a process of this machine.

It reads what to start from its standard input, submits a task to the cluster, gives the worker that the task starts its
token, and repeats what is said there. SIGTERM ends the worker there as by SIGTERM, and this process with it; if this
process is killed, Dask cancels its task, and the worker there ends in the same way.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from workbench.client import HttpClient
from workbench.clusters import dask, slurm
from workbench.clusters.dask import LOST_SECONDS, WORKERLESS_SECONDS
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules import remote_worker
from workbench.rules.remote_worker import LINE
from workbench.state.machine import DaskMachine, SlurmMachine
from workbench.state.server_file import ServerFile

if TYPE_CHECKING:
    from distributed import Client

    from workbench.clusters.remote_agent import RemoteStart, Said

SIGNALS = (signal.SIGTERM, signal.SIGINT)
PRIORITY = 10
"""Before the runs of sweeps, which wait for threads in great numbers: a worker takes none for long."""
ANSWER_SECONDS = 10.0
TICK_SECONDS = 0.1
POLL_SECONDS = 1.0
LEAVE_SECONDS = 20.0
"""How long a worker whose Dask worker ends may take to send its work and to give its task back."""
PAUSE_SECONDS = 0.5
"""Between two calls for what is said."""


@dataclass(frozen=True, slots=True)
class DaskStart:
    """What to start.

    Args:
        machine: its name in the settings, and `described` what they say of it.
        server: the server's address, as the cluster reaches it.
        server_file: says which server that is.
        token: the worker's.
        directory, agent, limits: see `RemoteStart`.
        told: where it writes, when it ends, a sentence with a code if something failed.
    """

    MODULE: ClassVar = "workbench.clusters.over_dask"

    machine: str
    described: Mapping[str, Any]
    server: str
    server_file: str
    token: str = field(repr=False)
    directory: str
    agent: str
    limits: Mapping[str, float]
    told: str

    def as_json(self) -> str:
        """The text for its standard input."""
        return json.dumps(asdict(self))

    @contextmanager
    def connected(self) -> Iterator[Client]:
        """A client of the cluster; Slurm is asked for one job.

        Raises:
            WorkbenchError: see `clusters.dask.connected`, `clusters.slurm.connected`.
        """
        if self.described["kind"] == "dask":
            with dask.connected(DaskMachine(**self.described).address, 1) as client:
                yield client
        else:
            with slurm.connected(self.machine, SlurmMachine(**{**self.described, "jobs": 1})) as client:
                yield client


@dataclass(frozen=True, slots=True)
class _Work:
    """A task: unpickling it executes it. The scheduler passes it on as bytes, and needs no Workbench."""

    start: RemoteStart

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        from workbench.clusters.remote_agent import work

        return work, (self.start,)


class _Silent(Exception):
    """No answer came."""


class _Agent:
    """An agent on a cluster, as seen from here.

    Args:
        ended: set when the agent is to end.
    """

    def __init__(self, client: Client, start: DaskStart, ended: Event) -> None:
        from workbench.clusters import remote_agent

        self._remote = remote_agent
        self._client = client
        self._start = start
        self._ended = ended
        self._task = f"workbench-agent-{uuid4().hex}"
        self._begun: Queue[str] = Queue()
        self._gone = Event()
        self._is_told = False
        self._tail = ""

    def follow(self) -> str | None:
        """Let a worker of the cluster work until its end; a sentence with a code if it failed.

        Raises:
            Unavailable: ``DASK_NO_WORKERS``, ``DASK_WORKER_UNFIT``, ``DASK_WORKER_LOST``, ``DASK_LOST``,
                ``DASK_CANCELLED``, ``NO_SERVER``.
        """
        self._wait_for_workers()
        if self._ended.is_set():
            return None
        self._require_fit_workers()
        start = self._start
        there = self._remote.RemoteStart(self._task, start.server, start.directory, start.agent, start.limits)
        self._client.subscribe_topic(self._task, lambda event: self._begun.put(event[1]))
        options = {"key": self._task, "pure": False, "retries": 0, "priority": PRIORITY}
        task = self._client.submit(pickle.loads, pickle.dumps(_Work(there)), **options)
        try:
            if (address := self._wait_for_begin(task)) is None:
                return None
            self._client.subscribe_topic(address, self._note)
            self._give_token(address)
            _say(f"the worker runs at {address}")
            try:
                return self._explain(self._repeat(address, task), task)
            except Unavailable:
                self._let_it_leave()
                raise
        finally:
            task.release()

    def _note(self, event: tuple[float, Any]) -> None:
        """Called with what the scheduler notes about the agent's Dask worker."""
        if event[1].get("action") == "remove-worker":
            self._gone.set()

    def _wait_for_workers(self) -> None:
        machine = self._start.described
        patience = WORKERLESS_SECONDS if machine["kind"] == "dask" else machine["patience_seconds"]
        deadline = time.monotonic() + patience
        _say(f"waiting for a worker of {self._start.machine}")
        while not self._ended.is_set() and not self._workers():
            if time.monotonic() > deadline:
                raise Unavailable(
                    "DASK_NO_WORKERS",
                    f"{self._start.machine} has had no workers for {patience:g} s. Start some, then restart the agent.",
                )
            self._ended.wait(POLL_SECONDS)

    def _require_fit_workers(self) -> None:
        try:
            dask.require_same_version(self._client, "the server")
        except WorkbenchError:
            raise
        except Exception as error:  # whatever the network does
            self._workers()
            raise Unavailable(
                "DASK_WORKER_UNFIT",
                f"A Dask worker of {self._start.machine} does not answer: {error!r}. End it, or wait until it answers; "
                "then restart the agent.",
            ) from None

    def _workers(self) -> Mapping[str, Any]:
        """The workers of the cluster, by their addresses.

        Raises:
            Unavailable: ``DASK_LOST``.
        """
        ask = self._client.scheduler.identity
        try:
            workers: Mapping[str, Any] = dask.answer(self._client, ask, n_workers=-1, seconds=ANSWER_SECONDS)["workers"]
        except Exception:  # whatever the network does
            raise Unavailable(
                "DASK_LOST",
                f"The connection to the Dask scheduler of {self._start.machine} was lost. Once it is back, restart the "
                "agent.",
            ) from None
        return workers

    def _wait_for_begin(self, task: Any) -> str | None:
        """The address of the Dask worker that has begun the task; None: the agent is to end before."""
        while not self._ended.is_set():
            try:
                return self._begun.get(timeout=TICK_SECONDS)
            except Empty:
                if task.done():
                    raise self._why_over(task) from None
        return None

    def _give_token(self, address: str) -> None:
        """Give the worker its token, once it is sure that it reaches this server, and no other, with it."""
        start = self._start
        here = ServerFile(Path(start.server_file)).load().info
        try:
            nonce, why = self._ask_worker(address, self._remote.server_at, start.server)
            if here is None or nonce != here.nonce:
                raise Unavailable(
                    "NO_SERVER",
                    f"The Dask worker {address} does not reach this server at {start.server}: "
                    f"{(why or 'another server answers').rstrip('.')}. Open the way there, and name its end in "
                    f"[machines.{start.machine}], as server; then restart the agent.",
                )
            self._ask_worker(address, self._remote.give, self._task, self._remote.Token(start.token))
        except _Silent:
            raise self._lost_worker(address) from None

    def _repeat(self, address: str, task: Any) -> Said:
        """Repeat what is said until the end; the last of it."""
        offset, answered = 0, time.monotonic()
        while True:
            try:
                said: Said | None = self._ask_worker(address, self._remote.read, self._task, offset)
            except _Silent:
                if address not in self._workers() or time.monotonic() - answered > LOST_SECONDS:
                    raise self._lost_worker(address) from None
                time.sleep(POLL_SECONDS)
                continue
            if said is None:
                raise self._why_over(task)
            offset, answered = offset + len(said.data), time.monotonic()
            self._write(said.data)
            if said.status is not None:
                return said
            self._ended.wait(PAUSE_SECONDS)

    def _write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        self._tail = (self._tail + data.decode("utf-8", "replace"))[-2 * LINE :]

    def _let_it_leave(self) -> None:
        """Wait until a worker that is not heard any more has sent its work: its token ends with this process."""
        _say(f"the worker has {LEAVE_SECONDS:g} s to send what it has")
        deadline = time.monotonic() + LEAVE_SECONDS
        while time.monotonic() < deadline and asyncio.run(self._holds_task()):
            self._ended.wait(POLL_SECONDS)

    async def _holds_task(self) -> bool:
        """Whether the worker has a task, as far as its server answers."""
        here = ServerFile(Path(self._start.server_file)).load().info
        if here is None or self._ended.is_set():
            return False
        with suppress(WorkbenchError):
            async with HttpClient(here.url, self._start.token) as client:
                agent = (await client.call("whoami"))["agent_id"]
                held = await client.call("list_tasks", status="in_progress", assigned_agent_id=agent, limit=1)
                return bool(held["tasks"])
        return False

    def _explain(self, said: Said, task: Any) -> str | None:
        """A sentence with a code about an end; None if nothing failed."""
        if self._ended.is_set():
            return None
        if said.is_left:
            raise self._why_over(task)
        if not said.status:
            return None
        last = self._tail.strip().rpartition("\n")[2]
        return remote_worker.failed(self._start.machine, said.status, last)

    def _why_over(self, task: Any) -> Unavailable:
        """Why the task of an agent is over, if nobody ended it from here."""
        from distributed import KilledWorker

        machine, error = self._start.machine, task.exception(timeout=ANSWER_SECONDS) if task.status == "error" else None
        if isinstance(error, KilledWorker):
            return self._lost_worker("that was to run it")
        if error is not None:
            why = " ".join(str(error).split())[:LINE].rstrip(".")
            return Unavailable("DASK_WORKER_UNFIT", f"A Dask worker of {machine} cannot run agents: {why}.")
        return Unavailable(
            "DASK_CANCELLED",
            f"The agent's task was cancelled on {machine}, or its Dask worker is being ended. Restart the agent.",
        )

    def _lost_worker(self, address: str) -> Unavailable:
        return Unavailable(
            "DASK_WORKER_LOST",
            f"The Dask worker {address} has ended, or answers no more, and the agent with it. Restart the agent.",
        )

    def _ask_worker(self, address: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in one worker; meanwhile, let the agent end that is to.

        Raises:
            _Silent. Unavailable: ``DASK_WORKER_LOST``. WorkbenchError: what the function raises.
        """
        call = self._call(address, function, *args)
        deadline = time.monotonic() + self._remote.READ_SECONDS + ANSWER_SECONDS
        try:
            while not wait([call], TICK_SECONDS).done:
                if self._ended.is_set() and not self._is_told:
                    self._is_told = True
                    self._call(address, self._remote.end, self._task)
                if self._gone.is_set():  # Dask tries for long to reach it
                    raise self._lost_worker(address)
                if time.monotonic() > deadline:
                    raise _Silent
            return call.result()
        except (WorkbenchError, _Silent):
            raise
        except Exception as error:  # whatever the network does
            raise _Silent from error
        finally:
            call.cancel()

    def _call(self, address: str, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """A call of a function in one worker that is under way."""

        async def call() -> Any:
            return (await self._client.run(function, *args, workers=[address]))[address]

        return asyncio.run_coroutine_threadsafe(call(), self._client.loop.asyncio_loop)


def main(start: DaskStart) -> int:
    """Let a worker of the cluster work, and wait for its end; the exit status."""
    ended = Event()
    for number in SIGNALS:
        signal.signal(number, lambda *_: ended.set())
    try:
        with start.connected() as client:
            sentence = _Agent(client, start, ended).follow()
    except WorkbenchError as error:
        sentence = f"{error.code}: {error.message}"
    except Exception as error:  # whatever the network does
        sentence = f"DASK_LOST: {start.machine} cannot be used: {error!r}. Once it can, restart the agent."
    if sentence is None or ended.is_set():
        return 0
    _say(sentence)
    Path(start.told).write_text(sentence, "utf-8")
    return 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(DaskStart(**json.loads(sys.stdin.read()))))
