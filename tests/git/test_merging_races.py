"""Merging while somebody else moves, edits or locks the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.git.parts import ANNA, Picture, commit, filtering, git, inside, log, racing, untouched
from tests.given import refused
from workbench.git import Repository

pytestmark = pytest.mark.long


def test_a_target_that_moves_during_the_merge_is_not_set_back(root: Path, repo: Repository, work: Path) -> None:
    git(root, "branch", "other")
    racing(root, work, "main", "git update-ref refs/heads/other refs/heads/rival")
    git(root, "checkout", "--quiet", "other")
    git(root, "merge", "--quiet", "main")
    git(root, "branch", "rival", commit(root, {"kept": "rival\n"}))
    git(root, "reset", "--quiet", "--hard", "main")
    git(root, "checkout", "--quiet", "main")
    refused("TARGET_MOVED", repo.integrate, "work", "other", "no", ANNA)
    assert repo.resolve("other") == repo.resolve("rival")


def test_a_checked_out_target_that_moves_meanwhile_is_not_set_back(root: Path, repo: Repository, work: Path) -> None:
    racing(root, work, "main", "git commit --quiet --allow-empty --message rival")
    git(root, "config", "user.name", "pat")
    git(root, "config", "user.email", "pat")
    old = repo.resolve("main")
    refused("TARGET_MOVED", repo.integrate, "work", "main", "no", ANNA)
    assert log(root).startswith("rival|")
    assert git(root, "rev-parse", "main^") == old
    assert git(root, "status", "--porcelain") == ""


def test_a_checkout_that_leaves_the_target_meanwhile_stays_there(root: Path, repo: Repository, work: Path) -> None:
    git(root, "branch", "elsewhere")
    racing(root, work, "main", "git checkout --quiet elsewhere")
    before = repo.resolve("main")
    refused("TARGET_MOVED", repo.integrate, "work", "main", "no", ANNA)
    assert repo.current_branch() == "elsewhere"
    assert repo.resolve("main") == before
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_made_at_the_last_moment_does_not_keep_the_merge_from_the_target(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    switch = "git symbolic-ref HEAD refs/heads/just-made"
    filtering(root, f'echo >> {runs}; if [ "$(wc -l < {runs})" = 2 ]; then {switch}; fi; cat')
    commit(work, {".gitattributes": "*.f filter=f\n", "b.f": "b\n"})
    runs.unlink(missing_ok=True)
    git(root, "branch", "just-made")
    done = repo.integrate("work", "main", "merge", ANNA)
    assert repo.current_branch() == "just-made"
    assert repo.resolve("main") == repo.resolve("just-made") == done.commit
    assert git(root, "status", "--porcelain") == ""


def test_an_edit_during_the_merge_is_kept(root: Path, repo: Repository, work: Path) -> None:
    racing(root, work, "main", "echo edited > kept")
    commit(work, {"kept": "theirs\n"})
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["kept"]
    assert (root / "kept").read_text() == "edited\n"


def test_a_locked_index_is_reported_and_nothing_changes(root: Path, repo: Repository, work: Path) -> None:
    before = Picture.of(root)
    (root / ".git" / "index.lock").touch()
    error = refused("GIT_FAILED", repo.integrate, "work", "main", "no", ANNA)
    assert "index.lock" in error.details["stderr"]
    (root / ".git" / "index.lock").unlink()
    assert Picture.of(root) == before


@pytest.mark.parametrize(("smudge", "code"), [("exit 1", "GIT_FAILED"), ("sleep 600", "GIT_TIMEOUT")])
def test_a_filter_that_gives_up_leaves_the_checkout_as_it_was(
    root: Path, repo: Repository, work: Path, smudge: str, code: str
) -> None:
    filtering(root, f'text=$(cat); case "$text" in *bad*) {smudge};; esac; echo "$text"')
    inside(work).merge(git(root, "rev-parse", "main"), "merge", ANNA)
    commit(work, {"a.f": "bad\n", "b": "b\n", "c.f": "bad\n"})
    untouched(root, code, replace(repo, checkout_limit=0.5).integrate, "work", "main", "no", ANNA)
    assert not list((root / ".git").glob("*.lock"))
    assert not list((root / ".git").glob("tmp*"))


def test_git_is_ended_so_that_it_can_remove_its_locks(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    filtering(root, f'echo >> {runs}; if [ "$(wc -l < {runs})" = 2 ]; then sleep 600; fi; cat')
    commit(work, {".gitattributes": "*.f filter=f\n", "b.f": "b\n"})
    runs.unlink(missing_ok=True)
    refused("GIT_TIMEOUT", replace(repo, checkout_limit=1.0).integrate, "work", "main", "no", ANNA)
    assert not list((root / ".git").rglob("*.lock"))
    assert git(root, "rev-parse", "main") != git(root, "rev-parse", "work")
