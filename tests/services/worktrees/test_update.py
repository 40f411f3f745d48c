"""Bringing the target into a worktree; where they conflict, the merge is started, resolved by hand, and finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import git
from tests.services.worktrees.lab import approval, ask, commit, everything, worktree_row
from workbench.app import Workbench
from workbench.errors import Conflict

pytestmark = pytest.mark.anyio


@pytest.mark.long
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


@pytest.mark.long
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
    task = await given.whole_task(workbench, "t", target_worktree="lab")
    await workbench.dispatch(ada.caller, "claim_task", {})
    commit(repository, "mine.txt")
    error = await given.refuses("WORKTREE_BUSY", workbench.call("update_worktree", worktree_name="lab"))
    assert error.details["tasks"] == [task["id"]]
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": task["id"]})
    assert (await workbench.call("update_worktree", worktree_name="lab"))["merged"]


async def resolve(workbench: Workbench, step: str = "start") -> dict[str, Any]:
    """Take a step of resolving."""
    return await workbench.call("resolve_worktree", worktree_name="lab", step=step)


async def in_conflict(workbench: Workbench, repository: Path) -> Path:
    """A worktree that conflicts with its target."""
    place = await given.worktree(workbench)
    commit(place, "README.md", "# Theirs\n")
    commit(repository, "README.md", "# Mine\n")
    return place


@pytest.mark.long
async def test_a_refused_merge_is_resolved_as_the_refusal_says(workbench: Workbench, repository: Path) -> None:
    place = await in_conflict(workbench, repository)
    question = await ask(workbench)
    before = everything(repository)
    error = await given.refuses("MERGE_CONFLICT", workbench.call("approve", approval_id=question))
    assert (error.details["files"], everything(repository)) == (["README.md"], before)
    assert (await approval(workbench, question))["status"] == "failed"
    assert (await worktree_row(workbench))["status"] == "active"
    assert "The worktree lab and main both changed README.md" in error.message
    assert "`workbench worktrees resolve lab`" in error.message
    assert git("rev-parse", "HEAD", cwd=place)[:12] not in error.message
    tip = git("rev-parse", "HEAD", cwd=place)
    await resolve(workbench)
    aborted = await resolve(workbench, "abort")
    assert (aborted["state"], aborted["commit"], aborted["conflicts"]) == ("aborted", tip, [])
    assert (place / "README.md").read_text() == "# Theirs\n"
    for step in ("finish", "abort"):
        await given.refuses("NO_MERGE_IN_PROGRESS", resolve(workbench, step))
    started = await resolve(workbench)
    assert (started["state"], started["conflicts"], started["path"]) == ("unresolved", ["README.md"], str(place))
    assert "<<<<<<< " in (place / "README.md").read_text()
    error = await given.refuses("CONFLICTS_LEFT", resolve(workbench, "finish"))
    assert error.details["files"] == ["README.md"]
    (place / "README.md").write_text("# Both\n")
    assert (await resolve(workbench))["conflicts"] == []
    done = await resolve(workbench, "finish")
    assert (done["state"], done["commit"]) == ("merged", git("rev-parse", "wb/lab/main", cwd=repository))
    assert git("status", "--porcelain", cwd=place) == ""
    question = await ask(workbench)
    assert (await approval(workbench, question))["payload"]["conflicts"] == []
    await workbench.call("approve", approval_id=question)
    assert (repository / "README.md").read_text() == "# Both\n"
    assert "worktree.updated" in await given.kinds(workbench, "worktree.*")


async def test_a_target_without_conflicts_is_merged_at_once(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    commit(place)
    assert (await resolve(workbench))["state"] == "up_to_date"
    commit(repository, "mine.txt")
    assert (await resolve(workbench))["state"] == "merged"
    assert (place / "mine.txt").exists()


@pytest.mark.long
async def test_a_deleted_file_and_a_binary_one_are_settled_by_git(workbench: Workbench, repository: Path) -> None:
    (repository / "data.bin").write_bytes(b"\0start")
    commit(repository, "old.txt")
    place = await given.worktree(workbench)
    (place / "data.bin").write_bytes(b"\0theirs")
    commit(place, "old.txt", "changed\n")
    (repository / "data.bin").write_bytes(b"\0mine")
    git("rm", "-q", "old.txt", cwd=repository)
    git("commit", "-q", "-a", "-m", "Mine", cwd=repository)
    assert (await resolve(workbench))["conflicts"] == ["data.bin", "old.txt"]
    git("rm", "-q", "old.txt", cwd=place)
    error = await given.refuses("CONFLICTS_LEFT", resolve(workbench, "finish"))
    assert error.details["files"] == ["data.bin"]
    git("checkout", "-q", "--theirs", "data.bin", cwd=place)
    git("add", "data.bin", cwd=place)
    assert (await resolve(workbench, "finish"))["state"] == "merged"
    assert (place / "data.bin").read_bytes() == b"\0mine"
    assert not (place / "old.txt").exists()


@pytest.mark.long
async def test_no_merge_is_started_where_work_is_in_the_way(workbench: Workbench, repository: Path) -> None:
    place = await in_conflict(workbench, repository)
    (place / "draft.txt").write_text("draft\n")
    await given.refuses("WORKTREE_DIRTY", resolve(workbench))
    (place / "draft.txt").unlink()
    git("switch", "-q", "-c", "elsewhere", cwd=place)
    await given.refuses("WORKTREE_ELSEWHERE", resolve(workbench))
    assert "<<<<<<<" not in (place / "README.md").read_text()
    await workbench.call("discard_worktree", worktree_name="lab", force=True)
    await given.refuses("WORKTREE_CLOSED", resolve(workbench))
