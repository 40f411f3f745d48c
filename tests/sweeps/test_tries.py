"""A run that is executed by two at once, because the first was cut off, has the result of the second."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.sweeps.lab import SweepLab
from workbench.errors import BadInput, Conflict
from workbench.rules.sweeps.grid import PlannedRun
from workbench.rules.sweeps.specification import SweepLimits
from workbench.sweeps.execution import execute_run
from workbench.sweeps.job import SweepJob
from workbench.sweeps.watch import Kernel, Watch

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

RUN = PlannedRun(1, "0123456789abcdef", {"seed": 3}, {}, 1)
CELL = """
import os, time
which = os.environ["WORKBENCH_RUN"].split(":")[1]
print("try", which)
open(f"began-{which}", "w").close()
while which == "1":
    time.sleep(0.1)
"""


class HeldUp(Watch):
    """Is held up between the execution of a notebook and its saving, as in a worker that the system lets starve."""

    def __init__(self) -> None:
        super().__init__()
        self.executed = threading.Event()
        self.goes_on = threading.Event()

    def remove(self, kernel: Kernel) -> None:
        """Called when the notebook was executed."""
        super().remove(kernel)
        self.executed.set()
        self.goes_on.wait()


@pytest.fixture
def job(here: SweepLab) -> SweepJob:
    """A sweep with one run, whose first try does not end by itself."""
    text = here.notebook("tries.ipynb", "seed = 0", CELL).read_text("utf-8")
    sweep = here.call(
        "start_sweep", name="tries", notebook="tries.ipynb", notebook_sha256="0" * 64, specification={"runs": 1}
    )
    where = ("tries", here.place, "tries.ipynb", text, "0" * 64, here.place)
    return SweepJob(sweep["id"], *where, SweepLimits(), 100_000, 100_000, None, None)


def test_an_interrupted_try_does_not_replace_the_result_of_a_later_one(here: SweepLab, job: SweepJob) -> None:
    execute = partial(execute_run, here.call, job, RUN, on_cell=lambda _done, _all: None)
    with HeldUp() as held_up, Watch() as watch, ThreadPoolExecutor(2) as threads:
        first = threads.submit(execute, held_up)
        try:
            while not (here.place / "began-1").exists():
                assert not first.done(), first.result()
                time.sleep(0.02)
            here.call("end_run", run_id=here.runs("tries")[0]["id"], state="lost")
            second = threads.submit(execute, watch).result()  # it ends the kernel of the first
            assert held_up.executed.wait(60)
        finally:
            held_up.goes_on.set()
            held_up.end_all()
    [run] = here.runs("tries")
    assert second.error is None
    assert here.printed(run) == "try 2\n"
    assert (run["state"], run["tries"], run["output"]) == ("completed", 2, second.output)
    refused = first.result().error
    assert refused is not None
    assert refused.code == "RUN_RESTARTED"
    assert [path.name for path in job.outputs.iterdir()] == [(here.place / run["output"]).name]


def test_a_sweep_goes_on_with_a_mended_notebook_and_runs_record_its_hash(here: SweepLab) -> None:
    values = {"seed": [1, 2]}
    notebook = here.notebook("mended.ipynb", "seed = 0", "1 / (seed - 2)")
    counts = here.sweep(notebook, parameters=values).data["counts"]
    assert (counts["completed"], counts["failed"]) == (1, 1)
    here.notebook("mended.ipynb", "seed = 0", "1 / (seed + 2)")
    with pytest.raises(Conflict, match=r"SWEEP_CHANGED.*add --changed"):
        here.sweep(notebook, parameters=values, retry_failed=True)

    here.sweep(notebook, {"kernel": "python3"}, parameters=values, retry_failed=True, changed=True)

    first, second = here.runs("mended")
    assert [(run["state"], run["tries"]) for run in (first, second)] == [("completed", 1), ("completed", 2)]
    hashes = {here.call("get_run", run_id=run["id"])["environment"]["notebook_sha256"] for run in (first, second)}
    assert len(hashes) == 2


def test_a_notebook_of_another_kernel_is_run_with_the_one_that_is_named(here: SweepLab) -> None:
    notebook = here.notebook("elsewhere.ipynb", "seed = 0", "print(seed)")
    notebook.write_text(notebook.read_text("utf-8").replace("python3", "conda-env-lab-py"), "utf-8")
    with pytest.raises(BadInput, match=r"KERNEL_NOT_FOUND.*--kernel python3"):
        here.sweep(notebook, parameters={"seed": [1]})
    here.sweep(notebook, {"kernel": "python3"}, parameters={"seed": [1]})
    assert [run["state"] for run in here.runs("elsewhere")] == ["completed"]
