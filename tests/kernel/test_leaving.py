"""A kernel that ends without `%workbench stop` leaves nothing behind; one that is restarted keeps its workers."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.kernel.conftest import Kernel, started

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

SPAWN = """
spawned = wb.call("spawn_agent", persona_id="implementer")
"""


def worker_and_port(kernel: Kernel, repository: Path) -> tuple[int, int]:
    """Start the servers and one worker; its process id, and the port."""
    kernel.serve(repository)
    kernel.run(SPAWN)
    pid, url = kernel.run("print(spawned['pid'], wb.server.url)").split()
    return int(pid), int(urlsplit(url).port or 0)


def runs(pid: int) -> bool:
    """Whether a process runs; what has ended may stay a zombie where nothing reaps orphans."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def assert_nothing_serves(repository: Path, port: int) -> None:
    with socket.socket() as caller:
        assert caller.connect_ex(("127.0.0.1", port)) != 0
    assert "pid" not in json.loads((repository / ".aiswarm" / "server.json").read_text("utf-8"))


def test_shutting_the_kernel_down_ends_workers_and_servers(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        pid, port = worker_and_port(kernel, repository)
        assert runs(pid)
        kernel.manager.shutdown_kernel()
        assert not runs(pid)
        assert_nothing_serves(repository, port)


def test_a_restarted_kernel_takes_back_the_workers_of_the_last_one(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        pid, port = worker_and_port(kernel, repository)
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=60)
        assert_nothing_serves(repository, port)
        kernel.run("%load_ext workbench")
        kernel.run(f'%workbench start --project "{repository}"')
        kernel.run("[process] = [agent['process'] for agent in wb.call('get_managed_agents')['agents']]")
        assert kernel.run("process['pid'], process['running']") == f"({pid}, True)"
        assert "These agents go on working: implementer." in kernel.run("%workbench stop")
        assert runs(pid)
        kernel.run(f'%workbench start --end-workers --project "{repository}"')
        assert not runs(pid)
        pid, _ = worker_and_port(kernel, repository)
        kernel.run("%workbench stop --end-workers")
        assert not runs(pid)
