"""Merging into a branch that the person may be working on, also with a merge tried first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.git.parts import (
    ANNA,
    HOSTILE_FILES,
    Picture,
    add,
    bring,
    commit,
    git,
    inside,
    log,
    records,
    remove,
    untouched,
    write,
)
from tests.given import refused
from workbench.git import Integration, Repository

pytestmark = pytest.mark.long


def test_a_branch_is_merged_and_the_clean_checkout_follows(root: Path, repo: Repository, work: Path) -> None:
    old, source = git(root, "rev-parse", "main", "work").split()
    write(root, {"untracked": "mine", "x.ignored": "mine"})
    os.utime(root / "shared", (1, 1))  # touched is not dirty
    done = repo.integrate(source, "main", "Integrate w\n\nApproved.\0", ANNA)
    assert done == Integration(git(root, "rev-parse", "main"), "merged")
    assert git(root, "rev-parse", "main^1", "main^2").split() == [old, source]
    assert log(root) == f"Integrate w|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"
    assert git(root, "status", "--porcelain", "--ignored") == "?? untracked\n!! .aiswarm/\n!! x.ignored"
    assert (root / "new").read_text() == "new\n"
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_branch_that_is_not_checked_out_moves_without_the_checkout(root: Path, repo: Repository, work: Path) -> None:
    git(root, "branch", "other")
    write(root, {"shared": "uncommitted\n", "staged": "staged\n"})
    git(root, "add", "staged")
    before = Picture.of(root)
    done = repo.integrate("work", "other", "merge", ANNA)
    after = Picture.of(root)
    assert (after.files, after.status) == (before.files, before.status)
    assert after.refs != before.refs
    assert done == Integration(git(root, "rev-parse", "other"), "merged")
    assert git(root, "show", "other:new") == "new"
    assert log(root, "other").startswith("merge|Anna")


def test_every_branch_can_move_while_the_head_is_detached(root: Path, repo: Repository, work: Path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    write(root, {"shared": "uncommitted\n"})
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"
    assert (root / "shared").read_text() == "uncommitted\n"
    assert not (root / "new").exists()


def test_a_branch_that_is_in_the_target_is_not_merged_again(root: Path, repo: Repository, work: Path) -> None:
    first = repo.integrate("work", "main", "once", ANNA)
    write(root, {"shared": "uncommitted\n"})
    before = Picture.of(root)
    assert repo.integrate("work", "main", "twice", ANNA) == Integration(first.commit, "already_merged")
    assert repo.integrate("main", "main", "self", ANNA).kind == "already_merged"
    assert Picture.of(root) == before


@pytest.mark.parametrize("target", ["main", "other"])
def test_a_fast_forward_is_made_if_asked_for_and_possible(
    root: Path, repo: Repository, work: Path, target: str
) -> None:
    git(root, "branch", "other")
    source = git(root, "rev-parse", "work")
    assert repo.integrate("work", target, "", ANNA, fast_forward=True) == Integration(source, "fast_forward")
    assert git(root, "rev-parse", target) == source
    assert git(root, "status", "--porcelain") == ""
    commit(work, {"more": ""})
    git(root, "checkout", "--quiet", target)
    commit(root, {"kept": "changed on the target\n"})
    assert repo.integrate("work", target, "", ANNA, fast_forward=True).kind == "merged"
    assert ((root / "more").exists(), (root / "kept").read_text()) == (True, "changed on the target\n")
    assert git(root, "status", "--porcelain") == ""


def test_a_conflict_lists_the_files_and_changes_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(work, dict.fromkeys(HOSTILE_FILES, "theirs\n") | {"clean": ""})
    commit(root, dict.fromkeys(HOSTILE_FILES, "ours\n"))
    error = untouched(root, "MERGE_CONFLICT", repo.integrate, "work", "main", "no", ANNA)
    assert sorted(error.details["files"]) == sorted(HOSTILE_FILES)


@pytest.mark.parametrize("how", ["unstaged", "staged", "deleted", "added", "unmerged"])
def test_a_dirty_target_is_refused_and_nothing_changes(root: Path, repo: Repository, work: Path, how: str) -> None:
    if how == "unstaged":
        commit(work, {"kept": "theirs\n"})
    write(root, {"kept": "uncommitted\n"})
    match how:
        case "staged":
            git(root, "add", "kept")
        case "deleted":
            (root / "kept").unlink()
        case "added":
            git(root, "checkout", "--quiet", "kept")
            write(root, {"fresh": ""})
            git(root, "add", "--intent-to-add", "fresh")
        case "unmerged":
            git(root, "stash", "--quiet")
            commit(root, {"kept": "else\n"})
            git(root, "stash", "pop", "--quiet", ok=(1,))
    error = untouched(root, "TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == (["fresh"] if how == "added" else ["kept"])
    assert "Commit or stash" in error.message


@pytest.mark.parametrize("fast_forward", [False, True])
def test_edits_of_files_that_the_merge_does_not_change_stay(
    root: Path, repo: Repository, work: Path, fast_forward: bool
) -> None:
    write(root, {"kept": "a notebook that runs\n"})
    made = repo.integrate("work", "main", "merge", ANNA, fast_forward=fast_forward)
    assert made.kind == ("fast_forward" if fast_forward else "merged")
    assert (root / "kept").read_text() == "a notebook that runs\n"
    assert git(root, "status", "--porcelain").strip() == "M kept"
    assert git(root, "rev-parse", "main") == made.commit


def test_an_edited_attributes_file_blocks_the_merge(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {".gitattributes": ""})
    write(root, {".gitattributes": "* text eol=crlf\n"})
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == [".gitattributes"]


def test_a_dirty_target_names_only_the_files_in_the_way(root: Path, repo: Repository, work: Path) -> None:
    write(root, {"kept": "edited\n", "new": "mine"})
    error = untouched(root, "TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["new"]


IN_THE_WAY = {
    "a file": ({"new": "mine"}, ["new"]),
    "an ignored file": ({"secret.ignored": "mine"}, ["secret.ignored"]),
    "a file for a directory": ({"directory": "mine"}, ["directory"]),
    "a directory for a file": ({"new/mine": "mine"}, ["new"]),
    "a hostile name": ({"-a\nb": "mine"}, ["-a\nb"]),
    "several": ({"new": "mine", "untouched": "", "directory/f": "mine"}, ["directory/f", "new"]),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_an_untracked_file_in_the_way_is_kept_and_named(root: Path, repo: Repository, work: Path, case: str) -> None:
    mine, named = IN_THE_WAY[case]
    write(work, {"directory/f": "theirs", "secret.ignored": "theirs", "-a\nb": "theirs"})
    (work / "kept").unlink()
    write(work, {"kept/inside": "theirs"})
    git(work, "add", "--force", "--all")
    git(work, "commit", "--quiet", "--message", "all")
    bring(work)
    write(root, mine)
    error = untouched(root, "TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == named


def test_an_untracked_link_in_the_way_is_kept(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    commit(work, {"directory/f": "theirs"})
    (tmp_path / "outside").mkdir()
    (root / "directory").symlink_to(tmp_path / "outside")
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["directory"]
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("operation", ["merge", "cherry-pick", "rebase", "bisection"])
def test_an_unfinished_operation_there_is_refused(root: Path, repo: Repository, work: Path, operation: str) -> None:
    commit(root, {"kept": "later\n"})
    git(root, "commit", "--quiet", "--allow-empty", "--message", "last")
    match operation:
        case "rebase":
            git(root, "rebase", "--quiet", "--exec", "false", "HEAD~1", ok=(1,))
        case "bisection":
            git(root, "bisect", "start")
        case _:
            head = f"{operation.upper().replace('-', '_')}_HEAD"
            (root / ".git" / head).write_text(git(root, "rev-parse", "HEAD~1") + "\n")
    error = untouched(root, "TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert operation in error.message
    assert (error.details["operation"], error.details["files"]) == (operation, [])


def test_an_unfinished_operation_on_another_branch_is_no_obstacle(root: Path, repo: Repository, work: Path) -> None:
    git(root, "checkout", "--quiet", "-b", "other")
    git(root, "bisect", "start")
    git(root, "bisect", "reset")
    (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "main") + "\n")
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"


def test_a_target_in_another_worktree_is_refused(root: Path, repo: Repository, work: Path, place: Path) -> None:
    add(repo, place / "ünï", "other", "main")
    error = untouched(root, "TARGET_CHECKED_OUT", repo.integrate, "work", "other", "no", ANNA)
    assert error.details["worktree"] == str(place / "ünï")
    shutil.rmtree(place / "ünï")
    assert repo.integrate("work", "other", "merge", ANNA).kind == "merged"


def test_a_target_that_is_another_name_of_the_current_branch_moves_it(root: Path, repo: Repository, work: Path) -> None:
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    write(root, {"kept": "uncommitted\n"})
    git(root, "add", "kept")
    refused("TARGET_DIRTY", repo.integrate, "work", "alias", "no", ANNA)
    git(root, "reset", "--quiet", "--hard")
    assert repo.integrate("work", "alias", "merge", ANNA).kind == "merged"
    assert git(root, "status", "--porcelain") == ""


def test_an_unknown_target_or_source_is_not_found(repo: Repository, work: Path) -> None:
    for source, target in (("work", "missing"), ("missing", "main"), ("0" * 40, "main"), ("work", "main~0")):
        refused("BRANCH_NOT_FOUND", repo.integrate, source, target, "no", ANNA)


@pytest.mark.parametrize("target", ["main", "other"])
@pytest.mark.parametrize("fast_forward", [True, False])
def test_the_tried_merge_commit_is_the_one_that_is_integrated(
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


def test_a_merge_commit_tried_on_an_older_target_is_refused(root: Path, repo: Repository, work: Path) -> None:
    made = repo.merge_commit("work", "main", "merge", ANNA)
    commit(root, {"kept": "later\n"})
    untouched(root, "TARGET_MOVED", repo.integrate, "work", "main", "merge", ANNA, merged=made)
    again = repo.merge_commit("work", "main", "merge", ANNA)
    assert repo.integrate("work", "main", "merge", ANNA, merged=again).commit == again


@pytest.mark.parametrize("forged", ["other files", "other parents", "the source", "the target", "missing", "an option"])
def test_a_commit_that_is_not_the_merge_is_refused(root: Path, repo: Repository, work: Path, forged: str) -> None:
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


def test_a_worktree_without_a_branch_holds_a_tried_merge(root: Path, repo: Repository, work: Path, place: Path) -> None:
    made = repo.merge_commit("work", "main", "merge", ANNA)
    assert add(repo, place / "gate", None, made) == made
    assert inside(place / "gate").head() == (None, made)
    assert (place / "gate" / "new").read_text() == "new\n"
    git(root, "gc", "--quiet", "--prune=now")
    assert git(root, "cat-file", "-t", made) == "commit"
    assert git(place / "gate", "status", "--porcelain") == ""
    remove(repo, place / "gate")
    assert records(root) == ["w"]
