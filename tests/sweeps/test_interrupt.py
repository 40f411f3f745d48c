"""`wb.sweep` in a notebook whose kernel is interrupted: how the sweep stands is shown, and nothing of it runs on."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.kernel.conftest import started
from tests.sweeps.lab import write_notebook
from workbench.process import is_running
from workbench.process.marks import marks_of
from workbench.sweeps.watch import sweep_mark

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
    assert error.startswith(
        "SweepInterrupted: SWEEP_INTERRUPTED: The sweep was interrupted. Run it again with --resume"
    )
    assert "2 cancelled" in shown
    assert states.strip() == "['cancelled', 'cancelled']"
    mark = sweep_mark("slow", str(repository))
    assert [one for one in psutil.process_iter() if mark in marks_of(one) and is_running(one)] == []
