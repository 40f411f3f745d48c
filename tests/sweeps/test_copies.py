"""Sweeps on a Dask cluster whose workers do not see the project: its files are sent, and what came of the runs returns.

Each worker is a process in namespaces of its own, in which the project's directory is empty.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import git
from tests.hosts import are_possible
from tests.sweeps.conftest import opened
from tests.sweeps.lab import SweepLab, left_running, write_notebook
from workbench.cli.sweeps.request import SweepRequest
from workbench.errors import Unavailable
from workbench.rules.sweeps.specification import SweepLimits
from workbench.sweeps.job import SweepJob

Client = pytest.importorskip("distributed", reason="the extra dask is not installed").Client
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not are_possible(), reason="needs root, and namespaces"),
]

HIDDEN = f'{shutil.which("mount")} -t tmpfs -o mode=000 none "$1" && shift && exec "$@"'
VERSION = metadata.version("workbench-agents")
PROGRAM = "from distributed.cli.{} import main; main()"


class Cluster:
    """A scheduler that cannot import Workbench, and workers that do not see a directory."""

    def __init__(self, place: Path, hidden: Path, ends: ExitStack) -> None:
        self._place = place
        self._hidden = hidden
        self._ends = ends
        self.scheduler = self._start(
            [],
            "import sys; sys.modules['workbench'] = None; " + PROGRAM.format("dask_scheduler"),
            *("--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"),
            *("--scheduler-file", str(place / "scheduler.json")),
        )
        self.address = self._address()

    @contextmanager
    def worker(self, **environment: str) -> Iterator[None]:
        """A worker, which executes one run at a time. Once it ends, the scheduler has forgotten it."""
        home = self._place / f"worker-{len(list(self._place.glob('worker-*')))}"
        home.mkdir()
        hiding = [str(shutil.which("unshare")), "--mount", "/bin/sh", "-c", HIDDEN, "sh", str(self._hidden)]
        options = ("--no-dashboard", "--no-nanny", "--nthreads", "1", "--local-directory", str(home))
        there = os.environ | {"HOME": str(home), "PATH": str(Path(sys.executable).parent)} | environment
        number = self._count()
        process = self._start(hiding, PROGRAM.format("dask_worker"), self.address, *options, cwd=home, env=there)
        while self._count() == number and process.poll() is None:
            time.sleep(0.05)
        yield
        process.terminate()
        process.wait()

    def _count(self) -> int:
        with Client(self.address) as client:
            return len(client.scheduler_info(n_workers=-1)["workers"])

    def _start(self, prefix: list[str], code: str, *options: str, **more: Any) -> subprocess.Popen[bytes]:
        log = self._ends.enter_context((self._place / "log").open("ab"))
        process = subprocess.Popen([*prefix, sys.executable, "-c", code, *options], stdout=log, stderr=log, **more)
        self._ends.enter_context(process)
        self._ends.callback(process.kill)
        return process

    def _address(self) -> str:
        file = self._place / "scheduler.json"
        while self.scheduler.poll() is None:
            try:
                return str(json.loads(file.read_text())["address"])
            except (OSError, ValueError):
                continue
        raise AssertionError((self._place / "log").read_text())


@contextmanager
def cluster(place: Path, hidden: Path) -> Iterator[Cluster]:
    with ExitStack() as ends:
        yield Cluster(place, hidden, ends)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that workers do not see."""
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="module")
def dask(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), project) as dask:
        yield dask


@pytest.fixture(scope="module")
def opened_lab(project: Path, dask: Cluster) -> Iterator[SweepLab]:
    """A project with a commit."""
    (project / "squares.py").write_text("def square(seed):\n    return seed**2\n")
    (project / ".gitignore").write_text("secret.env\n.aiswarm/\n")
    (project / "secret.env").write_text("TOKEN=1\n")
    with opened(project, dask.address) as lab:
        git("add", "-A", cwd=project)
        git("commit", "-q", "-m", "first", cwd=project)
        yield lab


@pytest.fixture
def lab(opened_lab: SweepLab, dask: Cluster) -> Iterator[SweepLab]:
    """The project, and a worker for one test, whose runs may end it."""
    with dask.worker():
        yield opened_lab


MEASURES = """
import os, pathlib, signal, time
from squares import square
from workbench import Recorder
recorder = Recorder()
for step in range(0, 50, 10):
    recorder.record({{"loss": seed / 2, "word": f"w{{step}}"}}, step=step)
recorder.record(square=[square(seed)] * 3)
pathlib.Path("plot.txt").write_text(f"plot of {{seed}}\\n")
recorder.artifact("plot.txt")
recorder.current.tag("far")
print(square(seed), pathlib.Path("secret.env").exists())
died = pathlib.Path({0!r})
if seed == 2 and not died.exists():
    died.touch()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
"""


def test_runs_in_copies_are_recorded_once_with_all_that_they_left_also_if_a_worker_dies(
    lab: SweepLab, dask: Cluster, tmp_path: Path
) -> None:
    """What they measured, printed and left is as in the project; another worker repeats the run of the dead one."""
    notebook = lab.notebook("far.ipynb", "seed = 0", MEASURES.format(str(tmp_path / "died")))
    with dask.worker():
        lab.sweep(notebook, parameters={"seed": [1, 2, 3]})
    for seed, run in enumerate(lab.runs("far"), 1):
        assert (run["state"], run["tries"], run["error"]) == ("completed", 1 + (seed == 2), None)
        assert lab.printed(run) == f"{seed**2} False\n"
        assert run["tags"] == ["far"]
        series = lab.call("get_run_series", run_id=run["id"])["series"]
        steps = range(0, 50, 10)
        assert {each["name"]: [list(point) for point in each["points"]] for each in series} == {
            "loss": [[step, seed / 2] for step in steps],
            "word": [[step, f"w{step}"] for step in steps],
            "square": [[step, seed**2] for step in range(3)],
        }
        shown = lab.call("get_run_artifact", run_id=run["id"], name="plot.txt")
        assert (shown["text"], shown["changed"]) == (f"plot of {seed}\n", False)
        assert lab.call("get_run", run_id=run["id"])["environment"]["packages"]["ipykernel"]
    place = lab.place / ".aiswarm" / "runs" / "far"
    assert len(list(place.iterdir())) == 6, "three notebooks, and a directory of files for each"
    assert left_running(lab.place, "far") == []


@contextmanager
def limit(lab: SweepLab, size: int) -> Iterator[None]:
    """Let files of so many bytes be sent meanwhile."""
    settings, lab.settings = lab.settings, lab.settings.model_copy(update={"max_sweep_files_bytes": size})
    try:
        yield
    finally:
        lab.settings = settings


def test_what_a_run_leaves_has_a_limit(lab: SweepLab) -> None:
    large = "import workbench\nopen('large', 'wb').write(bytes(300_000))\nworkbench.Recorder().artifact('large')"
    with limit(lab, 200_000):
        lab.sweep(lab.notebook("large.ipynb", "seed = 0", large))
    [run] = lab.runs("large")
    assert (run["state"], run["error_code"], run["artifacts"]) == ("failed", "RUN_FILES_TOO_LARGE", 0)


def test_a_sweep_that_cannot_be_run_in_copies_says_why_and_starts_no_run(
    lab: SweepLab, tmp_path: Path, dask: Cluster
) -> None:
    notebook = lab.notebook("not.ipynb", "seed = 0", "1")
    (lab.place / "data.bin").write_bytes(bytes(2_000))
    with limit(lab, 1_024):
        given.refused("SWEEP_FILES_TOO_LARGE", lab.sweep, notebook, {"name": "not-files"})
    (lab.place / "data.bin").unlink()
    with pytest.raises(Unavailable, match=r"^DASK_WORKER_UNFIT: .*does not see.*Leave out --share"):
        lab.sweep(notebook, {"name": "not-share", "share": True})
    elsewhere = write_notebook(tmp_path / "elsewhere.ipynb", "seed = 0", "1")
    with pytest.raises(Unavailable, match=r"^DASK_WORKER_UNFIT: .*Move .*elsewhere.ipynb into the project"):
        lab.run(SweepRequest(str(elsewhere), tmp_path, others={"name": "not-here", "dask": lab.dask}))
    old = tmp_path / "workbench_agents-0.0.1.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: workbench-agents\nVersion: 0.0.1\n")
    both = rf"^DASK_WORKER_UNFIT: .* has Workbench 0\.0\.1, and the sweep {re.escape(VERSION)}\. Run there: pip install"
    with dask.worker(PYTHONPATH=str(tmp_path)), pytest.raises(Unavailable, match=both):
        lab.sweep(notebook, {"name": "not-version"})
    assert [run for name in ("files", "share", "here", "version") for run in lab.runs(f"not-{name}")] == []


def test_a_scheduler_that_ends_ends_the_sweep_whose_runs_in_copies_can_be_resumed(
    lab: SweepLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.sweeps.dask.executor.LOST_SECONDS", 1.0)
    began = tmp_path / "began"
    waits = (
        "import pathlib, time\n"
        f"began = pathlib.Path({str(began)!r})\nis_first = not began.exists()\nbegan.touch()\n"
        "time.sleep(1000 * is_first)\nprint(seed)"
    )
    notebook, seeds = lab.notebook("gone.ipynb", "seed = 0", waits), {"seed": [1, 2]}
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", lab.place) as gone, ThreadPoolExecutor(1) as thread, ExitStack() as ends:
        sweep = thread.submit(lab.sweep, notebook, {"dask": gone.address, "workers": 1}, parameters=seeds)
        while not (lab.place / ".aiswarm" / "runs" / "gone" / ".lock").exists():
            time.sleep(0.05)
        ends.enter_context(gone.worker())  # the sweep learns later that no worker sees the project
        while not began.exists() and not sweep.done():
            time.sleep(0.05)
        gone.scheduler.kill()
        with pytest.raises(Unavailable, match=r"^DASK_LOST: .*--resume"):
            sweep.result()
    assert [run["state"] for run in lab.runs("gone")] == ["cancelled"]
    lab.sweep(notebook, {"workers": 1}, parameters=seeds, resume=True)
    runs = lab.runs("gone")
    assert [(run["state"], lab.printed(run)) for run in runs] == [("completed", "1\n"), ("completed", "2\n")]


def test_an_interrupted_sweep_lets_code_in_copies_clean_up_and_leaves_nothing(lab: SweepLab, tmp_path: Path) -> None:
    cell = (
        f"import pathlib, subprocess, time\nplace = pathlib.Path({str(tmp_path)!r})\n"
        "subprocess.Popen(['/bin/sleep', '1000'], start_new_session=True)\n(place / 'began').touch()\n"
        "try:\n    time.sleep(1000)\nfinally:\n    (place / 'ended').touch()"
    )
    notebook = lab.notebook("stopped.ipynb", "seed = 0", cell)
    argv = [sys.executable, "-m", "workbench.cli", "--project", str(lab.place), "sweep", notebook.name]
    with subprocess.Popen([*argv, "--dask", str(lab.dask)], cwd=lab.place, stderr=subprocess.PIPE, text=True) as sweep:
        while not (tmp_path / "began").exists():
            assert sweep.poll() is None, sweep.communicate()
            time.sleep(0.05)
        sweep.send_signal(signal.SIGINT)
        _, err = sweep.communicate()
    assert sweep.returncode == 130, err
    assert (tmp_path / "ended").exists()
    assert [(run["state"], run["error_code"]) for run in lab.runs("stopped")] == [("cancelled", "RUN_CANCELLED")]
    assert left_running(lab.place, "stopped") == []


def test_files_that_arrive_as_others_are_refused_and_taken_anew(tmp_path: Path) -> None:
    from workbench.sweeps.dask.copied import CopiedProject, NeededArchive

    archive = NeededArchive(hashlib.sha256(b"files").hexdigest(), 5)
    where = ("copies", tmp_path, "a.ipynb", "", "0" * 64, tmp_path)
    job = SweepJob(1, *where, SweepLimits(), 1_000, 1_000, None, None)
    copy = CopiedProject(job, tmp_path / "place", "tcp://worker:1", lambda _: nullcontext(lambda name: {}))
    assert copy.receive(archive, 0, b"fi") == 2
    assert copy.receive(archive, 0, b"fi") == 2, "a piece that comes twice counts once"
    with pytest.raises(Unavailable, match=r"^DASK_FILES_DAMAGED: "):
        copy.receive(archive, 2, b"les!")
    assert copy.received(archive) == 0
    assert copy.receive(archive, 0, b"files") == 5
