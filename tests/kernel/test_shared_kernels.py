"""Several kernels on one project: each one starts, uses and stops Workbench, and they end in any order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.kernel.conftest import Kernel, started
from tests.sweeps.lab import write_notebook
from workbench.state import shares
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = pytest.mark.long

CELLS = (
    "name, end, meeting, runs, in_turn = '', '', '', 1, False",
    "%load_ext workbench",
    "%workbench start",
    """
import json, os, pathlib, psutil, time
served_by = wb.server.pid
pathlib.Path(meeting, name).touch()
while len(os.listdir(meeting)) < runs:
    time.sleep(0.05)
while in_turn and served_by != os.getpid() and psutil.pid_exists(served_by):
    time.sleep(0.05)
""",
    """
plan = {"plan": name, "tasks": [{
    "name": "only", "title": f"Write {name}", "persona": "implementer", "worktree": name, "run": "echo made > made.txt",
}]}
wb.call("create_worktree", name=name)
made = wb.call("create_plan", text=json.dumps(plan))
spawned = wb.call("spawn_agent", persona_id="implementer", assigned_worktree=name)
""",
    """
while True:
    task = wb.call("wait_for_task", task_id=made["tasks"]["only"])
    if task["status"] in ("completed", "failed"):
        break
assert task["status"] == "completed", task
""",
    "assert wb.sql(f\"SELECT status FROM tasks WHERE plan = '{name}'\")['status'].tolist() == ['completed']",
    "if end: get_ipython().run_line_magic('workbench', end)",
)
"""A notebook that has a worker do one task. It begins when all `runs` have started Workbench; with `in_turn`, an
attached one begins when the kernel that served has ended. Its last cell runs the command `end`; without one its kernel
just ends."""
ENDS = ("stop --end-workers", "stop", "")


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return write_notebook(tmp_path / "work.ipynb", *CELLS)


def papermill(notebook: Path, repository: Path, name: str, **parameters: str | int) -> subprocess.CompletedProcess[str]:
    given = [word for key, value in parameters.items() for word in ("-p", key, str(value))]
    command = [
        *(sys.executable, "-m", "papermill", str(notebook), str(notebook.with_name(f"{name}.ipynb"))),
        *("--cwd", str(repository), "-p", "name", name, *given),
    ]
    env = os.environ | {"IPYTHONDIR": str(notebook.parent / name), "WORKBENCH_TERMINATE_GRACE_SECONDS": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True)


def run_at_once(notebook: Path, repository: Path, ends: tuple[str, ...], called: str, *, in_turn: bool) -> list[str]:
    """Execute the notebook several times at once; the errors of those that failed."""
    meeting = notebook.parent / called
    meeting.mkdir()
    parameters: dict[str, str | int] = {"meeting": str(meeting), "runs": len(ends), "in_turn": in_turn}
    with ThreadPoolExecutor(len(ends)) as pool:
        runs = [
            pool.submit(papermill, notebook, repository, f"{called}{number}", **parameters, end=end)
            for number, end in enumerate(ends)
        ]
    return [run.result().stderr for run in runs if run.result().returncode != 0]


def assert_nothing_is_left(repository: Path) -> None:
    settings = Settings(project=repository)
    assert shares.holders(settings.shares) == []
    assert ServerFile(settings.server_file).load().info is None


@pytest.mark.timeout(600)
def test_papermill_runs_at_once_all_succeed_and_do_so_again(notebook: Path, repository: Path) -> None:
    for called, in_turn in (("a", True), ("b", False)):
        assert run_at_once(notebook, repository, ENDS, called, in_turn=in_turn) == []
        assert_nothing_is_left(repository)


@pytest.fixture
def kernels(repository: Path, tmp_path: Path) -> Iterator[tuple[Kernel, Kernel, Kernel]]:
    """A kernel that serves, and two that are attached."""
    with started(tmp_path) as first, started(tmp_path) as second, started(tmp_path) as third:
        first.serve(repository)
        for kernel in (second, third):
            assert "Attached to process" in kernel.run(f'%workbench start --project "{repository}"')
        yield first, second, third


def pid(kernel: Kernel) -> int:
    return int(kernel.run("import os; os.getpid()"))


@pytest.mark.timeout(240)
def test_an_attached_kernel_finds_the_server_at_another_port(
    kernels: tuple[Kernel, Kernel, Kernel], repository: Path
) -> None:
    first, second, third = kernels
    for attached in (second, third):
        attached.run("import time; url = wb.server.url")
    waiting = [psutil.Process(pid(kernel)) for kernel in (second, third)]
    for process in waiting:
        process.suspend()
    try:
        said = first.run("%workbench stop")
        assert f"Processes {min(p.pid for p in waiting)} and {max(p.pid for p in waiting)} use the project too" in said
        first.serve(repository)
    finally:
        for process in waiting:
            process.resume()
    assert second.run("wb.call('ping')['ok']") == "True"
    assert second.run("wb.server.url != url, wb.host.attached") == "(True, True)"
    first.kill()
    assert third.run("wb.call('ping')['ok']") == second.run("wb.call('ping')['ok']") == "True"


@pytest.mark.timeout(120)
def test_reloading_the_extension_keeps_the_servers_running(running: Kernel) -> None:
    before = running.run("wb.server")
    running.run("%reload_ext workbench")
    assert running.run("wb.server") == before
    assert running.run("wb.call('ping')['ok']") == "True"
    assert "serves" in running.run("%workbench start")
