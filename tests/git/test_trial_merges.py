"""Integrating a merge that was tried out first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.parts import ANNA, Picture, add, commit, git, inside, records, remove, untouched
from tests.given import refused
from workbench.git import Integration, Repository

pytestmark = pytest.mark.long


@pytest.mark.parametrize("target", ["main", "other"])
@pytest.mark.parametrize("fast_forward", [True, False])
def test_what_was_tried_out_is_what_is_integrated(
    root: Path, repo: Repository, work: Path, target: str, fast_forward: bool
) -> None:
    git(root, "branch", "other")
    before = Picture.of(root)
    made = repo.merge_commit("work", target, "Integrate w", ANNA, fast_forward=fast_forward)
    assert Picture.of(root) == before
    assert (made == repo.resolve("work")) == fast_forward
    done = repo.integrate("work", target, "else", ANNA, merged=made, fast_forward=fast_forward)
    assert done == Integration(made, "fast_forward" if fast_forward else "merged")
    assert repo.resolve(target) == made
    assert git(root, "status", "--porcelain") == ""
    assert repo.integrate("work", target, "again", ANNA, merged=made).kind == "already_merged"


def test_what_was_tried_out_on_an_older_target_is_refused(root: Path, repo: Repository, work: Path) -> None:
    made = repo.merge_commit("work", "main", "merge", ANNA)
    commit(root, {"kept": "later\n"})
    untouched(root, "TARGET_MOVED", repo.integrate, "work", "main", "merge", ANNA, merged=made)
    again = repo.merge_commit("work", "main", "merge", ANNA)
    assert repo.integrate("work", "main", "merge", ANNA, merged=again).commit == again


@pytest.mark.parametrize("forged", ["other files", "other parents", "the source", "the target", "missing", "an option"])
def test_what_is_not_the_merge_is_refused(root: Path, repo: Repository, work: Path, forged: str) -> None:
    tree, main, source = git(root, "rev-parse", "main^{tree}", "main", "work").split()
    merged = git(root, "rev-parse", f"{repo.merge_commit('work', 'main', 'merge', ANNA)}^{{tree}}")
    commits = {
        "other files": lambda: git(root, "commit-tree", "-m", "x", "-p", main, "-p", source, tree),
        "other parents": lambda: git(root, "commit-tree", "-m", "x", "-p", source, "-p", main, merged),
        "the source": lambda: source,
        "the target": lambda: main,
        "missing": lambda: "1" * 40,
        "an option": lambda: "--all",
    }
    untouched(root, "TARGET_MOVED", repo.integrate, "work", "main", "merge", ANNA, merged=commits[forged]())


def test_a_merge_in_conflict_cannot_be_tried_out(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"new": "ours\n"})
    error = refused("MERGE_CONFLICT", repo.merge_commit, "work", "main", "merge", ANNA)
    assert error.details["files"] == ["new"]
    assert repo.merge_commit("main", "main", "merge", ANNA) == repo.resolve("main")


def test_a_worktree_without_a_branch_holds_what_is_tried(root: Path, repo: Repository, work: Path, place: Path) -> None:
    made = repo.merge_commit("work", "main", "merge", ANNA)
    assert add(repo, place / "gate", None, made) == made
    assert inside(place / "gate").head() == (None, made)
    assert (place / "gate" / "new").read_text() == "new\n"
    git(root, "gc", "--quiet", "--prune=now")
    assert git(root, "cat-file", "-t", made) == "commit"
    assert git(place / "gate", "status", "--porcelain") == ""
    remove(repo, place / "gate")
    assert records(root) == ["w"]
