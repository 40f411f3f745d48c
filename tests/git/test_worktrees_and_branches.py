"""Worktrees made and removed, on real repositories that are as hostile as a worker could make them."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.git.parts import Picture, add, commit, git, own, records, remove, untouched, write
from tests.given import refused
from workbench.errors import Conflict
from workbench.git import Repository


def test_a_worktree_has_the_files_of_its_start_and_its_own_branch(root: Path, repo: Repository, place: Path) -> None:
    first = git(root, "rev-parse", "HEAD")
    later = commit(root, {"shared": "4\n"})
    assert add(repo, place / "a", "wb/a/main", "main") == later
    assert add(repo, place / "b", "wb/b/main", first) == first
    assert (place / "a" / "shared").read_text() == "4\n"
    assert git(place / "b", "symbolic-ref", "HEAD") == "refs/heads/wb/b/main"
    assert git(place / "b", "status", "--porcelain") == ""
    assert "Created from main" in git(root, "reflog", "wb/a/main")


def test_a_worktree_may_start_at_a_tag_a_remote_branch_or_a_short_id(root: Path, repo: Repository, place: Path) -> None:
    first = git(root, "rev-parse", "HEAD")
    git(root, "tag", "--annotate", "--message=x", "v1")
    git(root, "update-ref", "refs/remotes/origin/far", first)
    for number, start in enumerate(("v1", "origin/far", first[:12])):
        assert add(repo, place / str(number), f"b{number}", start) == first
    assert git(root, "config", "--get-regexp", r"^branch\.", ok=(1,)) == ""


def test_a_start_that_is_no_plain_name_or_a_file_is_not_found(root: Path, repo: Repository, place: Path) -> None:
    before = Picture.of(root)
    file = git(root, "rev-parse", "HEAD:shared")
    revisions = ("main~0", "main^{commit}", "main@{0}", "@{-1}", "@", ":/first", "main..main")
    for start in (*revisions, "missing", "", "-f", "main\0", file):
        refused("BRANCH_NOT_FOUND", add, repo, place / "w", "work", start)
    assert Picture.of(root) == before


def test_a_branch_that_exists_or_is_in_the_way_is_not_replaced(root: Path, repo: Repository, work: Path) -> None:
    git(root, "branch", "a/b/c")
    before = Picture.of(root)
    for name, in_the_way in {"work": "work", "work/below": "work", "main/below": "main", "a/b": "a/b/c"}.items():
        error = refused("BRANCH_EXISTS", add, repo, work.parent / "x", name, "main")
        assert error.details["branch"] == in_the_way
        assert not (work.parent / "x").exists()
    assert Picture.of(root) == before


TAKEN = {
    "directory": lambda path: write(path, {"mine": "mine"}),
    "empty directory": lambda path: path.mkdir(),
    "file": lambda path: path.write_text("mine"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_path_that_is_taken_is_left_alone(root: Path, repo: Repository, place: Path, taken: str) -> None:
    place.mkdir(parents=True)
    TAKEN[taken](place / "w")
    for path in (place / "w", *([place / "w" / "below"] if taken == "file" else [])):
        untouched(root, "WORKTREE_PATH_TAKEN", add, repo, path, "work", "main")
    assert os.path.lexists(place / "w")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_path_that_cannot_be_made_is_reported(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    refused("WORKTREE_PATH_UNUSABLE", add, repo, tmp_path / "locked" / "w", "work", "main")
    assert repo.resolve("work") is None


@pytest.mark.parametrize("code", ["GIT_FAILED", "GIT_TIMEOUT"])
def test_a_checkout_that_fails_or_hangs_leaves_nothing(root: Path, repo: Repository, place: Path, code: str) -> None:
    commit(root, {"large.bin": "a\n"})
    name = git(root, "rev-parse", "HEAD:large.bin")
    (blob := root / ".git" / "objects" / name[:2] / name[2:]).unlink()
    if code == "GIT_TIMEOUT":
        os.mkfifo(blob)  # git waits for somebody who writes to it
        repo = replace(repo, checkout_limit=0.5)
    untouched(root, code, add, repo, place / "w", "work", "main")
    assert ((place / "w").exists(), records(root)) == (False, [])


@pytest.mark.parametrize(
    ("path", "branch", "code"), [("{}", "work", "BRANCH_EXISTS"), ("w", "work{}", "WORKTREE_PATH_TAKEN")]
)
def test_one_of_many_concurrent_additions_gets_the_branch_or_path(
    root: Path, repo: Repository, place: Path, path: str, branch: str, code: str
) -> None:
    def make(number: int) -> str:
        try:
            add(repo, place / path.format(number), branch.format(number), "main")
        except Conflict as error:
            return error.code
        return "made"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(make, range(8)))
    assert results == [code] * 7 + ["made"]
    assert len(list(place.iterdir())) == len(records(root)) == 1
    assert git(root, "for-each-ref", "--format=%(objectname)", "refs/heads/work*") == repo.resolve("main")


@pytest.mark.parametrize("locked", [False, True])
def test_a_stale_record_of_a_worktree_is_replaced(root: Path, repo: Repository, work: Path, locked: bool) -> None:
    if locked:
        git(root, "worktree", "lock", str(work))
    shutil.rmtree(work)
    shutil.rmtree(own(work))
    add(repo, work, "again", "work")
    assert (work / "new").read_text() == "new\n"
    assert git(root, "worktree", "list").count("\n") == 1


def test_removing_a_worktree_keeps_its_branch(root: Path, repo: Repository, work: Path) -> None:
    write(work, {"untracked": "", "x.ignored": "", "new": "changed"})
    made = repo.resolve("work")
    remove(repo, work)
    assert not work.exists()
    assert (records(root), repo.resolve("work")) == ([], made)
    remove(repo, work)
    add(repo, work, "again", "work")


LEFT = {
    "record": lambda root, work: shutil.rmtree(work),
    "locked record": lambda root, work: (git(root, "worktree", "lock", str(work)), shutil.rmtree(work)),
    "directory": lambda root, work: shutil.rmtree(root / ".git" / "worktrees" / "w"),
    "directory without .git": lambda root, work: (work / ".git").unlink(),
}


@pytest.mark.parametrize("left", LEFT)
def test_the_remains_of_a_broken_worktree_are_removed(root: Path, repo: Repository, work: Path, left: str) -> None:
    LEFT[left](root, work)
    remove(repo, work)
    assert (work.exists(), records(root)) == (False, [])


def test_other_worktrees_stay_also_those_that_are_away(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    for name in ("near", "far", "w"):
        git(root, "worktree", "add", "--quiet", str(tmp_path / name))
    for name in ("far", "w"):
        (tmp_path / name).rename(tmp_path / f"{name} unplugged")
    add(repo, place / "w", "work", "main")
    assert records(root) == ["far", "near", "w", "w1"]
    remove(repo, place / "w")
    assert records(root) == ["far", "near", "w"]


def test_two_worktrees_of_the_same_name_in_one_repository_are_told_apart(root: Path, repo: Repository) -> None:
    one, other = (root / part / ".aiswarm" / "worktrees" / "w" for part in ("one", "other"))
    add(repo, one, "one")
    add(repo, other, "other")
    remove(repo, other)
    assert git(one, "symbolic-ref", "HEAD") == "refs/heads/one"
    assert records(root) == ["w"]
    add(repo, other, "again")
    remove(repo, one)
    assert git(root, "worktree", "list").count("\n") == 1
    assert other.exists()


def test_a_link_in_place_of_a_worktree_is_not_followed(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    git(root, "worktree", "add", "--quiet", str(tmp_path / "persons"))
    place.mkdir(parents=True)
    (place / "w").symlink_to(tmp_path / "persons")
    remove(repo, place / "w")
    assert not (place / "w").is_symlink()
    assert git(tmp_path / "persons", "status", "--porcelain") == ""


@pytest.mark.parametrize("path", ["", "..", ".git", "../repo", "link/repo"])
def test_the_main_checkout_is_never_removed(root: Path, repo: Repository, tmp_path: Path, path: str) -> None:
    (root / "link").symlink_to(tmp_path)
    refused("NOT_A_WORKTREE", remove, repo, root / path)
    assert repo.current_branch() == "main"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete everywhere")
def test_a_worktree_that_cannot_be_removed_is_reported(repo: Repository, work: Path) -> None:
    work.parent.chmod(0o500)
    try:
        refused("WORKTREE_NOT_REMOVED", remove, repo, work)
    finally:
        work.parent.chmod(0o700)
