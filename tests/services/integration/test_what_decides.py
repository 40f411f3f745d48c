"""The facts that decide a merge are in every view of the approval: tasks of the worktree, gates, checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel_ext.panels.desk import inbox_table
from tests import given
from tests.conftest import Admit, limited
from tests.services.worktrees.lab import commit, worktree_row
from workbench.app import Workbench
from workbench.cli.approvals import approval_page, waiting_table
from workbench.rules.integration import with_lines

pytestmark = pytest.mark.anyio

LINES = [
    "Tasks: 1 completed, 1 failed for good (2), 1 open (3).",
    "Gates: none ran; set, but not used: pytest -q (`workbench trust` shows what is not trusted).",
    "Checks: no conflicts with main; protected parts are unchanged.",
]


@pytest.mark.long
async def test_every_view_of_an_approval_names_failed_tasks_and_untrusted_gates(
    workbench: Workbench, settle: Admit, repository: Path
) -> None:
    worker = await settle("ada", "lab")
    commit(Path((await worktree_row(workbench))["path"]))
    ended = [await given.task(workbench, f"T{number}", target_worktree="lab") for number in range(3)][:2]
    await given.end(workbench, worker, ended[0])
    await given.end(workbench, worker, ended[1], "failed")
    (repository / ".aiswarm" / "settings.toml").write_text('integration_gates = ["pytest -q"]\n')
    request = await workbench.call("integrate_worktree", worktree_name="lab")
    (question,) = (await workbench.call("list_approvals"))["approvals"]
    assert request["decides"] == question["payload"]["decides"] == LINES
    for face in (waiting_table([question], ""), inbox_table([question]), approval_page(question)):
        for text in (face.text(), face.html().replace("<code>", "`").replace("</code>", "`")):
            assert [line for line in LINES if line not in text] == []
    merged = (await workbench.call("approve", approval_id=question["id"]))["outcome"]
    assert merged["decides"] == LINES


@limited(integration_large_bytes=1_000)
async def test_files_that_are_large_or_binary_are_named_before_a_merge(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    commit(place, "small.png", "\0" * 10)
    commit(place, "large.png", "\0" * 2_000)
    commit(place, "data.csv", "1,2\n" * 1_000)
    request = await workbench.call("integrate_worktree", worktree_name="lab")
    assert request["decides"][3:] == ["Files: 2 large (data.csv 0.0 MB, large.png 0.0 MB); 1 binary (small.png)."]


HELD = {"target": "main", "conflicts": [], "gates": []}
GATE = {"command": "lint", "state": "passed"}


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ({}, "Gates: none are set."),
        ({"gates": [GATE, GATE]}, "Gates: 2 passed."),
        ({"gates": [GATE, GATE | {"state": "failed"}]}, "Gates: 1 passed; 1 failed (lint)."),
        ({"gates": [GATE | {"state": "timeout"}]}, "Gates: 1 timed out (lint)."),
        ({"gates": [GATE | {"state": "waiting"}]}, "Gates: 1 not run yet (lint)."),
        ({"conflicts": ["a"]}, "Gates: none ran, because it conflicts."),
        ({"failed_tasks": 7, "failed_task_ids": [*range(7)]}, "Tasks: 7 failed for good (0, 1, 2, 3, 4 and 2 more)."),
        ({"conflicts": ["a"]}, "Checks: conflicts with main in a; protected parts are unchanged."),
        (
            {
                "large": 6,
                "large_files": [{"path": "a.csv", "bytes": 5_300_000}],
                "binary": 1,
                "binary_files": ["b.png"],
            },
            "Files: 6 large (a.csv 5.3 MB and 1 more); 1 binary (b.png).",
        ),
        ({"changed": ["HEAD"]}, "Checks: no conflicts with main; protected parts have changed: HEAD."),
    ],
)
def test_an_approval_has_a_line_for_each_fact_that_decides(known: dict[str, Any], line: str) -> None:
    assert line in with_lines(HELD | known)["decides"]
