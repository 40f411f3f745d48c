"""A kernel that ends without `%workbench stop` leaves nothing behind."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.kernel.conftest import Kernel, started

pytestmark = pytest.mark.long

SPAWN = """
wb.call("create_worktree", name="work")
spawned = wb.call("spawn_agent", persona_id="implementer", assigned_worktree="work")
"""
WHERE = "print(spawned['pid'], wb.server.url)"


def worker_and_port(kernel: Kernel, repository: Path) -> tuple[int, int]:
    """Start the servers and one worker; its process id, and the port."""
    kernel.run(f'%workbench start --project "{repository}" --port 0')
    kernel.run(SPAWN)
    pid, url = kernel.run(WHERE).split()
    return int(pid), int(urlsplit(url).port or 0)


def assert_nothing_is_left(repository: Path, pid: int, port: int) -> None:
    assert not psutil.pid_exists(pid)
    with socket.socket() as caller:
        assert caller.connect_ex(("127.0.0.1", port)) != 0
    assert "pid" not in json.loads((repository / ".aiswarm" / "server.json").read_text("utf-8"))


@pytest.mark.timeout(120)
def test_shutting_the_kernel_down_ends_workers_and_servers(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        pid, port = worker_and_port(kernel, repository)
        assert psutil.pid_exists(pid)
        kernel.manager.shutdown_kernel()
        assert_nothing_is_left(repository, pid, port)


@pytest.mark.timeout(120)
def test_a_restarted_kernel_starts_again_where_the_last_one_stopped(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        pid, port = worker_and_port(kernel, repository)
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=60)
        assert_nothing_is_left(repository, pid, port)
        kernel.run("%load_ext workbench")
        kernel.run(f'%workbench start --project "{repository}"')
        agents = json.loads(kernel.run("import json; print(json.dumps(wb.call('list_agents')))"))["agents"]
        assert [agent["registration_status"] for agent in agents] == ["inactive"]
        kernel.run("%workbench stop")
