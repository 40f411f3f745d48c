"""Servers in a process of their own: they outlive whoever starts them, are found again, and end when they are told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import Command, Served
from tests.git.parts import ended
from tests.kernel.conftest import started
from workbench.model import ServerInfo
from workbench.shells import detached
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(240), pytest.mark.usefixtures("database")]

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(repository: Path) -> Iterator[Cli]:
    """The real command in a project; what it left serving is ended."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-P", "-m", "workbench.cli", *arguments]
        return subprocess.run(argv, cwd=repository, env=_environment(repository), capture_output=True, text=True)

    yield run
    info = serving(repository)
    if info is not None and detached.is_detached(info):
        psutil.Process(info.pid).kill()


def _environment(project: Path) -> dict[str, str]:
    return os.environ | {"WORKBENCH_PROJECT": str(project)}


def serving(project: Path) -> ServerInfo | None:
    return ServerFile(Settings(project=project).server_file).load().info


def test_a_detached_server_outlives_its_command_and_is_ended_by_stop(repository: Path, cli: Cli) -> None:
    (repository / "psutil.py").write_text("raise SystemExit('what is in the project is not imported')")
    first = cli("start", "--detach", "--port", "0")
    info = serving(repository)
    assert info is not None, first.stderr
    assert f"Process {info.pid} serves" in first.stdout
    assert "`workbench stop` ends it" in first.stdout
    assert f"{info.url} (detached; `workbench stop` ends it)" in cli("status").stdout
    assert f"Process {info.pid} serves" in cli("start").stdout
    assert os.getsid(info.pid) != os.getsid(0)
    assert f"process {info.pid}" in cli("stop").stdout
    assert ended(info.pid)
    assert serving(repository) is None
    assert "No server was running" in cli("stop").stdout


def test_a_server_that_cannot_start_gives_the_reason(repository: Path, cli: Cli) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        failed = cli("start", "--port", str(taken.getsockname()[1]))
    assert failed.returncode == 1
    assert failed.stderr.startswith("SERVER_NOT_STARTED: ")
    assert "PORT_TAKEN" in failed.stderr
    assert serving(repository) is None


@pytest.mark.anyio
async def test_another_server_is_not_ended(served: Served, command: Command) -> None:
    refused = await command("stop")
    assert refused.err.startswith("NOT_DETACHED: ")
    assert f"`kill {os.getpid()}`" in refused.err


def test_a_kernels_restart_drops_nobody_and_its_stop_ends_the_server(
    repository: Path, tmp_path: Path, cli: Cli
) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        kernel.run("%workbench start")
        kernel.run("wb.call('create_task', title='kept', persona_id='tester')")
        said = kernel.run("%workbench start --detach --port 0")
        info = serving(repository)
        assert info is not None
        assert info.pid != kernel.manager.provisioner.pid  # type: ignore[union-attr]
        assert f"Process {info.pid} serves" in said
        kernel.kill()
    assert serving(repository) == info
    with started(tmp_path, cwd=repository) as kernel:
        assert f"Attached to process {info.pid}" in kernel.run("%workbench start")
        assert "kept" in kernel.run("print([task['title'] for task in wb.call('list_tasks')['tasks']])")
        assert "Workbench is stopped." in kernel.run("%workbench stop")
    assert ended(info.pid)


def test_a_stop_leaves_the_server_to_others_that_use_it(repository: Path, tmp_path: Path, cli: Cli) -> None:
    cli("start", "--port", "0")
    info = serving(repository)
    assert info is not None
    with started(tmp_path / "a", cwd=repository) as one, started(tmp_path / "b", cwd=repository) as other:
        one.run("%workbench start")
        other.run("%workbench start")
        assert "its server goes on" in one.run("%workbench stop")
        assert not ended(info.pid)
        assert "Workbench is stopped." in other.run("%workbench stop --end-workers")
    assert ended(info.pid)
