"""A worktree, from inside."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from tests.git.parts import ANNA, HOSTILE_FILES, Picture, bring, commit, git, inside, log, own, write
from workbench.errors import Unavailable
from workbench.git import Repository

pytestmark = pytest.mark.long


def test_everything_but_ignored_files_is_committed_and_nothing_new_is_no_commit(repo: Repository, work: Path) -> None:
    before = repo.resolve("work")
    os.utime(work / "new", (1, 1))
    write(work, {"x.ignored": ""})
    assert inside(work).commit_all("nothing", ANNA) is None
    assert git(work, "rev-parse", "HEAD") == before
    write(work, dict.fromkeys(HOSTILE_FILES, "x") | {"shared": "changed\n"})
    (work / "kept").unlink()
    commit_id = inside(work).commit_all("All\n\nof it", ANNA)
    assert commit_id == bring(work) == repo.resolve("work")
    assert git(work, "status", "--porcelain", "--ignored") == "!! x.ignored"
    changed = {change.path for change in repo.diff_stat("main", "work")}
    assert changed == {*HOSTILE_FILES, "shared", "kept", "new"}
    assert log(work, "work") == f"All|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"


@pytest.mark.parametrize("message", ["", "# not a comment", "a\0b", "\ud800", "-m"])
def test_any_text_can_be_a_commit_message(work: Path, message: str) -> None:
    write(work, {"file": ""})
    assert inside(work).commit_all(message, ANNA)
    expected = message.replace("\0", "").encode("utf-8", "replace").decode()
    assert git(work, "log", "-1", "--format=%B").strip() == expected


def test_a_half_done_merge_is_concluded_and_a_first_commit_made(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"new": "ours\n"})
    git(work, "merge", "--quiet", git(root, "rev-parse", "main"), ok=(1,))
    write(work, {"new": "both\n"})
    assert inside(work).commit_all("resolved", ANNA) == bring(work)
    assert repo.is_ancestor("main", "work")
    assert git(work, "show", "work:new") == "both"
    commit(root, {"other": "x\n"})
    git(work, "merge", "--quiet", "--no-commit", "-s", "ours", git(root, "rev-parse", "main"))
    assert inside(work).commit_all("ours", ANNA) == bring(work)
    assert repo.is_ancestor("main", "work")
    git(work, "checkout", "--quiet", "--orphan", "fresh")
    assert inside(work).commit_all("fresh", ANNA)
    assert git(work, "rev-list", "--count", "fresh") == "1"


@pytest.mark.parametrize("operation", ["edits", "merge", "rebase", "cherry-pick", "lock", "nested repository"])
def test_discarding_goes_back_to_the_last_commit(root: Path, work: Path, operation: str) -> None:
    last = git(work, "rev-parse", "HEAD")
    commit(root, {"new": "ours\n"})
    write(work, {"x.ignored": "kept"})
    match operation:
        case "edits":
            write(work, dict.fromkeys(HOSTILE_FILES, "x") | {"new": "changed"})
            git(work, "add", "--all")
            (work / "kept").unlink()
        case "merge":
            git(work, "merge", "--quiet", git(root, "rev-parse", "main"), ok=(1,))
        case "rebase":
            git(work, "rebase", "--quiet", git(root, "rev-parse", "main"), ok=(1,))
        case "cherry-pick":
            git(work, "cherry-pick", git(root, "rev-parse", "main"), ok=(1,))
        case "lock":
            (own(work) / "index.lock").touch()
            write(work, {"new": "changed"})
        case _:
            git(work, "init", "--quiet", "inner")
            write(work / "inner", {"file": ""})
    inside(work).discard_changes()
    assert git(work, "status", "--porcelain", "--ignored") == "!! x.ignored"
    assert git(work, "rev-parse", "HEAD") == last
    assert git(work, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert not any(own(work).glob("*-merge"))
    assert "You are currently" not in git(work, "status")


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/work.lock"])
def test_the_lock_of_a_git_that_was_killed_does_not_keep_work_from_being_committed(work: Path, lock: str) -> None:
    base = git(work, "rev-parse", "HEAD")
    (own(work) / lock).touch()
    write(work, {"more": ""})
    assert inside(work).commit_all("more", ANNA)
    (own(work) / lock).touch()
    assert inside(work).keep_all("refs/workbench/attempts/1/1", [], "kept", ANNA)
    (own(work) / lock).touch()
    inside(work).return_to("work", base)
    assert git(work, "rev-parse", "HEAD") == base


def test_locks_are_not_removed_through_a_link(work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (mine := tmp_path / "elsewhere" / "mine.lock").touch()
    (own(work) / "refs" / "link").symlink_to(tmp_path / "elsewhere")
    write(work, {"more": ""})
    inside(work).commit_all("more", ANNA)
    assert mine.exists()


@pytest.mark.parametrize("lost", [".git", "repository", "worktree"])
@pytest.mark.parametrize("action", ["commit", "discard"])
def test_a_worktree_that_lost_a_part_does_not_reach_the_main_one(
    root: Path, work: Path, action: str, lost: str
) -> None:
    if lost == ".git":
        (work / ".git").unlink()
    else:
        shutil.rmtree(work if lost == "worktree" else own(work))
    write(root, {"shared": "uncommitted\n"})
    before = Picture.of(root)
    with suppress(Unavailable) if lost == ".git" else pytest.raises(Unavailable, match="GIT_FAILED"):
        inside(work).commit_all("no", ANNA) if action == "commit" else inside(work).discard_changes()
    assert Picture.of(root) == before


def test_a_commit_in_a_worktree_writes_no_object_to_the_persons_repository(root: Path, work: Path) -> None:
    write(work, {"more": ""})
    commit_id = inside(work).commit_all("more", ANNA)
    assert commit_id is not None
    assert (own(work) / "objects" / commit_id[:2] / commit_id[2:]).exists()
    assert not (root / ".git" / "objects" / commit_id[:2] / commit_id[2:]).exists()
