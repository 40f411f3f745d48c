"""A disk that fills during a sweep: each run that suffers from it says so, and a resumed sweep does the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.small_disk import small_disk
from tests.sweeps.lab import left_running, write_notebook
from workbench.cli.client import ProjectClient

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

FILL = """
import os
from pathlib import Path
place = Path(disk)
if fills and seed == 2 and not Path("mended").exists():
    space = os.statvfs(place)
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"1" * 4096)
        except OSError:
            pass
"""
RUNS = "1..3"


@pytest.fixture(params=["state", "outputs"])
def disk(request: pytest.FixtureRequest, repository: Path) -> Iterator[Path]:
    """A small file system below the project's state directory, or below that of the executed notebooks."""
    place = repository / ".aiswarm"
    if request.param == "outputs":
        with ProjectClient(repository) as client:
            client.create_project()
        place = place / "runs"
    with small_disk(place, 96) as made:
        yield made


def sweep(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the real command to its end."""
    words = [sys.executable, "-m", "workbench.cli", "sweep", "fills.ipynb", "-p", f"seed={RUNS}", "--workers", "1"]
    env = os.environ | {"WORKBENCH_PROJECT": str(project)}
    return subprocess.run([*words, *options], cwd=project, env=env, capture_output=True, text=True)


def runs(project: Path) -> list[dict[str, Any]]:
    with ProjectClient(project) as client:
        return sorted(client.call("list_runs")["runs"], key=lambda run: int(run["parameters"]["seed"]))


def test_a_disk_that_fills_fails_runs_with_a_code_and_a_resumed_sweep_does_the_rest(
    repository: Path, disk: Path
) -> None:
    parameters = f"seed: int = 0\nfills = True\ndisk = {str(disk)!r}"
    write_notebook(repository / "fills.ipynb", parameters, "print(seed)", FILL)
    first = sweep(repository, "--name", "fills")
    assert first.returncode == 1
    code = "STORE_FULL" if disk.name == ".aiswarm" else "PROJECT_UNWRITABLE"
    assert first.stdout.count(f"{code}: ") == 2, first.stdout + first.stderr
    assert left_running(repository, "fills") == []
    (disk / "filler").unlink()
    (repository / "mended").touch()
    again = sweep(repository, "--name", "fills", "--retry-failed")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [run["state"] for run in runs(repository)] == ["completed"] * 3
    assert runs(repository)[0]["tries"] == 1
    left = [path.name for path in (repository / ".aiswarm" / "runs" / "fills").iterdir() if path.suffix == ".ipynb"]
    assert len(left) == 3
