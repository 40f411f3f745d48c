"""Sweeps that are interrupted and killed: nothing is lost, repeated or left running."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.chance import SOAK
from tests.sweeps.lab import write_notebook
from workbench.cli.client import ProjectClient
from workbench.process import is_running
from workbench.process.marks import marked, marks_of, new_mark
from workbench.rules.sweeps.grid import sweep_mark
from workbench.shells.meanwhile import connected
from workbench.state.settings import Settings
from workbench.sweeps.watch import end_marked

RUNS = 200 if SOAK else 7

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(3_600 if SOAK else 600),
    pytest.mark.usefixtures("database"),
]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(repository: Path) -> Iterator[Start]:
    """Starts the real command with options, in a session of its own; nothing of it is left after the test."""
    mark = new_mark()
    env = marked(os.environ, mark) | {"WORKBENCH_PROJECT": str(repository)}
    with ExitStack() as ends:
        ends.callback(end_marked, mark)

        def start(*options: str) -> subprocess.Popen[str]:
            argv = [sys.executable, "-m", "workbench.cli", "sweep", *options]
            pipe = subprocess.PIPE
            started = subprocess.Popen(
                argv, cwd=repository, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True
            )
            ends.enter_context(started)
            ends.callback(started.kill)
            return started

        yield start


def until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Return once something is so, while the process runs."""
    while not reached():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def executed(project: Path) -> list[str]:
    """The seeds of the executions that came to their end, one for each."""
    note = project / "executed.txt"
    return note.read_text().split() if note.exists() else []


def recorded(project: Path, sweep: str) -> list[dict[str, Any]]:
    with ProjectClient(project) as client:
        runs = client.call("list_runs", sweep=sweep, limit=500)["runs"]
    return sorted(runs, key=lambda run: int(run["parameters"]["seed"]))


def completed(project: Path, process: subprocess.Popen[str], sweep: str) -> list[dict[str, Any]]:
    """The runs of a sweep of the notebook with a seed, once it has ended and each has completed."""
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    runs = recorded(project, sweep)
    assert [(run["parameters"]["seed"], run["state"]) for run in runs] == [
        (seed, "completed") for seed in range(1, RUNS + 1)
    ]
    return runs


def left_running(project: Path, sweep: str) -> list[psutil.Process]:
    mark = sweep_mark(sweep, str(project))
    return [one for one in psutil.process_iter() if mark in marks_of(one) and is_running(one)]


def printed(project: Path, run: dict[str, Any]) -> list[str]:
    """The printed output of an executed notebook."""
    cells = json.loads((project / run["output"]).read_text("utf-8"))["cells"]
    return ["".join(output["text"]) for cell in cells for output in cell.get("outputs", []) if "text" in output]


def dask_workers(sweep: subprocess.Popen[str]) -> list[psutil.Process]:
    """The workers of a sweep's own Dask cluster."""
    children = psutil.Process(sweep.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


DASK = ("--dask", "local")
"""The options for a sweep on a Dask cluster of this machine."""


@pytest.mark.parametrize(("where", "kills"), [((), 3), (DASK, 1)], ids=["threads", "dask"])
def test_a_sweep_that_is_killed_has_each_run_once_with_equal_results(
    repository: Path, start: Start, where: tuple[str, ...], kills: int
) -> None:
    """With Dask one of its workers is killed, too."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    result = "import hashlib\nprint(hashlib.sha256(str(seed).encode()).hexdigest())"
    count = "with open('executed.txt', 'a') as file: file.write(f'{seed}\\n')"
    write_notebook(repository / "short.ipynb", "seed: int = 0", result, count)
    options = ("short.ipynb", "-p", f"seed=1..{RUNS}", "--workers", "2", *where, "--name", "killed")
    for resume in [()] + [("--resume",)] * (kills - 1):
        killed, done = start(*options, *resume), len(executed(repository))
        until(killed, lambda done=done: len(executed(repository)) > done + RUNS // 20)  # type: ignore[misc]
        killed.kill()
        killed.communicate()
    before = {run["key"]: run["tries"] for run in recorded(repository, "killed") if run["state"] == "completed"}
    resumed = start(*options, "--resume")
    if where:
        done = len(executed(repository))
        until(resumed, lambda: len(executed(repository)) > done)
        dask_workers(resumed)[0].kill()
    runs = completed(repository, resumed, "killed")
    assert {run["key"]: run["tries"] for run in runs if run["key"] in before} == before, "a finished run was repeated"
    assert left_running(repository, "killed") == []
    results = [hashlib.sha256(str(seed).encode()).hexdigest() for seed in range(1, RUNS + 1)]
    assert [printed(repository, run) for run in runs] == [[f"{result}\n"] for result in results]


@pytest.mark.parametrize(
    ("number", "where"), [(signal.SIGTERM, ()), (signal.SIGINT, ()), (signal.SIGINT, DASK)], ids=["TERM", "INT", "dask"]
)
def test_an_interrupted_sweep_lets_code_clean_up_and_leaves_nothing(
    repository: Path, start: Start, number: signal.Signals, where: tuple[str, ...]
) -> None:
    """Ctrl-C in a terminal reaches all processes of the sweep's group. Code that ignores it is ended all the same."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    cell = (
        "import subprocess, time\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "open(f'began-{seed}', 'w').close()\nwhile True:\n    try:\n        time.sleep(1000)\n"
        "    except KeyboardInterrupt:\n        open(f'ended-{seed}', 'w').close()\n        if seed == 1: raise"
    )
    write_notebook(repository / "slow.ipynb", "seed: int = 0", cell)
    sweep = start("slow.ipynb", "-p", "seed=1..4", "--workers", "2", *where)
    until(sweep, lambda: len(list(repository.glob("began-*"))) == 2)
    if number is signal.SIGINT:
        os.killpg(sweep.pid, number)
    else:
        sweep.send_signal(number)
    out, err = sweep.communicate()
    assert sweep.returncode == 130, out + err
    assert "Run it again with --resume" in out
    assert sorted(path.name for path in repository.glob("ended-*")) == ["ended-1", "ended-2"]
    assert [run["error_code"] for run in recorded(repository, "slow")] == ["RUN_CANCELLED", "RUN_CANCELLED"]
    assert left_running(repository, "slow") == []


def test_the_next_sweep_ends_processes_of_a_kernel_of_a_killed_one(repository: Path, start: Start) -> None:
    cell = (
        "import subprocess, time\nif seed == 1 and not __import__('os').path.exists('began'):\n"
        "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n    open('began', 'w').close()\n"
        "    time.sleep(1000)"
    )
    write_notebook(repository / "left.ipynb", "seed: int = 0", cell)
    sweep = start("left.ipynb", "-p", "seed=1")
    until(sweep, (repository / "began").exists)
    sweep.kill()
    sweep.communicate()
    assert left_running(Settings(project=repository).project, "left") != []
    again = start("left.ipynb", "-p", "seed=1", "--resume")
    out, err = again.communicate()
    assert again.returncode == 0, out + err
    assert left_running(repository, "left") == []
    assert [(run["state"], run["tries"]) for run in recorded(repository, "left")] == [("completed", 2)]


def test_a_dask_worker_that_hangs_is_ended_when_its_killed_sweep_is_resumed(repository: Path, start: Start) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    worker = killed_with_a_stopped_worker(repository, start)
    assert left_running(repository, "stops") != []
    again = start("stops.ipynb", "-p", "seed=1", "--name", "stops", "--resume")
    out, err = again.communicate()
    assert again.returncode == 0, out + err
    assert not is_running(worker)
    assert left_running(repository, "stops") == []
    assert [(run["state"], run["tries"]) for run in recorded(repository, "stops")] == [("completed", 2)]


def test_a_server_of_the_project_ends_processes_of_a_killed_sweep(repository: Path, start: Start) -> None:
    """Nobody resumes it, or begins another sweep."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    worker = killed_with_a_stopped_worker(repository, start)
    assert left_running(repository, "stops") != []
    with connected(Settings(project=repository, port=0)):
        while is_running(worker) or left_running(repository, "stops"):
            time.sleep(0.05)
    assert [(run["state"], run["error_code"]) for run in recorded(repository, "stops")] == [("lost", "RUN_LOST")]


def killed_with_a_stopped_worker(project: Path, start: Start) -> psutil.Process:
    """Kill a sweep whose only run has stopped the Dask worker that executes it, and has left a process."""
    cell = (
        "import os, signal, subprocess, time\nfrom pathlib import Path\nif not Path('stopped').exists():\n"
        "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    os.kill(os.getppid(), signal.SIGSTOP)\n    Path('pid').write_text(str(os.getppid()))\n"
        "    Path('pid').rename('stopped')\n    time.sleep(1000)"
    )
    write_notebook(project / "stops.ipynb", "seed: int = 0", cell)
    sweep = start("stops.ipynb", "-p", "seed=1", "--dask", "local")
    until(sweep, (project / "stopped").exists)
    worker = psutil.Process(int((project / "stopped").read_text()))
    sweep.kill()
    sweep.wait()  # the worker still has its standard output
    assert is_running(worker)
    return worker
