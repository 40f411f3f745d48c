"""The files of submodules and of Git LFS in worktrees, as commands in their boxes find and change them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import given
from tests.conftest import git
from tests.git.test_lfs import stored
from tests.git.test_submodules import library, link
from tests.services.worktrees.lab import worktree_row
from workbench.app import Workbench
from workbench.git import CommitIdentity, Repository
from workbench.services.worktrees.places import WorktreeLocation, checkout_of

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_git_in_the_box_works_in_submodules_and_what_it_commits_there_is_integrated(
    workbench: Workbench, repository: Path, tmp_path: Path
) -> None:
    inner = library(tmp_path / "inner", {"g": "g\n"})
    link(repository, library(tmp_path / "outer", {"f": "f\n"}, sub=inner), "lib")
    created = await workbench.call("create_worktree", name="lab")
    place = Path(created["path"])
    assert created["empty_submodules"] == []
    assert (await worktree_row(workbench))["dirty"] == []
    settings, person = workbench.settings, Repository.open(repository)
    location = WorktreeLocation.of(settings, "lab")
    checkout = checkout_of(settings, person, location)
    assert checkout.ask("submodule", "status", "--recursive").text.count("\n") == 1
    (place / "lib/sub/g").write_text("changed\n")
    assert (await worktree_row(workbench))["dirty"] == ["lib"]
    checkout.commit_all("work", CommitIdentity("ada", "ada@localhost"))
    assert (await worktree_row(workbench))["dirty"] == []
    await workbench.call("discard_worktree", worktree_name="lab")
    git("merge", "--quiet", "wb/lab/main", cwd=repository)
    git("submodule", "--quiet", "update", "--recursive", "--no-fetch", cwd=repository)
    assert (repository / "lib/sub/g").read_text() == "changed\n"


@pytest.mark.long
async def test_a_branch_that_only_a_submodules_own_repository_has_outlives_the_worktree(
    workbench: Workbench, repository: Path, tmp_path: Path
) -> None:
    inner = library(tmp_path / "inner", {"g": "g\n"})
    link(repository, library(tmp_path / "outer", {"f": "f\n"}, sub=inner), "lib")
    place = Path((await workbench.call("create_worktree", name="lab"))["path"])
    for path in ("lib/sub", "lib"):
        git("switch", "-q", "-c", "try", cwd=place / path)
        (place / path / "try").write_text("try\n")
        git("add", "try", cwd=place / path)
        git("commit", "-q", "-m", "Try", cwd=place / path)
        git("switch", "-q", "--detach", "HEAD^", cwd=place / path)
    assert (await worktree_row(workbench))["dirty"] == []
    error = await given.refuses("COMMITS_ONLY_HERE", workbench.call("discard_worktree", worktree_name="lab"))
    assert error.details["refs"] == ["lib: refs/heads/try", "sub: refs/heads/try"]
    await workbench.call("discard_worktree", worktree_name="lab", force=True)
    assert not place.exists()
    for modules in (".git/modules/lib", ".git/modules/lib/modules/sub"):
        (saved,) = git(
            "for-each-ref", "--format=%(refname)", "refs/workbench/saved/lab", cwd=repository / modules
        ).split()
        assert git("show", f"{saved}:try", cwd=repository / modules) == "try"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs git-lfs")
async def test_contents_of_git_lfs_are_read_in_the_box_and_missing_ones_are_named(
    workbench: Workbench, repository: Path
) -> None:
    git("lfs", "install", "--local", cwd=repository)
    (repository / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    for name in ("a", "lost"):
        (repository / f"{name}.bin").write_text(f"{name}\n")
    git("add", "--all", cwd=repository)
    git("commit", "-q", "-m", "large", cwd=repository)
    stored(repository / ".git", "lost\n").unlink()
    created = await workbench.call("create_worktree", name="lab")
    assert created["lfs_pointers"] == ["lost.bin"]
    (problem,) = (await workbench.call("get_workplace", worktree="lab"))["problems"]
    assert "only pointers: lost.bin." in problem
    assert (Path(created["path"]) / "a.bin").read_text() == "a\n"
    assert (await worktree_row(workbench))["dirty"] == []
