"""`docs/runs.md`: its examples run as printed, in a notebook and as a script, and its query answers them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.generator import ROOT
from tests.code_blocks import blocks_in, environment
from tests.kernel.conftest import started

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "runs.md"
EVALUATE = "from workbench import Recorder\nRecorder().record(loss=0.25)\n"


def test_the_examples_of_the_page_record_runs_that_its_query_finds(tmp_path: Path) -> None:
    cell, script = blocks_in(PAGE, "python")
    [query] = blocks_in(PAGE, "sql")
    (project := tmp_path / "project").mkdir()
    (project / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (project / "evaluate.py").write_text(EVALUATE)
    (project / "train.py").write_text(script.code)
    variables = environment(WORKBENCH_PROJECT=str(project), WORKBENCH_PORT="0")
    with started(tmp_path, cwd=project, env=variables) as kernel:
        assert kernel.run(cell.code).endswith("Run 1 recorded loss 0.01, val/loss 0.02, outcome ok.")
        subprocess.run([sys.executable, "train.py"], cwd=project, env=variables, check=True)
        kernel.run("%workbench start")
        try:
            found = kernel.run("[(r.name, r.state, r.metrics.get('loss'), r.artifacts) for r in wb.runs]")
            kernel.run(f"%%wsql answered\n{query.code}")
            rows = kernel.run("answered.values.tolist()")
        finally:
            kernel.run("%workbench stop")
    assert found == "[('baseline', 'completed', 0.25, 0), ('baseline', 'completed', 0.01, 1)]"
    assert rows == "[['0.1', 0.13]]"
