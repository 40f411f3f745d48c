"""All scripts, run in order in an empty folder; what the repository has must be the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPTS = ("clean", "islands", "bills", "mass", "report")


class Workplace:
    """A folder with the raw data, where scripts are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.handed_over = root / "handed_over.json"
        (root / "data").mkdir()
        raw = ROOT / "data/penguins_raw.csv"
        (root / "data/penguins_raw.csv").write_bytes(raw.read_bytes())

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / f"scripts/{name}.py"), *arguments],
            cwd=self.root,
            env={**os.environ, "WORKBENCH_RESULT": str(self.handed_over)},
            capture_output=True,
            encoding="utf-8",
        )


@pytest.fixture
def workplace(tmp_path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> dict[str, bytes]:
    """What all scripts together leave in `results/`."""
    place = Workplace(tmp_path_factory.mktemp("finished"))
    announced = set()
    for name in SCRIPTS:
        done = place.run(name)
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
        message = json.loads(place.handed_over.read_text())
        assert message["result"]
        announced.update(message["artifacts"])
    files = {path.name: path.read_bytes() for path in (place.root / "results").iterdir()}
    assert announced == {f"results/{name}" for name in files}
    return files


def test_the_report_shows_every_picture(finished):
    report = finished["REPORT.md"].decode()
    pictures = [name for name in finished if name.endswith(".svg")]
    assert len(pictures) == 3
    assert all(f"]({name})" in report for name in pictures)


def test_results_of_the_repository_can_be_reproduced(finished):
    here = [name for name in finished if (ROOT / "results" / name).exists()]
    if not here:
        pytest.skip("no results yet")
    for name in here:
        assert (ROOT / "results" / name).read_bytes() == finished[name], name


def test_too_few_iterations_leave_nothing_and_ask_for_another_try(workplace):
    workplace.run("clean")
    workplace.handed_over.unlink()
    done = workplace.run("mass", "--max-iterations", "50")
    assert done.returncode == 75
    assert "Not converged after 50 iterations" in done.stderr
    assert not workplace.handed_over.exists()
    assert not (workplace.root / "results/mass.json").exists()


@pytest.mark.parametrize(
    ("script", "needed"), [("islands", "clean"), ("bills", "clean"), ("report", "islands")]
)
def test_a_script_names_the_one_that_has_to_run_before(workplace, script, needed):
    done = workplace.run(script)
    assert done.returncode == 1
    assert f"run `python scripts/{needed}.py` first" in done.stderr
