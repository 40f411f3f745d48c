"""Runs in a notebook: recorded with and without servers, listed, compared, carried by the notebook's outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel, started
from workbench.cli.client import ProjectClient

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def notebook(home: Path) -> Iterator[Kernel]:
    """A kernel that has not started the servers."""
    with started(home, env=os.environ | {"WORKBENCH_PROJECT": str(home), "WORKBENCH_PORT": "0"}) as kernel:
        yield kernel


def test_a_run_is_recorded_before_and_after_the_servers_start(notebook: Kernel, home: Path) -> None:
    cell = "with wb.run('first', lr=0.1):\n    for n in range(3):\n        wb.record(loss=1 / (n + 1), note='warm')"
    [message] = notebook.outputs(cell, "display_data")
    shown = message["content"]["data"]
    assert shown["text/plain"] == "Run 1 recorded loss 0.333333, note warm."
    assert shown["application/vnd.workbench.record+json"]["metrics"]["loss"] == {"last": 1 / 3, "step": None}
    assert "first" in notebook.run("wb.runs")
    assert "lr=0.1" in notebook.run("wb.runs")
    assert "0.333333" in notebook.run("wb.runs[1]")
    notebook.run("%workbench start --port 0")
    notebook.run("with wb.run('second', lr=0.2) as run: run.record(loss=0.5)")
    assert re.search(r"lr\b.*\b0\.2", notebook.run("wb.runs.compare(1, 2)"))
    assert "second" not in notebook.run("wb.runs(where='loss<0.4')")
    assert notebook.run("[run.id for run in wb.runs.sort('name', reverse=True)]") == "[2, 1]"
    assert notebook.run("[run.id for run in wb.runs.sort('loss')]") == "[1, 2]"
    assert notebook.run("wb.runs['second'].id, 'second' in wb.runs, 'third' in wb.runs") == "(2, True, False)"
    assert "0.2" in notebook.run("wb.runs.compare('first', 'second')")
    notebook.run("wb.runs[2].rename('first')")
    assert notebook.fail("wb.runs['first']")["evalue"].startswith("AMBIGUOUS_NAME: More than one run is named 'first'.")
    notebook.run("assert 'first' in wb.runs; wb.runs[2].rename('second')")
    assert notebook.run("print(wb.runs[1].frame('loss').loc[2, 'loss'])").startswith("0.333")
    unknown = "UNKNOWN_METRIC: Run 1 has no series 'los'. Did you mean loss"
    assert notebook.fail("wb.runs[1].frame('los')")["evalue"].startswith(unknown)
    notebook.run("wb.runs[2].tag('best'); wb.runs[2].note('It **works**.')")
    assert "best" in notebook.run("%workbench runs --tag best")
    with ProjectClient(home) as client:
        assert [run["name"] for run in client.call("list_runs", tag="best")["runs"]] == ["second"]


def test_the_run_that_begins_by_itself_ends_with_the_kernel(tmp_path: Path) -> None:
    environment = os.environ | {"WORKBENCH_PROJECT": str(tmp_path), "WORKBENCH_PORT": "0"}
    with started(tmp_path, env=environment) as kernel:
        kernel.run("%workbench start --port 0")
        kernel.run("wb.record(loss=0.5)")
        kernel.client.shutdown()
        while kernel.manager.is_alive():
            pass
    with ProjectClient(tmp_path) as client:
        [run] = client.call("list_runs")["runs"]
    assert (run["state"], run["metrics"]) == ("completed", {"loss": 0.5})
