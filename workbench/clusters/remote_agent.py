"""The part of a spawned agent in a worker of a Dask cluster: `workbench worker`, as a process of its own there.

It is a task, which lasts until its client lets it go, and takes no thread from others. It starts nothing before it is
given the agent's token, and that is given once: Dask executes a task again whose worker has died, and an agent must not
begin twice. The process ends when its input does, so also if the Dask worker is killed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from distributed import Worker, get_worker, secede

from workbench.client import HttpClient
from workbench.clusters.dask import is_wanted
from workbench.errors import WorkbenchError
from workbench.process import ProcessRef, ProcessTree, marked, new_mark
from workbench.rules import remote_worker
from workbench.state.home import home

AGENTS = "workbench-agents"
"""The extension of a Dask worker that has its agents, by their tasks."""
READ_SECONDS = 20.0
"""How long a call waits for something to be said."""
TICK_SECONDS = 0.1
END_SECONDS = 60.0
"""How long the process may take to send its work, from the end of its input until it is killed."""
PIECE = 65_536
MOST_BYTES = 1_048_576
"""Of output that nobody has read yet; then the process waits."""


@dataclass(frozen=True, slots=True)
class RemoteStart:
    """What a task starts. Nothing in it is secret, because the scheduler keeps it.

    Args:
        task: the key of the task, and the topic of its news.
        server: the server's address, as the Dask worker reaches it.
        directory: of the agents' directories, below the home there.
        agent: the internal id of the agent.
        limits: options of `workbench worker`.
    """

    task: str
    server: str
    directory: str
    agent: str
    limits: Mapping[str, float]

    def argv(self) -> list[str]:
        """The command line of the process."""
        own = home() / self.directory / socket.gethostname() / self.agent  # machines of a cluster can share homes
        there = remote_worker.arguments(self.server, str(own), self.limits)
        return [sys.executable, "-P", "-m", "workbench.cli", *there]


@dataclass(frozen=True, slots=True)
class Token:
    """An agent's token. Dask logs the arguments of calls that fail."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Said:
    """What a process has said. `status`: that with which it has ended, after that.

    `is_left`: it was ended because its task was cancelled, or its Dask worker ends.
    """

    data: bytes
    status: int | None
    is_left: bool


class RemoteAgent:
    """The process of an agent.

    Args:
        is_wanted: whether somebody waits for the task.
    """

    def __init__(self, start: RemoteStart, is_wanted: Callable[[], bool]) -> None:
        self._start = start
        self._is_wanted = is_wanted
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._ends = self._is_left = False
        self._output = bytearray()
        self._offset = 0
        self._status: int | None = None

    def give(self, token: Token) -> None:
        """Let the process start."""
        self._token = token

    def end(self) -> None:
        """Let the process end, as by SIGTERM."""
        self._ends = True

    def read(self, offset: int) -> Said:
        """What was said from `offset` on; what was said before it is forgotten."""
        with self._lock:
            del self._output[: offset - self._offset]
            self._offset = offset
            return Said(bytes(self._output), self._status, self._is_left)

    def run(self) -> None:
        """Wait for the token, then for the end of the process, then until the task is let go."""
        while (token := self._token) is None:
            if self._is_over():
                return
            time.sleep(TICK_SECONDS)
        status = self._work(token)
        with self._lock:
            self._status = status
        while self._is_wanted():
            time.sleep(TICK_SECONDS)

    def _is_over(self) -> bool:
        self._is_left = self._is_left or not self._is_wanted()
        return self._ends or self._is_left

    def _work(self, token: Token) -> int:
        mark = new_mark()
        with subprocess.Popen(
            self._start.argv(),
            bufsize=0,
            cwd=home(),
            env=marked(os.environ, mark),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child:
            stdin, stdout = child.stdin, child.stdout
            assert stdin is not None
            assert stdout is not None
            tree = ProcessTree(ProcessRef.of_new(child.pid, mark))
            reader = threading.Thread(target=self._take, args=(stdout,), daemon=True)
            reader.start()
            with suppress(BrokenPipeError):  # it has ended
                stdin.write(f"{token.value}\n".encode())
            self._wait(child, stdin)
            tree.terminate(0.0)
            reader.join()
        return child.returncode

    def _wait(self, child: subprocess.Popen[bytes], stdin: IO[bytes]) -> None:
        """Wait for the end of the process, which has to come soon once it is to end."""
        deadline = float("inf")
        while child.poll() is None and time.monotonic() < deadline:
            if deadline == float("inf") and self._is_over():
                stdin.close()
                deadline = time.monotonic() + END_SECONDS
            time.sleep(TICK_SECONDS)

    def _take(self, stdout: IO[bytes]) -> None:
        while piece := os.read(stdout.fileno(), PIECE):
            while len(self._output) > MOST_BYTES and not self._is_left:
                time.sleep(TICK_SECONDS)
            if not self._is_left:  # once it is left, nobody reads its output
                with self._lock:
                    self._output += piece


def work(start: RemoteStart) -> None:
    """A task: see the module."""
    worker: Worker = get_worker()
    secede()
    agent = RemoteAgent(start, lambda: is_wanted(worker, [start.task]))
    agents = worker.extensions.setdefault(AGENTS, {})
    agents[start.task] = agent
    try:
        worker.log_event(start.task, worker.address)
        agent.run()
    finally:
        del agents[start.task]


async def server_at(url: str) -> tuple[str | None, str]:
    """Called in one worker: the nonce of the server that it reaches at an address, or why it reaches none."""
    try:
        async with HttpClient(url) as client:
            if nonce := await client.nonce():
                return nonce, ""
            await client.call("whoami")
    except WorkbenchError as error:
        return None, error.details.get("reason") or f"{error.code}: {error.message}"
    return None, "another program answers"


def give(task: str, token: Token, dask_worker: Worker) -> None:
    """Called in one worker; see `RemoteAgent.give`."""
    _agents(dask_worker)[task].give(token)


def end(task: str, dask_worker: Worker) -> None:
    """Called in one worker; see `RemoteAgent.end`."""
    _agents(dask_worker)[task].end()


async def read(task: str, offset: int, dask_worker: Worker) -> Said | None:
    """Called in one worker: what the agent's process has said from `offset` on; None: the task is over."""
    deadline = time.monotonic() + READ_SECONDS
    while (agent := _agents(dask_worker).get(task)) is not None:
        said = agent.read(offset)
        if said.data or said.status is not None or time.monotonic() > deadline:
            return said
        await asyncio.sleep(TICK_SECONDS)
    return None


def _agents(worker: Worker) -> Mapping[str, RemoteAgent]:
    agents: Mapping[str, RemoteAgent] = worker.extensions.get(AGENTS, {})
    return agents
