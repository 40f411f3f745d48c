"""A sweep on hosts that share no directory with its machine, by Dask; one of them ends in the middle."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chance import SOAK
from tests.conftest import git
from tests.hosts import GATEWAY, are_possible, network
from tests.sweeps.lab import write_notebook
from workbench.cli.client import ProjectClient

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(1_200 if SOAK else 300),
    pytest.mark.skipif(not are_possible(), reason="needs root, and namespaces and networks of its own"),
]

RUNS = 100 if SOAK else 8
PROGRAM = "from distributed.cli.{} import main; main()"
RESULT = """
import hashlib
from pathlib import Path
from workbench import Recorder
result = hashlib.sha256(str(seed).encode()).hexdigest()
Recorder().record(first=int(result[0], 16))
Path(f"result-{seed}.txt").write_text(result)
Recorder().artifact(f"result-{seed}.txt", name="result")
print(result)
"""


def test_a_sweep_goes_on_when_one_of_three_hosts_ends_and_has_each_result_once(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    project, log = tmp_path / "project", tmp_path / "log"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    write_notebook(project / "far.ipynb", "seed: int = 0", RESULT)
    git("add", "-A", cwd=project)
    git("commit", "-q", "-m", "first", cwd=project)
    with network(tmp_path) as net, ExitStack() as ends:
        hosts = net.hosts("alpha", "beta", "gamma")
        said = ends.enter_context(log.open("ab"))

        def start(*argv: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([*net.entering, *argv], stdout=said, stderr=said, env=os.environ, cwd=project)
            ends.callback(process.wait)
            ends.callback(process.kill)
            return process

        address = f"tcp://{GATEWAY}:8786"
        start(sys.executable, "-c", PROGRAM.format("dask_scheduler"), "--host", GATEWAY, "--no-dashboard")
        for host in hosts:
            assert host.run("ls", str(project.parent / "project"), env={"LC_ALL": "C"}) == ""
            options = ("--no-dashboard", "--no-nanny", "--nthreads", "2", "--local-directory", str(host.home / "tmp"))
            argv = (sys.executable, "-c", PROGRAM.format("dask_worker"), address, "--host", host.address, *options)
            host.popen(*argv, cwd=host.home, stdout=said, stderr=said)
        swept = ("sweep", "far.ipynb", "-p", f"seed=1..{RUNS}", "--dask", address, "--name", "far")
        sweep = start(sys.executable, "-m", "workbench.cli", "--project", str(project), *swept)
        runs = project / ".aiswarm" / "runs" / "far"
        while len(list(runs.glob("*.ipynb"))) < RUNS // 4:
            assert sweep.poll() is None, log.read_text()
            time.sleep(0.05)
        hosts[0].end()
        assert sweep.wait() == 0, log.read_text()
    with ProjectClient(project) as client:
        recorded = client.call("list_runs", sweep="far", limit=500)["runs"]
        shown = {
            run["id"]: client.call("get_run_artifact", run_id=run["id"], name="result")["text"] for run in recorded
        }
    assert sorted(run["parameters"]["seed"] for run in recorded) == [*range(1, RUNS + 1)]
    for run in recorded:
        result = hashlib.sha256(str(run["parameters"]["seed"]).encode()).hexdigest()
        assert (run["state"], run["metrics"], shown[run["id"]]) == ("completed", {"first": int(result[0], 16)}, result)
        assert f"{result}\\n" in (project / run["output"]).read_text("utf-8")
    assert len(list(runs.glob("*.ipynb"))) == RUNS
