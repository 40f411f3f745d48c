"""Merging into a branch that the person may be working on."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.git.parts import (
    ANNA,
    HOSTILE_FILES,
    Picture,
    add,
    bring,
    commit,
    filtering,
    git,
    inside,
    log,
    racing,
    records,
    refused,
    remove,
    script,
    write,
)
from workbench.git import FileChange, Identity, Integration, Repository

pytestmark = pytest.mark.long


def test_a_branch_is_merged_and_the_clean_checkout_follows(root: Path, repo: Repository, work: Path) -> None:
    old, source = git(root, "rev-parse", "main", "work").split()
    write(root, {"untracked": "mine", "x.ignored": "mine"})
    done = repo.integrate(source, "main", "Integrate w\n\nApproved.\0", ANNA)
    assert done == Integration(git(root, "rev-parse", "main"), "merged")
    assert git(root, "rev-parse", "main^1", "main^2").split() == [old, source]
    assert log(root) == f"Integrate w|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"
    assert git(root, "status", "--porcelain", "--ignored") == "?? untracked\n!! .aiswarm/\n!! x.ignored"
    assert (root / "new").read_text() == "new\n"
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_merge_brings_both_sides_together(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"kept": "changed on main\n"})
    assert repo.integrate("work", "main", "both", ANNA).kind == "merged"
    assert ((root / "new").read_text(), (root / "kept").read_text()) == ("new\n", "changed on main\n")
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_that_is_not_checked_out_moves_without_touching_the_checkout(
    root: Path, repo: Repository, work: Path
) -> None:
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


def test_with_a_detached_head_every_branch_can_move(root: Path, repo: Repository, work: Path) -> None:
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
def test_a_fast_forward_is_made_only_when_asked_for_and_possible(
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


def test_a_conflict_lists_the_files_and_changes_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(work, dict.fromkeys(HOSTILE_FILES, "theirs\n") | {"clean": ""})
    commit(root, dict.fromkeys(HOSTILE_FILES, "ours\n"))
    before = Picture.of(root)
    error = refused("MERGE_CONFLICT", repo.integrate, "work", "main", "no", ANNA)
    assert sorted(error.details["files"]) == sorted(HOSTILE_FILES)
    assert Picture.of(root) == before


@pytest.mark.parametrize("how", ["unstaged", "staged", "deleted", "added", "unmerged"])
def test_a_dirty_target_is_refused_and_nothing_changes(root: Path, repo: Repository, work: Path, how: str) -> None:
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
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == (["fresh"] if how == "added" else ["kept"])
    assert "Commit or stash" in error.message
    assert Picture.of(root) == before


def test_a_file_that_was_only_touched_is_not_dirty(root: Path, repo: Repository, work: Path) -> None:
    os.utime(root / "shared", (1, 1))
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"


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
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == named
    assert Picture.of(root) == before


def test_an_untracked_link_in_the_way_is_kept(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    commit(work, {"directory/f": "theirs"})
    (tmp_path / "outside").mkdir()
    (root / "directory").symlink_to(tmp_path / "outside")
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["directory"]
    assert not list((tmp_path / "outside").iterdir())


UNFINISHED = {
    "merge": ("merge", "--no-commit", "--no-ff", "side"),
    "cherry-pick": ("cherry-pick", "--no-commit", "side"),
    "rebase": ("rebase", "--quiet", "--exec", "false", "HEAD~1"),
    "bisection": ("bisect", "start"),
}


@pytest.mark.parametrize("operation", UNFINISHED)
def test_an_unfinished_operation_on_the_target_is_refused(
    root: Path, repo: Repository, work: Path, operation: str
) -> None:
    commit(root, {"kept": "later\n"})
    git(root, "branch", "side")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "last")
    if operation in ("merge", "cherry-pick"):
        head = "MERGE_HEAD" if operation == "merge" else "CHERRY_PICK_HEAD"
        (root / ".git" / head).write_text(git(root, "rev-parse", "side") + "\n")
    else:
        git(root, *UNFINISHED[operation], ok=(0, 1))
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert operation in error.message
    assert (error.details["operation"], error.details["files"]) == (operation, [])
    assert Picture.of(root) == before


def test_an_unfinished_operation_on_another_branch_is_no_obstacle(root: Path, repo: Repository, work: Path) -> None:
    git(root, "checkout", "--quiet", "-b", "other")
    git(root, "bisect", "start")
    git(root, "bisect", "reset")
    (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "main") + "\n")
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"


def test_a_target_in_another_worktree_is_refused(root: Path, repo: Repository, work: Path, place: Path) -> None:
    add(repo, place / "ünï", "other", "main")
    before = Picture.of(root)
    error = refused("TARGET_CHECKED_OUT", repo.integrate, "work", "other", "no", ANNA)
    assert error.details["worktree"] == str(place / "ünï")
    assert Picture.of(root) == before
    shutil.rmtree(place / "ünï")
    assert repo.integrate("work", "other", "merge", ANNA).kind == "merged"


def test_a_target_that_is_another_name_of_the_checked_out_branch_moves_that(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    write(root, {"kept": "uncommitted\n"})
    refused("TARGET_DIRTY", repo.integrate, "work", "alias", "no", ANNA)
    git(root, "checkout", "--quiet", "kept")
    assert repo.integrate("work", "alias", "merge", ANNA).kind == "merged"
    assert git(root, "status", "--porcelain") == ""


def test_an_unknown_target_or_source_is_not_found(repo: Repository, work: Path) -> None:
    refused("BRANCH_NOT_FOUND", repo.integrate, "work", "missing", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "missing", "main", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "0" * 40, "main", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "work", "main~0", "no", ANNA)


def test_a_target_that_moves_during_the_merge_is_not_set_back(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    git(root, "branch", "other")
    racing(root, work, "main", "git update-ref refs/heads/other refs/heads/rival")
    git(root, "checkout", "--quiet", "other")
    git(root, "merge", "--quiet", "main")
    git(root, "branch", "rival", commit(root, {"kept": "rival\n"}))
    git(root, "reset", "--quiet", "--hard", "main")
    git(root, "checkout", "--quiet", "main")
    refused("TARGET_MOVED", repo.integrate, "work", "other", "no", ANNA)
    assert repo.resolve("other") == repo.resolve("rival")


def test_a_checked_out_target_that_moves_during_the_merge_is_not_set_back(
    root: Path, repo: Repository, work: Path
) -> None:
    racing(root, work, "main", "git commit --quiet --allow-empty --message rival")
    git(root, "config", "user.name", "pat")
    git(root, "config", "user.email", "pat")
    old = repo.resolve("main")
    refused("TARGET_MOVED", repo.integrate, "work", "main", "no", ANNA)
    assert log(root).startswith("rival|")
    assert git(root, "rev-parse", "main^") == old
    assert git(root, "status", "--porcelain") == ""


def test_a_checkout_that_leaves_the_target_during_the_merge_stays_where_it_went(
    root: Path, repo: Repository, work: Path
) -> None:
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


@pytest.mark.parametrize(
    ("smudge", "code"), [("exit 1", "GIT_FAILED"), ("sleep 600", "GIT_TIMEOUT")], ids=["fails", "hangs"]
)
def test_a_filter_that_gives_up_leaves_the_checkout_as_it_was(
    root: Path, repo: Repository, work: Path, smudge: str, code: str
) -> None:
    filtering(root, f'text=$(cat); case "$text" in *bad*) {smudge};; esac; echo "$text"')
    inside(work).merge(git(root, "rev-parse", "main"), "merge", ANNA)
    commit(work, {"a.f": "bad\n", "b": "b\n", "c.f": "bad\n"})
    before = Picture.of(root)
    refused(code, replace(repo, checkout_limit=0.5).integrate, "work", "main", "no", ANNA)
    assert Picture.of(root) == before
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


def test_filters_of_the_person_do_their_work(root: Path, repo: Repository, place: Path) -> None:
    filtering(root, "tr a-z A-Z")
    git(root, "config", "filter.f.clean", "tr A-Z a-z")
    add(repo, place / "w", "work")
    commit(place / "w", {"b.f": "BEE\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "b.f").read_text() == "BEE\n"
    assert git(root, "show", "main:b.f") == "bee"
    add(repo, place / "v", "more")
    assert (place / "v" / "b.f").read_text() == "BEE\n"
    assert inside(place / "v").uncommitted() == []
    assert repo.dirty_files("main") == []


def test_attributes_that_name_what_nobody_configured_change_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {".gitattributes": "* filter=no merge=no diff=no textconv=no\n", "shared": "1\n2\n3\n4\n"})
    commit(root, {"shared": "0\n1\n2\n3\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "shared").read_text() == "0\n1\n2\n3\n4\n"


def test_a_merge_driver_of_the_person_does_its_work(root: Path, repo: Repository, work: Path) -> None:
    racing(root, work, "main", "echo driven > %A")
    git(root, "config", "merge.race.driver", "echo driven > %A")
    assert repo.preview_merge("main", "work").conflicts == ()
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "shared").read_text() == "driven\n"


TASTE = {
    "merge.ff": "false",
    "merge.verifySignatures": "true",
    "merge.autoStash": "true",
    "branch.main.mergeOptions": "--squash -s ours",
    "commit.gpgSign": "true",
    "core.autocrlf": "input",
    "core.safecrlf": "true",
    "core.splitIndex": "true",
    "i18n.commitEncoding": "ISO-8859-1",
    "i18n.logOutputEncoding": "ISO-8859-1",
    "submodule.recurse": "true",
    "diff.noprefix": "true",
    "status.relativePaths": "true",
    "log.showSignature": "true",
    "core.quotePath": "false",
    "color.ui": "always",
    "core.pager": "false",
}


def test_the_taste_of_the_person_does_not_change_what_is_done(root: Path, repo: Repository, work: Path) -> None:
    for key, value in TASTE.items():
        git(root, "config", key, value)
    write(work, {"more": "lf\ncrlf\r\n"})
    made = inside(work).commit_all("more", ANNA)
    bring(work)
    assert repo.diff_stat("main", "work") == [FileChange("more", 2, 0), FileChange("new", 1, 0)]
    listed = [(c.author, c.subject) for c in repo.commits("main", "work", 5)]
    assert listed == [(ANNA.name, "more"), ("pat", "work")]
    done = repo.integrate("work", "main", "Änderung", ANNA)
    assert git(root, "rev-parse", "main", "main^2").split() == [done.commit, made]
    text = git(root, "cat-file", "commit", "main")
    assert text.endswith("Änderung")
    assert "\nencoding" not in text
    assert git(root, "-c", "color.ui=false", "status", "--porcelain") == ""


def test_a_name_with_an_equals_sign_has_its_merge_options_taken_back_too(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "checkout", "--quiet", "-b", "a=b.c")
    git(root, "config", "branch.a=b.c.mergeOptions", "--squash")
    done = repo.integrate("work", "a=b.c", "merge", ANNA)
    assert git(root, "rev-parse", "HEAD") == done.commit


HOOKS = [
    *("applypatch-msg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"),
    *("post-merge", "post-checkout", "post-rewrite", "reference-transaction", "post-index-change", "pre-auto-gc"),
    *("pre-rebase", "post-applypatch", "fsmonitor-watchman"),
]


@pytest.mark.parametrize("configured", [False, True], ids=["in .git/hooks", "by core.hooksPath"])
def test_no_hook_ever_runs(
    root: Path, repo: Repository, work: Path, place: Path, tmp_path: Path, configured: bool
) -> None:
    hooks = tmp_path / "hooks" if configured else root / ".git" / "hooks"
    for name in HOOKS:
        script(hooks / name, f"echo {name} >> {tmp_path / 'ran'}")
    if configured:
        git(root, "config", "core.hooksPath", str(hooks))
    git(root, "config", "core.fsmonitor", str(hooks / "fsmonitor-watchman"))
    git(root, "config", "gc.auto", "1")
    git(root, "branch", "other")
    (tmp_path / "ran").unlink(missing_ok=True)

    Repository.open(root)
    write(work, {"more": "more"})
    inside(work).commit_all("more", ANNA)
    bring(work)
    write(work, {"more": "other"})
    inside(work).discard_changes()
    add(repo, place / "v", "v", "main")
    repo.preview_merge("main", "work")
    repo.dirty_files("main")
    repo.integrate("work", "other", "merge", ANNA)
    repo.integrate("work", "main", "merge", ANNA)
    remove(repo, place / "v")
    assert not (tmp_path / "ran").exists()
    git(root, "commit", "--quiet", "--allow-empty", "--message", "proof that they would have")
    assert (tmp_path / "ran").exists()


def test_a_sha256_repository_works_alike(tmp_path: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(root))
    commit(root, {"shared": "1\n"})
    repo, work = Repository.open(root), root / ".aiswarm" / "worktrees" / "w"
    start = add(repo, work, "work")
    made = commit(work, {"new": "new\n"})
    git(root, "checkout", "--quiet", "--orphan", "lone")
    commit(root, {}, "alone")
    assert len(start) == len(made) == 64
    assert repo.diff_stat("lone", "work") == [FileChange("new", 1, 0), FileChange("shared", 1, 0)]
    assert repo.integrate(made, "main", "merge", ANNA).kind == "merged"


@pytest.mark.parametrize("name", ["", "  ", "...", "<>", "\n", "a\0b"])
def test_a_name_of_which_git_would_leave_nothing_is_refused(name: str) -> None:
    refused("BAD_IDENTITY", Identity, name, "x@y")


def test_every_other_name_signs(work: Path) -> None:
    names = {"a": "a", "<a>": "a", "a\nb": "ab", "Ä": "Ä", ".a.": "a", "agent-1": "agent-1"}
    for name in names:
        write(work, {"file": name})
        assert inside(work).commit_all("", Identity(name, "")) is not None
    assert git(work, "log", "--format=%an", "--max-count=6").splitlines() == [*reversed(names.values())]


# -- a merge that was tried out first


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
    before = Picture.of(root)
    refused("TARGET_MOVED", repo.integrate, "work", "main", "merge", ANNA, merged=made)
    assert Picture.of(root) == before
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
    before = Picture.of(root)
    refused("TARGET_MOVED", repo.integrate, "work", "main", "merge", ANNA, merged=commits[forged]())
    assert Picture.of(root) == before


def test_a_merge_in_conflict_cannot_be_tried_out(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"new": "ours\n"})
    error = refused("MERGE_CONFLICT", repo.merge_commit, "work", "main", "merge", ANNA)
    assert error.details["files"] == ["new"]
    assert repo.merge_commit("main", "main", "merge", ANNA) == repo.resolve("main")


def test_a_worktree_without_a_branch_holds_what_is_tried_out(
    root: Path, repo: Repository, work: Path, place: Path
) -> None:
    made = repo.merge_commit("work", "main", "merge", ANNA)
    assert add(repo, place / "gate", None, made) == made
    assert inside(place / "gate").head() == (None, made)
    assert (place / "gate" / "new").read_text() == "new\n"
    git(root, "gc", "--quiet", "--prune=now")
    assert git(root, "cat-file", "-t", made) == "commit"
    assert git(place / "gate", "status", "--porcelain") == ""
    remove(repo, place / "gate")
    assert records(root) == ["w"]
