"""The quickstart notebook, cell by cell in one kernel, as somebody runs it who runs it again."""

from __future__ import annotations

import nbformat
import pytest

from tests.docs import ROOT
from tests.kernel.conftest import Kernel

THREADS = "sorted(t.name for t in threading.enumerate() if type(t) is threading.Thread)"
"""Threads of subclasses are left out: ZeroMQ starts one of its own for large messages."""
NOTEBOOK = ROOT / "notebooks" / "00_quickstart.ipynb"


def cells() -> list[str]:
    """The code of the notebook, its parameters set as a batch run sets them."""
    code = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    sources = [str(cell.source) for cell in code]
    sources.insert(1, 'approve = "auto"')
    return sources


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_runs_twice_in_the_same_kernel_and_leaves_nothing_behind(kernel: Kernel) -> None:
    kernel.run("import threading")
    before = kernel.run(THREADS)
    for _ in range(2):
        for source in cells():
            kernel.run(source, deadline=250)  # a minute when the machine is busy
        assert kernel.run('summary["completed"], summary["attempts"], summary["worktrees_integrated"]') == "(8, 9, 3)"
        assert kernel.run(THREADS) == before
        assert kernel.run("import psutil; [p.name() for p in psutil.Process().children()]") == "[]"
