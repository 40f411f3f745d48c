"""A real kernel, driven over the Jupyter protocol as a front end does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from workbench.sweeps import sockets


class Kernel:
    """A kernel to run cells in."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str) -> str:
        """Run a cell; its text output. A cell that fails fails the test."""
        text, error = self.attempt(code)
        assert error is None, error
        return text

    def attempt(self, code: str) -> tuple[str, str | None]:
        """Run a cell; its text output, and its error as `name: value` if it failed."""
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data", "update_display_data"):
                said.append(content["data"]["text/plain"])

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=100)["content"]
        error = None if reply["status"] == "ok" else f"{reply['ename']}: {reply['evalue']}"
        return "".join(said), error

    def fail(self, code: str) -> dict[str, Any]:
        """Run a cell that fails; the message about its error."""
        errors: list[dict[str, Any]] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "error":
                errors.append(message["content"])

        self.client.execute_interactive(code, output_hook=hear, timeout=100)
        [error] = errors
        return error

    def kill(self) -> None:
        """End it with SIGKILL. Unlike this, Jupyter's own shutdown interrupts it first."""
        self.manager.signal_kernel(signal.SIGKILL)
        while self.manager.is_alive():
            pass

    def complete(self, code: str) -> list[str]:
        """What Tab offers."""
        return list(self.client.complete(code, reply=True, timeout=30)["content"]["matches"])

    def inspect(self, code: str) -> str:
        """What `?` shows in the pager."""
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
            kernel = Kernel(manager, client)
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
