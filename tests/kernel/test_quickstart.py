"""The quickstart notebook, cell by cell in one kernel, as somebody runs it who runs it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from docs.generator import ROOT
from tests.kernel.conftest import Kernel

THREADS = "sorted(t.name for t in threading.enumerate() if type(t) is threading.Thread)"
"""Threads of subclasses are left out: ZeroMQ starts one of its own for large messages."""
NOTEBOOK = ROOT / "notebooks" / "00_quickstart.ipynb"

PLAN = """\
plan: greetings
tasks:
  - {name: hello, title: Write hello, persona: implementer, worktree: hello, run: "echo hello > hello.txt"}
  - {name: world, title: Write world, persona: tester, worktree: world, run: "echo world > world.txt", after: [hello]}
  - {name: judge, title: Judge both, persona: reviewer, run: cat /dev/null, after: [hello, world]}
"""


def cells(**parameters: object) -> list[str]:
    """The code of the notebook, its parameters set as a batch run sets them."""
    code = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    sources = [str(cell.source) for cell in code]
    sources.insert(1, "\n".join(f"{name} = {value!r}" for name, value in parameters.items()))
    return sources


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_quickstart_runs_twice_in_one_kernel_and_leaves_nothing_behind(
    kernel: Kernel, repository: Path, tmp_path: Path
) -> None:
    (plan := tmp_path / "plan.yaml").write_text(PLAN)
    kernel.run("import threading")
    before = kernel.run(THREADS)
    for name in ("first", "second"):
        repo = shutil.copytree(repository, tmp_path / name)
        for source in cells(approve="auto", repo=str(repo), plan_file=str(plan)):
            kernel.run(source)
        assert kernel.run('summary["completed"], summary["attempts"], summary["worktrees_integrated"]') == "(3, 3, 2)"
        assert kernel.run(THREADS) == before
        assert kernel.run("import psutil; [p.name() for p in psutil.Process().children()]") == "[]"
