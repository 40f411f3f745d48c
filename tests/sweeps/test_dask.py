"""Sweeps on a Dask cluster whose parts fail: each run is recorded once, and the sweep ends with one coded line."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests import given
from tests.git.parts import ended
from tests.sweeps.conftest import opened
from tests.sweeps.lab import SweepLab
from workbench.clusters import dask as cluster
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.sweeps.specification import SweepLimits, check_dask

if TYPE_CHECKING:
    from distributed import LocalCluster

slow = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def lab(scheduler: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SweepLab]:
    with opened(tmp_path_factory.mktemp("dask"), scheduler) as lab:
        yield lab


DIES = """
import os, signal, time
def die(pid):
    os.kill(pid, signal.SIGKILL)
    time.sleep(1000)
first = os.environ["WORKBENCH_RUN"].endswith(":1")
"""


class TestFaults:
    """Faults of workers and the scheduler."""

    pytestmark = slow

    def test_a_run_whose_worker_dies_is_executed_again_by_another_and_recorded_once(self, lab: SweepLab) -> None:
        """The first try of one run kills its worker; those that are done by then are not repeated."""
        dies = "print('result', seed ** 2)\nif seed == 2 and first: die(os.getppid())"
        notebook = lab.notebook("killed.ipynb", "seed = 0", DIES, dies)
        shown = lab.sweep(notebook, parameters={"seed": [1, 2, 3, 4]})
        runs = lab.runs("killed")
        for seed, run in enumerate(runs, 1):
            assert (run["parameters"]["seed"], run["state"]) == (seed, "completed")
            assert lab.printed(run) == f"result {seed**2}\n"
        assert runs[1]["tries"] == 2
        assert shown.data["counts"]["completed"] == 4

    def test_a_run_that_kills_each_worker_fails_with_a_code_and_the_others_complete(self, lab: SweepLab) -> None:
        notebook = lab.notebook("deadly.ipynb", "seed = 0", DIES, "if seed == 1: die(os.getppid())")
        lab.sweep(notebook, {"workers": 1}, parameters={"seed": [1, 2]})
        found = [(run["state"], run["error_code"]) for run in lab.runs("deadly")]
        assert found == [("failed", "DASK_WORKER_LOST"), ("completed", None)]

    def test_processes_left_by_a_run_of_a_killed_worker_are_ended(self, lab: SweepLab) -> None:
        leaves = (
            "import subprocess\n"
            "if first:\n"
            "    left = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "    open('left.txt', 'w').write(str(left.pid))\n"
            "    die(os.getppid())"
        )
        lab.sweep(lab.notebook("leaves.ipynb", "seed = 0", DIES, leaves), parameters={"seed": [1]})
        assert ended(int((lab.place / "left.txt").read_text()))

    def test_a_scheduler_that_ends_ends_the_sweep_which_can_be_resumed(self, lab: SweepLab) -> None:
        ends = (
            "if not os.path.exists('ended'):\n"
            "    open('ended', 'w').close()\n"
            "    die(int(open('scheduler.txt').read()))"
        )
        notebook, seeds = lab.notebook("gone.ipynb", "seed = 0", DIES, ends), {"seed": [1, 2]}
        with _processes(lab.place) as address, pytest.raises(Unavailable, match=r"^DASK_LOST: .*--resume"):
            lab.sweep(notebook, {"dask": address, "workers": 1}, parameters=seeds)
        lab.sweep(notebook, {"workers": 1}, parameters=seeds, resume=True)
        assert [(run["state"], run["error"]) for run in lab.runs("gone")] == [("completed", None)] * 2

    def test_a_worker_that_lacks_the_kernel_is_refused_before_a_run_starts(self, lab: SweepLab) -> None:
        from workbench.shells.meanwhile import connected as serve
        from workbench.sweeps.dask.executor import on_cluster

        job = replace(_job(lab), text='{"metadata": {}}')
        unfit = pytest.raises(WorkbenchError, match=r"^DASK_WORKER_UNFIT: .*The Dask worker tcp://")
        with (
            cluster.connected(str(lab.dask), 1) as client,
            unfit,
            on_cluster(client, lab.call, job, is_own=False, serve=serve),
        ):
            pass


def test_a_scheduler_that_is_not_there_is_one_coded_line_and_nothing_is_recorded(
    here: SweepLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    notebook = here.notebook("nobody.ipynb", "seed = 0", "1")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
        advice = "Start one there, or correct the address."
        for is_silent in (False, True):  # nobody listens; something takes connections and says nothing
            if is_silent:
                bound.listen()
            with pytest.raises(Unavailable, match=rf"(?s)^DASK_UNREACHABLE: .*{address}.*{re.escape(advice)}\Z"):
                here.sweep(notebook, {"dask": address}, parameters={"seed": [1]})
        for scheme in ("tls", "wss"):
            with pytest.raises(Unavailable, match=r"^DASK_UNREACHABLE: .* names no certificates"):
                cluster.identity(address.replace("tcp", scheme), 0.5)
    assert here.call("list_sweeps", search="nobody")["sweeps"] == []


@pytest.mark.long
@pytest.mark.timeout(120)
def test_workers_of_a_sweep_cannot_be_interrupted_while_they_start() -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with cluster.connected("local", 2) as client:
        masks = client.run(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert [signal.SIGINT in mask for mask in masks.values()] == [True, True]


@pytest.mark.long
@pytest.mark.parametrize("place", ["status", "info/main/workers.html", "json/identity.json", "metrics"])
def test_a_cluster_of_this_machine_tells_other_users_nothing(own_cluster: LocalCluster, place: str) -> None:
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"http://127.0.0.1:{own_cluster.scheduler.http_server.port}/{place}")


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[LocalCluster]:
    """A cluster as `--dask local` starts one, with one worker."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with cluster._own_cluster(1) as own:
        yield own


def test_without_the_library_the_error_says_what_to_install(here: SweepLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    notebook = here.notebook("bare.ipynb", "seed = 0", "1")
    with pytest.raises(Unavailable, match=r"^DASK_NOT_INSTALLED: .*workbench-agents\[dask\]"):
        here.sweep(notebook, {"dask": "local"}, parameters={"seed": [1]})


def test_only_an_address_of_a_scheduler_is_accepted() -> None:
    for address in ("local", "tcp://a:8786", "tls://10.0.0.1:1", "head.example:8786"):
        assert check_dask(address) == address
    for address in (
        "",
        "Local",
        "tcp://",
        "a",
        "tcp://a",
        "a b:1",
        "tcp://a:8786/x",
        "a:port",
        "http://a:8786",
        "tpc://a:8786",
    ):
        given.refused("BAD_SWEEP", check_dask, address)


@contextmanager
def _processes(place: Path) -> Iterator[str]:
    """A scheduler and a worker as processes of their own; `scheduler.txt` has the scheduler's pid."""
    file = place / "scheduler.json"
    with ExitStack() as ends:

        def start(program: str, *options: str) -> subprocess.Popen[bytes]:
            argv = [sys.executable, "-c", f"from distributed.cli.{program} import main; main()", *options]
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ends.enter_context(process)
            ends.callback(process.terminate)
            return process

        options = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0", "--scheduler-file", str(file))
        scheduler = start("dask_scheduler", *options)
        (place / "scheduler.txt").write_text(str(scheduler.pid))
        address = _address(file, scheduler)
        start("dask_worker", address, "--no-dashboard", "--nthreads", "1")
        yield address


def _address(file: Path, scheduler: subprocess.Popen[Any]) -> str:
    """The address that a scheduler writes into a file."""
    while scheduler.poll() is None:
        with suppress(OSError, ValueError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.02)
    raise AssertionError("the scheduler has ended")


def _job(lab: SweepLab) -> Any:
    from workbench.sweeps.job import SweepJob

    notebook = lab.notebook("unfit.ipynb", "seed = 0", "1")
    (lab.place / ".aiswarm" / "runs" / "unfit").mkdir(parents=True)
    text = notebook.read_text()
    where = ("unfit", lab.place, notebook.name, text, "0" * 64, lab.place)
    return SweepJob(1, *where, SweepLimits(), 1_000, 1_000, None, None)
