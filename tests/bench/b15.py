"""B15: a sweep of a hundred short notebooks, four at a time.

Its counterpart is papermill alone in as many threads, as its manual shows it: no record, no session, no limits, nothing
that ends what a run leaves behind. Both have imported everything before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import papermill

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_most
from tests.sweeps.lab import write_notebook
from workbench.cli.sweeps.request import SweepRequest
from workbench.cli.sweeps.running import run_sweep
from workbench.shells.meanwhile import connected
from workbench.state.settings import Settings
from workbench.sweeps.job import SweepCall

RUNS = 100
WORKERS = 4


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Rounds of both, in turn; a first run of each is not counted."""
    runs = 8 if quick else RUNS
    ours, bare = [], []
    with scratch() as directory:
        project = directory.resolve()
        notebook = write_notebook(project / "short.ipynb", "seed: int = 0", "total = sum(range(seed))", "print(total)")
        with connected(Settings(project=project, port=0)) as call:
            _sweep(call, notebook, "first", 1)
            _bare(notebook, project / "first", 1)
            for number in range(min(rounds, 3)):
                bare.append(_bare(notebook, project / f"bare-{number}", runs))
                ours.append(_sweep(call, notebook, f"sweep-{number}", runs))
    return {"wall time": Samples(ours, bare, unit="s", note=f"{runs} runs; the server runs already")}


def _sweep(call: SweepCall, notebook: Path, name: str, runs: int) -> float:
    settings = Settings(project=notebook.parent, port=0)
    others = {"name": name, "workers": WORKERS}
    request = SweepRequest(notebook.name, notebook.parent, {"seed": tuple(range(runs))}, others=others)
    started = time.perf_counter()
    run_sweep(settings, request, lambda: nullcontext(call), lambda: nullcontext(lambda _: None))
    seconds = time.perf_counter() - started
    states = [run["state"] for run in call("list_runs", sweep=name, limit=500)["runs"]]
    assert states == ["completed"] * runs, "a run was not completed"
    return seconds


def _bare(notebook: Path, place: Path, runs: int) -> float:
    place.mkdir()

    def execute(seed: int) -> None:
        papermill.execute_notebook(notebook, place / f"{seed}.ipynb", {"seed": seed}, progress_bar=False)

    started = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(execute, range(runs)))
    return time.perf_counter() - started


ROW = Row(
    "B15",
    f"a sweep of {RUNS} short notebooks, {WORKERS} at a time",
    f"papermill alone in {WORKERS} threads",
    {"wall time": at_most(1.15)},
    run,
)
