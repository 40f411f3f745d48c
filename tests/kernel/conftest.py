"""A real kernel, driven over the Jupyter protocol as a front end does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from workbench.sweeps import sockets

DEADLINE_SECONDS = 100
"""For one cell."""


class Kernel:
    """A kernel to run cells in.

    Args:
        stacks: the file into which it writes what its threads do, when it gets SIGUSR1.
    """

    def __init__(self, manager: KernelManager, client: BlockingKernelClient, stacks: Path) -> None:
        self.manager = manager
        self.client = client
        self.stacks = stacks

    def run(self, code: str, deadline: float = DEADLINE_SECONDS) -> str:
        """Run a cell; its text output. A cell that fails fails the test."""
        text, error = self.attempt(code, deadline)
        assert error is None, error
        return text

    def attempt(self, code: str, deadline: float = DEADLINE_SECONDS) -> tuple[str, str | None]:
        """Run a cell; its text output, and its error as `name: value` if it failed."""
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data", "update_display_data"):
                said.append(content["data"]["text/plain"])

        reply = self.execute(code, hear, deadline)
        error = None if reply["status"] == "ok" else f"{reply['ename']}: {reply['evalue']}"
        return "".join(said), error

    def fail(self, code: str) -> dict[str, Any]:
        """Run a cell that fails; the message about its error."""
        errors: list[dict[str, Any]] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "error":
                errors.append(message["content"])

        self.execute(code, hear)
        [error] = errors
        return error

    def error(self, code: str) -> str:
        """Run a cell that fails with a message alone, without frames; its error as `name: value`."""
        error = self.fail(code)
        assert error["traceback"] == [error["evalue"]], code
        return f"{error['ename']}: {error['evalue']}"

    def fail_in_a_line(self, wrong: Mapping[str, str]) -> None:
        """Run cells that fail, each with a message alone, which begins like this."""
        for cell, beginning in wrong.items():
            assert self.error(cell).partition(": ")[2].startswith(beginning), cell

    def serve(self, project: Path) -> str:
        """Start the servers for a project; what the cell says."""
        return self.run(f'%workbench start --project "{project}" --port 0')

    def execute(
        self, code: str, hear: Callable[[dict[str, Any]], object], deadline: float = DEADLINE_SECONDS
    ) -> dict[str, Any]:
        """Run a cell; the content of the reply. If there is none, the test prints where the kernel's threads are.

        Args:
            hear: called with each message that the cell sends.
        """
        try:
            return dict(self.client.execute_interactive(code, output_hook=hear, timeout=deadline)["content"])
        except TimeoutError:
            self.manager.signal_kernel(signal.SIGUSR1)
            while self.manager.is_alive() and not self.stacks.stat().st_size:
                time.sleep(0.1)
            print(self.stacks.read_text("utf-8"))
            for program in psutil.Process(self.manager.provisioner.pid).children(recursive=True):
                print(program)
            raise

    def outputs(self, code: str, *kinds: str) -> list[dict[str, Any]]:
        """Run a cell; its messages of some kinds, in order."""
        messages: list[dict[str, Any]] = []
        reply = self.execute(code, messages.append)
        assert reply["status"] == "ok", reply
        return [message for message in messages if message["msg_type"] in kinds]

    def kill(self) -> None:
        """End it with SIGKILL. Unlike this, Jupyter's own shutdown interrupts it first."""
        self.manager.signal_kernel(signal.SIGKILL)
        while self.manager.is_alive():
            pass

    def complete(self, code: str) -> list[str]:
        """The completions that Tab offers."""
        return list(self.client.complete(code, reply=True, timeout=30)["content"]["matches"])

    def inspect(self, code: str) -> str:
        """The text that `?` shows in the pager."""
        [page] = self.client.execute(f"{code}?", reply=True, timeout=30)["content"]["payload"]
        return str(page["data"]["text/plain"])


@contextmanager
def started(home: Path, *, cwd: Path | None = None, env: Mapping[str, str] = os.environ) -> Iterator[Kernel]:
    """A kernel with the extension loaded, and with IPython's files in a directory of its own.

    Args:
        cwd: where it runs; by default in that directory.
    """
    with sockets.directory() as place:
        manager = KernelManager(kernel_name="python3")
        sockets.listen_in(place, manager)
        manager.start_kernel(cwd=str(cwd or home), env={**env, "IPYTHONDIR": str(home / ".ipython")})
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            kernel = Kernel(manager, client, place / "stacks")
            kernel.run(f"__import__('faulthandler').register({signal.SIGUSR1:d}, open({str(kernel.stacks)!r}, 'w'))")
            kernel.run("%load_ext workbench")
            yield kernel
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The kernel that a module's tests share."""
    with started(tmp_path_factory.mktemp("kernel")) as made:
        yield made


@pytest.fixture
def running(kernel: Kernel, repository: Path) -> Iterator[Kernel]:
    """The kernel, which serves a project."""
    kernel.serve(repository)
    yield kernel
    kernel.run("%workbench stop")


@pytest.fixture(scope="module")
def serving(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The kernel, which serves a project that a module's tests share."""
    kernel.serve(tmp_path_factory.mktemp("project"))
    yield kernel
    kernel.run("%workbench stop")
