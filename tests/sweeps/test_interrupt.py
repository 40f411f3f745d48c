"""Sweeps that are interrupted: one coded line with the next step at each moment, and nothing of them runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interrupting import interrupted, typed
from tests.kernel.conftest import started
from tests.sweeps.lab import left_running, write_notebook

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

RUN = "import time\nopen(f'began-{seed}', 'w').close()\nwhile slow:\n    time.sleep(0.1)"
SWEEP = """
import os, signal, threading, time
def interrupt():
    while not (os.path.exists("began-1") and os.path.exists("began-2")):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
wb.sweep("slow.ipynb", parameters={"seed": [1, 2, 3], "slow": True}, workers=2)
"""


def test_an_interrupted_cell_ends_its_sweep(repository: Path, tmp_path: Path) -> None:
    write_notebook(repository / "slow.ipynb", "seed: int = 0\nslow: bool = True", RUN)
    with started(tmp_path / "home", cwd=repository) as kernel:
        kernel.run("%workbench start")
        shown, error = kernel.attempt(SWEEP)
        states = kernel.run("print(sorted(run['state'] for run in wb.call('list_runs', sweep='slow')['runs']))")
    assert error is not None
    assert error.startswith("Interrupted: SWEEP_INTERRUPTED: The sweep was interrupted. Run it again with --resume")
    assert "2 cancelled" in shown
    assert states.strip() == "['cancelled', 'cancelled']"
    assert left_running(repository, "slow") == []


COMMAND = "INTERRUPTED: The command was interrupted. Run it again.\n"
BEFORE = "SWEEP_INTERRUPTED: The sweep was interrupted before it began. Run it again.\n"
AFTER = "SWEEP_INTERRUPTED: The sweep was interrupted. Run it again with --resume, in a notebook with resume=True.\n"
MOMENTS = {
    "the command is imported": ("import", "workbench.cli.sweeps", COMMAND),
    "the notebook is read": ("open", "slow.ipynb", BEFORE),
    "the store is opened": ("sqlite3.connect", "coordination.db", BEFORE),
    "its server binds a port": ("socket.bind", "", BEFORE),
    "its server is made known": ("os.rename", "server.json", BEFORE),
    "its lock is taken": ("open", "runs/slow/.lock", BEFORE),
    "its first kernel starts": ("subprocess.Popen", "ipykernel", AFTER),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_sweep_that_is_interrupted_while_it_starts_says_how_it_goes_on(repository: Path, moment: str) -> None:
    write_notebook(repository / "slow.ipynb", "seed: int = 0", "print(seed)")
    event, word, said = MOMENTS[moment]
    ran = interrupted(event, word, repository, "sweep", "slow.ipynb")
    assert (ran.status, ran.err.splitlines(keepends=True)[-1]) == (130, said), ran
    assert "Traceback" not in ran.err
    assert left_running(repository, "slow") == []
    if moment in ("its server is made known", "its first kernel starts"):  # what it said is true
        ran = typed(repository, "sweep", "slow.ipynb", *(["--resume"] if said is AFTER else []))
        assert (ran.status, "1 completed" in ran.out) == (0, True), ran


def test_a_run_that_fails_is_one_line_on_standard_error(repository: Path) -> None:
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    write_notebook(repository / "slow.ipynb", "seed: int = 0", dies)
    ran = typed(repository, "sweep", "slow.ipynb", "-p", "seed=1")
    assert ran.err == "run 1 (seed=1) failed: KERNEL_DIED: The kernel ended by itself in cell 2.\n"
