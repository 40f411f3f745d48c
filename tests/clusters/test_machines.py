"""The clusters that the settings name: what is shown of them, and sweeps on them."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import given
from tests.conftest import Served
from tests.sweeps.conftest import opened
from workbench.clusters import slurm
from workbench.clusters.over_dask import DaskStart
from workbench.state.machine import SlurmMachine
from workbench.state.settings import Settings

SBATCH = """#!/bin/sh
cp "$1" {place}/job.sh
setsid sh {place}/job.sh > {place}/job.log 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = '#!/bin/sh\nkill -- "-$1"\n'
UNCLOSED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""dask-jobqueue leaves the files of its certificates open."""
HPC = {"kind": "slurm", "jobs": 1, "cores": 1, "memory": "1 GB", "options": {"interface": "lo", "queue": "gpu"}}


@pytest.mark.parametrize(
    "described",
    [
        {"kind": "dask"},
        {"kind": "dask", "address": "head"},
        {"kind": "slurm", "cores": 0, "memory": "1 GB"},
        {"kind": "cloud"},
        {"kind": "ssh", "host": "-oProxyCommand=touch x"},
        {"address": "tcp://head:8786"},
    ],
)
def test_a_machine_that_no_cluster_can_be_is_refused(tmp_path: Path, described: dict[str, Any]) -> None:
    given.refused("BAD_SETTINGS", Settings, project=tmp_path, machines={"gpu": described})


@pytest.mark.anyio
@pytest.mark.long
async def test_a_cluster_that_cannot_be_used_is_shown_with_the_next_step(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        gpu = {"kind": "dask", "address": f"tcp://127.0.0.1:{bound.getsockname()[1]}"}
        monkeypatch.setitem(served.workbench.settings.__dict__, "machines", {"hpc": HPC, "gpu": gpu})
        shown = (await served.workbench.call("list_machines"))["machines"]
    assert [(each["name"], each["kind"]) for each in shown] == [("gpu", "dask"), ("hpc", "slurm")]
    assert shown[0]["lacks"].startswith("No Dask scheduler answers at tcp://127.0.0.1:")
    assert "Start one there" in shown[0]["lacks"]
    assert shown[1]["has"] == "1 job of 1 core and 1 GB, once Slurm starts them"
    assert shown[1]["lacks"].startswith("sbatch is not on this machine")


def test_a_sweep_names_a_machine_of_the_settings_or_an_address(tmp_path: Path) -> None:
    with opened(tmp_path) as lab:
        notebook = lab.notebook("named.ipynb", "seed = 0", "1")
        given.refused("BAD_SWEEP", lab.sweep, notebook, {"dask": "gpu"})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Commands named as Slurm's, which run a job as a process of this machine: Slurm itself is not here."""
    pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")
    place = tmp_path / "slurm"
    place.mkdir()
    for name, text in (("sbatch", SBATCH.format(place=place)), ("scancel", SCANCEL)):
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield place
    gc.collect()  # while warnings of unclosed files are ignored


@pytest.mark.long
@pytest.mark.timeout(200)
@UNCLOSED
def test_a_sweep_is_executed_by_jobs_that_are_submitted_and_ended(stand_in: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with opened(project) as lab:
        lab.settings = lab.settings.model_copy(update={"machines": {"hpc": HPC}})
        lab.sweep(lab.notebook("jobs.ipynb", "seed = 0", "print(seed)"), {"dask": "hpc"}, parameters={"seed": [1, 2]})
        assert [(run["state"], lab.printed(run)) for run in lab.runs("jobs")] == [
            ("completed", "1\n"),
            ("completed", "2\n"),
        ]
    script = (stand_in / "job.sh").read_text()
    assert "#SBATCH -p gpu" in script
    assert "#SBATCH --cpus-per-task=1" in script
    assert "tls://" in script


@pytest.mark.long
@UNCLOSED
def test_an_agent_has_one_job_of_its_own(stand_in: Path) -> None:
    described = SlurmMachine.model_validate(HPC | {"jobs": 3}).model_dump()
    start = DaskStart("hpc", described, "http://127.0.0.1:9", "", "", "", "", {}, "")
    with start.connected() as client:
        assert len(client.cluster.worker_spec) == 1
    assert (stand_in / "job.sh").exists()


@UNCLOSED
@pytest.mark.usefixtures("stand_in")
def test_a_scheduler_shows_its_pages_only_where_it_is_asked_to() -> None:
    asked = HPC["options"] | {"scheduler_options": {"dashboard_address": "127.0.0.1:0"}}
    for options, status in ((HPC["options"], 404), (asked, 200)):
        with slurm.cluster("hpc", SlurmMachine.model_validate(HPC | {"options": options})) as jobs:
            host, port = jobs.scheduler.http_server.address, jobs.scheduler.http_server.port
            assert (host, port != 8787) == ("127.0.0.1", True)
            assert httpx.get(f"http://{host}:{port}/info/main/workers.html").status_code == status


@UNCLOSED
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"quueue": "gpu"}, "quueue"),
        ({"interface": "nope0"}, "'nope0' is not a valid network interface"),
        ({"security": False}, "bool"),
        ({"shared_temp_directory": "/proc/none"}, "/proc/none"),
        ({"scheduler_options": "port"}, "mapping"),
        ({"protocol": "bogus://"}, "unknown address scheme"),
        ({"worker_extra_args": 3}, "int"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_that_the_jobs_do_not_have_are_refused(option: dict[str, Any], why: str) -> None:
    machine = SlurmMachine.model_validate(HPC | {"options": HPC["options"] | option})
    assert why in str(given.refused("BAD_MACHINE", slurm.cluster, "hpc", machine))
