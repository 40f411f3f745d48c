"""A notebook that is executed says why it failed, and with what it ran; its tags mean what they mean in Jupyter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import numpy
import pytest

from tests.sweeps.lab import new_notebook
from workbench.sweeps import engine, failures
from workbench.sweeps.outputs import OutputLimit
from workbench.sweeps.watch import Kernel

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

NO_MAGIC = "%no_such_magic"
GROUP = "raise ExceptionGroup('g', [ExceptionGroup('h', [ValueError('deep')]), KeyError('k')])"
CUSTOM = "get_ipython().set_custom_exc((Exception,), lambda *_, **__: None)"


def executed(
    place: Path, *cells: str, tags: Mapping[int, str] = {}, **arguments: Any
) -> tuple[engine.Execution, str | None]:
    """An execution of a notebook with these cells, and why it failed."""
    notebook = new_notebook(*cells)
    for number, tag in tags.items():
        notebook.cells[number].metadata.tags = [tag]
    kernel = Kernel(60)
    execution = engine.Execution(kernel, kernel.environment(os.environ), place, OutputLimit(10_000))
    raised: Exception | None = None
    try:
        engine.execute(notebook, arguments, execution)
    except Exception as error:  # as in `execution`
        raised = error
    failure = failures.of(raised, kernel, execution.document, execution.source)
    nbformat.validate(execution.document)
    return execution, failure and failure.message


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([NO_MAGIC], "Cell 1: UsageError: Line magic function `%no_such_magic` not found"),
        ([GROUP], "Cell 1: ExceptionGroup: g (2 sub-exceptions): ValueError: deep"),
        ([CUSTOM, "1 / 0"], "Cell 2: ZeroDivisionError: division by zero"),
    ],
    ids=["magic", "group", "handler"],
)
def test_the_reason_of_a_failure_is_known_also_if_the_kernel_shows_none(
    tmp_path: Path, cells: list[str], said: str
) -> None:
    execution, message = executed(tmp_path, *cells)
    assert (message or "").startswith(said)
    shown = [output for cell in execution.document.cells for output in cell.get("outputs", ())]
    assert shown[-1].output_type == "error"


def test_a_cell_that_is_expected_to_raise_fails_no_run_and_another_one_does(tmp_path: Path) -> None:
    cells = ["rate: float = 0.5", "1 / 0", "import numpy\nprint(rate, type(rate).__name__)", NO_MAGIC]
    tags = {0: "parameters", 1: "raises-exception", 3: "raises-exception"}
    execution, message = executed(tmp_path, *cells, tags=tags, rate=1)
    assert message is None
    assert execution.document.cells[3].outputs[0].text == "1.0 float\n"
    assert len(execution.document.cells) == 5, "papermill's marks of a failure are gone"
    assert execution.packages["numpy"] == numpy.__version__
    execution, message = executed(tmp_path, *cells, tags={**tags, 3: "other"}, rate="NaN")
    assert (message or "").startswith("Cell 4: UsageError")
    assert execution.document.cells[4].outputs[0].text == "nan float\n"
