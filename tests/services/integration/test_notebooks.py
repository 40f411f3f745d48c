"""Two agents that change different cells of one notebook: from the prediction to the merged result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests import given
from tests.git.test_merging_notebooks import BASE, changed, notebook
from tests.services.worktrees.lab import ask, commit, worktree_row
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_two_worktrees_that_change_different_cells_are_both_merged(
    workbench: Workbench, repository: Path
) -> None:
    commit(repository, "a.ipynb", notebook(BASE).decode())
    for name, at, line in (("one", 1, "one = 1"), ("other", 3, "three = 3")):
        commit(await given.worktree(workbench, name), "a.ipynb", changed(at, line).decode())
    rows: list[dict[str, Any]] = [await worktree_row(workbench, name) for name in ("one", "other")]
    assert [(row["conflicts"], row["overlaps"]) for row in rows] == [([], []), ([], [])]
    for name in ("one", "other"):
        await workbench.call("approve", approval_id=await ask(workbench, name))
    merged = json.loads((repository / "a.ipynb").read_text())
    nbformat.validate(merged)
    assert [merged["cells"][at]["source"] for at in (1, 3)] == [["one = 1"], ["three = 3"]]
    assert [bool(cell["metadata"]) for cell in merged["cells"]] == [False, False, False, True, True]
