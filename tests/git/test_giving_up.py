"""Giving up a branch: commits that would be lost, the bundle that keeps them, and uncommitted work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.git.parts import ANNA, HOSTILE_FILES, MEGABYTE, bring, commit, git, inside, log, own, remove, write
from tests.given import refused
from workbench.git import Repository

pytestmark = pytest.mark.long


def test_commits_that_nothing_else_reaches_are_counted(root: Path, repo: Repository, work: Path) -> None:
    assert repo.only_in("work") == 1
    git(root, "checkout", "--quiet", "--detach", "work")
    assert repo.only_in("work") == 0
    git(root, "checkout", "--quiet", "main")
    commit(work, {"more": ""})
    assert repo.only_in("work") == 2
    git(root, "branch", "copy", "work~1")
    assert (repo.only_in("work"), repo.only_in("work", besides=["copy"])) == (1, 2)
    git(root, "tag", "--annotate", "--message=x", "kept", "work")
    assert (repo.only_in("work"), repo.only_in("main")) == (0, 0)
    refused("BRANCH_NOT_FOUND", repo.only_in, "missing")


@pytest.mark.parametrize("name", ["a[b".replace("[", "{"), "refs/heads/x", "ünï"])
def test_the_name_of_a_branch_is_not_taken_for_a_pattern(root: Path, repo: Repository, name: str) -> None:
    git(root, "branch", name)
    lost = commit(root, {"x": ""})
    git(root, "update-ref", f"refs/heads/{name}", lost)
    git(root, "reset", "--quiet", "--hard", "HEAD~1")
    full = f"refs/heads/{name}" if name.startswith("refs/") else name
    assert repo.only_in(full) == 1


def test_a_bundle_restores_deleted_branches_into_a_fresh_clone(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    commit_id = commit(work, {"more": "more\n"})
    write(work, {"new": "uncommitted\n", "untracked": "untracked\n", "x.ignored": ""})
    saved = inside(work).save_all("refs/workbench/saved", "What was not committed", ANNA)
    kept = repo.import_ref(inside(work), "refs/workbench/saved", into="refs/workbench/trash/w", max_bytes=MEGABYTE)
    assert kept == saved

    trash = root / ".aiswarm" / "trash" / "w.bundle"
    repo.write_bundle(trash, ["work", "refs/workbench/trash/w"])
    remove(repo, work)
    repo.delete_branch("work", commit_id)
    repo.delete_branch("refs/workbench/trash/w", kept)
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "--quiet", "--prune=now")
    git(root, "cat-file", "-e", commit_id, ok=(1,))
    assert git(root, "for-each-ref", "--format=%(refname)") == "refs/heads/main"

    git(tmp_path, "clone", "--quiet", str(root), "fresh")
    fresh = tmp_path / "fresh"
    git(fresh, "bundle", "verify", "--quiet", str(trash))
    git(fresh, "fetch", "--quiet", str(trash), "refs/heads/*:refs/heads/*", "refs/workbench/*:refs/workbench/*")
    assert git(fresh, "rev-parse", "work") == commit_id
    assert git(fresh, "show", "refs/workbench/trash/w:untracked") == "untracked"
    assert git(fresh, "show", "refs/workbench/trash/w:new") == "uncommitted"
    assert git(fresh, "ls-tree", "refs/workbench/trash/w", "x.ignored") == ""
    assert list(trash.parent.iterdir()) == [trash]


def test_a_bundle_that_cannot_be_written_leaves_no_file(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"file": ""})
    refused("BUNDLE_NOT_WRITTEN", repo.write_bundle, tmp_path / "file" / "b", ["work"])
    refused("BRANCH_NOT_FOUND", repo.write_bundle, tmp_path / "b", ["work", "missing"])
    assert not list(tmp_path.glob("*b"))
    git(root, "branch", "copy", "work")
    repo.write_bundle(tmp_path / "b", ["work"])
    assert git(root, "bundle", "list-heads", str(tmp_path / "b")) == f"{repo.resolve('work')} refs/heads/work"


def test_a_branch_that_moved_is_not_deleted(repo: Repository, work: Path) -> None:
    before = str(repo.resolve("work"))
    commit_id = commit(work, {"more": ""})
    error = refused("BRANCH_MOVED", repo.delete_branch, "work", before)
    assert error.details["commit"] == commit_id
    repo.delete_branch("work", commit_id)
    repo.delete_branch("work", commit_id)
    assert repo.resolve("work") is None


# -- uncommitted work, from inside


def test_uncommitted_work_is_kept_beside_the_branch(work: Path) -> None:
    last = git(work, "rev-parse", "HEAD")
    assert inside(work).save_all("refs/workbench/saved", "Saved", ANNA) is None
    git(work, "rev-parse", "--verify", "--quiet", "refs/workbench/saved", ok=(1,))
    write(work, dict.fromkeys(HOSTILE_FILES, "x\n") | {"new": "changed\n", "staged": "s\n"})
    git(work, "add", "staged")
    (work / "kept").unlink()
    status, index = git(work, "status", "--porcelain"), (own(work) / "index").read_bytes()
    saved = inside(work).save_all("refs/workbench/saved", "Saved", ANNA)
    assert saved == git(work, "rev-parse", "refs/workbench/saved")
    assert git(work, "rev-parse", f"{saved}^") == last == git(work, "rev-parse", "work")
    assert (git(work, "status", "--porcelain"), (own(work) / "index").read_bytes()) == (status, index)
    tracked = git(work, "ls-tree", "-r", "-z", "--name-only", str(saved)).split("\0")
    assert {*tracked} - {""} == {*HOSTILE_FILES, "new", "staged", "shared", ".gitignore"}
    assert not list(own(work).glob("*.index"))


STATES = {
    "merge": lambda root, work: git(work, "merge", "--quiet", commit(root, {"new": "ours\n"}), ok=(1,)),
    "unborn": lambda root, work: git(work, "checkout", "--quiet", "--orphan", "fresh"),
    "detached": lambda root, work: git(work, "checkout", "--quiet", "--detach"),
    "locked": lambda root, work: (own(work) / "index.lock").touch(),
    "damaged": lambda root, work: (own(work) / "index").write_bytes(b"DIRC and nothing else"),
    "without an index": lambda root, work: (own(work) / "index").unlink(),
}


@pytest.mark.parametrize("state", STATES)
def test_uncommitted_work_is_kept_in_every_state(root: Path, repo: Repository, work: Path, state: str) -> None:
    STATES[state](root, work)
    write(work, {"more": "more\n"})
    assert inside(work).save_all("refs/workbench/saved", "Saved", ANNA)
    repo.import_ref(inside(work), "refs/workbench/saved", into="refs/workbench/x", max_bytes=MEGABYTE)
    assert git(root, "show", "refs/workbench/x:more") == "more"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_was_told_to_overlook_are_kept(work: Path, flag: str) -> None:
    git(work, "update-index", flag, "kept")
    write(work, {"kept": "changed\n"})
    saved = inside(work).save_all("refs/workbench/saved", "Saved", ANNA)
    assert git(work, "show", f"{saved}:kept") == "changed"


def overlooked(work: Path) -> Path:
    """A file that has changed without its size, and with the times that the index has."""
    kept = work / "kept"
    hours_ago = kept.stat().st_mtime_ns - 7_200_000_000_000
    os.utime(kept, ns=(hours_ago, hours_ago))
    git(work, "config", "core.trustctime", "false")
    git(work, "update-index", "--refresh")
    kept.write_text(kept.read_text().upper())
    os.utime(kept, ns=(hours_ago, hours_ago))
    return kept


def test_files_that_have_not_changed_are_not_read_again(work: Path) -> None:
    """A change that only its content shows is not seen: nobody has looked at that."""
    overlooked(work)
    assert inside(work).save_all("refs/workbench/saved", "Saved", ANNA) is None


def test_a_change_in_the_instant_in_which_git_has_looked_is_kept(work: Path) -> None:
    instant = overlooked(work).stat().st_mtime_ns
    os.utime(own(work) / "index", ns=(instant, instant))
    saved = inside(work).save_all("refs/workbench/saved", "Saved", ANNA)
    assert git(work, "show", f"{saved}:kept") == "KEPT"


def test_uncommitted_changes_are_shown_as_text(work: Path) -> None:
    write(work, {"new": "changed\n", "untracked": "u\n"})
    (work / "kept").unlink()
    (own(work) / "index.lock").touch()
    found = {file.path: file for file in inside(work).dirty_diff(MEGABYTE)}
    assert {path: file.status for path, file in found.items()} == {"new": "M", "untracked": "A", "kept": "D"}
    assert "-new\n+changed\n" in str(found["new"].patch)
    assert inside(work).uncommitted() == ["kept", "new", "untracked"]


# -- bringing the person's commits in


def test_a_commit_of_the_persons_comes_in(root: Path, work: Path) -> None:
    write(work, {"uncommitted": "stays\n"})
    ours = commit(root, {"kept": "changed\n"})
    assert inside(work).merge(ours, "Bring main in\n\nBecause.", ANNA) == []
    branch, made = inside(work).head()
    assert (branch, git(work, "rev-parse", "HEAD^2")) == ("work", ours)
    assert log(work, "work") == f"Bring main in|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"
    assert ((work / "kept").read_text(), (work / "uncommitted").read_text()) == ("changed\n", "stays\n")
    assert inside(work).merge(ours, "again", ANNA) == []
    assert inside(work).head() == ("work", made) == ("work", bring(work))


def test_conflicts_are_listed_and_nothing_is_changed(root: Path, work: Path) -> None:
    write(work, {"shared": "uncommitted\n"})
    ours = commit(root, {"new": "ours\n", "kept": "ours\n"})
    before = (git(work, "status", "--porcelain"), git(work, "rev-parse", "HEAD"))
    assert inside(work).merge(ours, "merge", ANNA) == ["new"]
    assert (git(work, "status", "--porcelain"), git(work, "rev-parse", "HEAD")) == before
    assert (work / "shared").read_text() == "uncommitted\n"


IN_THE_WAY = {
    "changed": lambda work, ours: write(work, {"kept": "mine\n"}),
    "untracked": lambda work, ours: write(work, {"fresh": "mine\n"}),
    "staged": lambda work, ours: (write(work, {"staged": "mine\n"}), git(work, "add", "staged")),
    "half done": lambda work, ours: git(work, "merge", "--quiet", "--no-commit", ours),
}


@pytest.mark.parametrize("how", IN_THE_WAY)
def test_uncommitted_work_in_the_way_of_a_merge_is_kept(root: Path, work: Path, how: str) -> None:
    ours = commit(root, {"kept": "ours\n", "fresh": "ours\n"})
    IN_THE_WAY[how](work, ours)
    before = (git(work, "status", "--porcelain"), git(work, "rev-parse", "HEAD"))
    refused("WORKTREE_DIRTY", inside(work).merge, ours, "merge", ANNA)
    assert (git(work, "status", "--porcelain"), git(work, "rev-parse", "HEAD")) == before


def test_head_names_the_branch_and_the_commit_of_a_worktree(work: Path) -> None:
    commit_ = git(work, "rev-parse", "HEAD")
    assert inside(work).head() == ("work", commit_)
    git(work, "checkout", "--quiet", "--detach")
    assert inside(work).head() == (None, commit_)
    git(work, "checkout", "--quiet", "--orphan", "fresh")
    assert inside(work).head() == ("fresh", None)
