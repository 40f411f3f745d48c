"""Discarding a worktree without losing work that is nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import given
from tests.conftest import git
from tests.services.worktrees.lab import approval, ask, commit, worktree_row
from workbench.app import Workbench
from workbench.errors import Conflict, WorkbenchError

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_discarding_keeps_the_branch_and_frees_the_name(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    tip = commit(place)
    question = await ask(workbench)
    discarded = await workbench.call("discard_worktree", worktree_name="lab", reason="Dead end.")
    assert (discarded["status"], discarded["integrated_commit"]) == ("discarded", None)
    assert not place.exists()
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    assert (await approval(workbench, question))["status"] == "rejected"
    assert not (repository / "new.txt").exists()
    event = (await workbench.call("list_events", kinds=["worktree.discarded"]))["events"][0]
    assert event["data"] == {"reason": "Dead end.", "branch_kept": True, "bundle": None}
    await given.refuses("BRANCH_EXISTS", given.worktree(workbench))
    assert (await given.worktree(workbench, branch_name="wb/lab/2")).exists()
    worktree = await worktree_row(workbench)
    assert (worktree["status"], worktree["ahead"], worktree["branch_name"]) == ("active", 0, "wb/lab/2")


@pytest.mark.long
async def test_uncommitted_files_are_not_given_up_without_force(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    (place / "draft.txt").write_text("a draft\n")
    error = await given.refuses("WORKTREE_DIRTY", workbench.call("discard_worktree", worktree_name="lab"))
    assert error.details["files"] == ["draft.txt"]
    assert (place / "draft.txt").read_text() == "a draft\n"
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    bundle = Path(discarded["bundle"])
    assert bundle.parent == repository / ".aiswarm" / "trash"
    assert not place.exists()
    assert git("for-each-ref", "refs/workbench", cwd=repository) == ""
    git("fetch", "-q", str(bundle), "refs/workbench/saved/lab/uncommitted:refs/heads/back", cwd=repository)
    assert git("show", "back:draft.txt", cwd=repository) == "a draft"


@pytest.mark.long
async def test_commits_that_are_nowhere_else_are_discarded_only_by_force_and_saved(
    workbench: Workbench, repository: Path, tmp_path: Path
) -> None:
    place = await given.worktree(workbench)
    tip = commit(place)
    error = await given.refusal(workbench.call("discard_worktree", worktree_name="lab", delete_branch=True))
    assert (type(error), error.code, error.details["commits"]) == (Conflict, "COMMITS_ONLY_HERE", 1)
    assert (await worktree_row(workbench))["status"] == "active"
    (place / "draft.txt").write_text("a draft\n")
    discarded = await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True, force=True)
    assert (discarded["status"], discarded["branch_kept"]) == ("discarded", False)
    assert git("branch", "--list", "wb/*", cwd=repository) == ""
    git("clone", "-q", "--no-local", str(repository), str(tmp_path / "clone"), cwd=tmp_path)
    git("fetch", "-q", discarded["bundle"], "refs/heads/*:refs/heads/*", cwd=tmp_path / "clone")
    assert git("rev-parse", "wb/lab/main", cwd=tmp_path / "clone") == tip
    git("reflog", "expire", "--expire=now", "--all", cwd=repository)
    git("gc", "-q", "--prune=now", cwd=repository)
    git("fetch", "-q", discarded["bundle"], "refs/*:refs/back/*", cwd=repository)
    assert git("rev-parse", "refs/back/heads/wb/lab/main", cwd=repository) == tip
    assert git("show", "refs/back/workbench/saved/lab/uncommitted:draft.txt", cwd=repository) == "a draft"


@pytest.mark.long
async def test_other_branches_and_a_stash_of_a_worktree_are_not_lost(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    git("switch", "-q", "-c", "idea", cwd=place)
    idea = commit(place, "idea.txt")
    git("switch", "-q", "wb/lab/main", cwd=place)
    (place / "README.md").write_text("# Stashed\n")
    git("stash", "-q", cwd=place)
    error = await given.refuses("COMMITS_ONLY_HERE", workbench.call("discard_worktree", worktree_name="lab"))
    assert error.details["refs"] == ["refs/heads/idea", "refs/stash"]
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    git("fetch", "-q", discarded["bundle"], "refs/*:refs/back/*", cwd=repository)
    assert git("rev-parse", "refs/back/workbench/saved/lab/heads/idea", cwd=repository) == idea
    assert git("show", "refs/back/workbench/saved/lab/stash:README.md", cwd=repository) == "# Stashed"
    assert git("for-each-ref", "refs/workbench", "refs/heads/idea", "refs/stash", cwd=repository) == ""


async def test_a_worktree_in_which_git_does_not_work_is_kept_as_it_is(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    (place / "draft.txt").write_text("a draft\n")
    (repository / ".aiswarm" / "repositories" / "lab" / "HEAD").write_text("nonsense")
    with pytest.raises(WorkbenchError):
        await workbench.call("discard_worktree", worktree_name="lab")
    assert (await worktree_row(workbench))["problem"]
    discarded = await workbench.call("discard_worktree", worktree_name="lab", force=True)
    assert (Path(discarded["bundle"]) / "files" / "draft.txt").read_text() == "a draft\n"
    assert not place.exists()


async def test_a_worktree_without_files_is_discarded_without_a_bundle_if_its_branch_is_elsewhere(
    workbench: Workbench, repository: Path
) -> None:
    place = await given.worktree(workbench)
    tip = commit(place)
    await worktree_row(workbench)
    shutil.rmtree(place)
    worktree = await worktree_row(workbench)
    assert (worktree["commit"], worktree["status"]) == (tip, "active")
    assert worktree["problem"].startswith("WORKTREE_GONE")
    await given.refuses("WORKTREE_GONE", workbench.call("update_worktree", worktree_name="lab"))
    git("branch", "kept", "wb/lab/main", cwd=repository)
    discarded = await workbench.call("discard_worktree", worktree_name="lab", delete_branch=True)
    assert (discarded["status"], discarded["bundle"], discarded["branch_kept"]) == ("discarded", None, False)
    assert git("branch", "--list", "wb/*", cwd=repository) == ""
    assert git("worktree", "list", cwd=repository).count("\n") == 0
    assert git("rev-parse", "kept", cwd=repository) == tip


@pytest.mark.long
async def test_uncommitted_files_of_a_merged_worktree_are_saved(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    commit(place)
    question = await ask(workbench)
    (place / "late.txt").write_text("late\n")
    await workbench.call("approve", approval_id=question)
    assert not place.exists()
    (saved,) = (await workbench.call("list_events", kinds=["worktree.saved"]))["events"]
    ref = "refs/workbench/saved/lab/uncommitted"
    git("fetch", "-q", saved["data"]["bundle"], f"{ref}:refs/heads/back", cwd=repository)
    assert git("show", "back:late.txt", cwd=repository) == "late"
