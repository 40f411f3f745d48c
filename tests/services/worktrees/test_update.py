"""Bringing the target into a worktree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import git
from tests.services.worktrees.lab import commit
from workbench.app import Workbench
from workbench.errors import Conflict

pytestmark = pytest.mark.anyio


async def test_an_update_brings_the_target_in(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    commit(place)
    mine = commit(repository, "mine.txt")
    updated = await workbench.call("update_worktree", worktree_name="lab")
    assert (updated["merged"], updated["conflicts"]) == (True, [])
    assert git("rev-parse", "HEAD", cwd=place) == updated["commit"]
    assert git("rev-parse", "wb/lab/main", cwd=repository) == updated["commit"]
    assert (place / "mine.txt").exists()
    git("merge-base", "--is-ancestor", mine, "wb/lab/main", cwd=repository)
    again = await workbench.call("update_worktree", worktree_name="lab")
    assert (again["merged"], again["commit"]) == (False, updated["commit"])
    assert "worktree.updated" in await given.kinds(workbench, "worktree.*")


async def test_an_update_with_conflicts_lists_them_and_makes_none(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    tip = commit(place, "README.md", "# Theirs\n")
    mine = commit(repository, "README.md", "# Mine\n")
    assert git("rev-parse", "main", cwd=place) != mine
    updated = await workbench.call("update_worktree", worktree_name="lab")
    assert updated == {"worktree": "lab", "commit": tip, "merged": False, "conflicts": ["README.md"]}
    assert git("status", "--porcelain", cwd=place) == ""
    assert (place / "README.md").read_text() == "# Theirs\n"
    assert git("rev-parse", "main", cwd=place) == mine


async def test_an_update_spares_uncommitted_work_and_other_branches(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    (place / "README.md").write_text("work of hours")
    commit(repository, "README.md", "# Mine\n")
    error = await given.refusal(workbench.call("update_worktree", worktree_name="lab"))
    assert (type(error), error.code, error.details["files"]) == (Conflict, "WORKTREE_DIRTY", ["README.md"])
    assert (place / "README.md").read_text() == "work of hours"
    git("checkout", "-q", "README.md", cwd=place)
    git("switch", "-q", "-c", "elsewhere", cwd=place)
    await given.refuses("WORKTREE_ELSEWHERE", workbench.call("update_worktree", worktree_name="lab"))


async def test_an_update_waits_until_no_task_runs_there(workbench: Workbench, settle: Any, repository: Path) -> None:
    ada = await settle("ada", "lab")
    task = await workbench.call("create_task", title="t", persona_id="implementer", target_worktree="lab")
    await workbench.dispatch(ada.caller, "claim_task", {})
    commit(repository, "mine.txt")
    error = await given.refuses("WORKTREE_BUSY", workbench.call("update_worktree", worktree_name="lab"))
    assert error.details["tasks"] == [task["id"]]
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": task["id"]})
    assert (await workbench.call("update_worktree", worktree_name="lab"))["merged"]
