"""Reading branches, differences and predicted merges."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.git.parts import ANNA, HOSTILE_FILES, Picture, bring, commit, git, inside, script, write
from tests.given import refused
from workbench.errors import NotFound
from workbench.git import Commit, FileChange, MergePreview, Repository


def test_the_current_branch_is_that_of_the_main_checkout_if_any(root: Path, repo: Repository, work: Path) -> None:
    assert (inside(work).head()[0], repo.current_branch()) == ("work", "main")
    git(root, "tag", "v1")
    assert repo.resolve("main") == git(root, "rev-parse", "HEAD")
    assert [repo.resolve(n) for n in ("v1", "HEAD", "refs/heads/main", "mai")] == [None] * 4
    git(root, "checkout", "--quiet", "--detach")
    assert repo.current_branch() is None


def test_ancestors_are_recognised_and_commits_counted(root: Path, repo: Repository, work: Path) -> None:
    assert repo.is_ancestor("main", "work")
    assert repo.is_ancestor(git(root, "rev-parse", "main"), "work")
    for pair in (("work", "main"), ("missing", "main"), ("main", "missing"), ("0" * 40, "main")):
        assert not repo.is_ancestor(*pair), pair
    commit(work, {"more": ""})
    commit(root, {"kept": "4\n"})
    assert (repo.ahead_behind("work", "main"), repo.ahead_behind("main", "work")) == ((2, 1), (1, 2))


@pytest.mark.parametrize("question", ["ahead_behind", "diff_stat", "preview_merge"])
def test_an_unknown_branch_is_not_found(repo: Repository, question: str) -> None:
    for names in (("missing", "main"), ("main", "missing")):
        error = refused("BRANCH_NOT_FOUND", getattr(repo, question), *names)
        assert isinstance(error, NotFound)


def test_a_difference_begins_where_the_branch_left(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {"shared": "1\n2\nthree\nfour\n"})
    commit(root, {"kept": "changed on main\n"})
    assert repo.diff_stat("main", "work") == [FileChange("new", 1, 0), FileChange("shared", 2, 1)]


def test_lines_are_counted_whatever_files_are_called_and_hold(root: Path, repo: Repository, work: Path) -> None:
    git(root, "config", "diff.renames", "copies")
    git(work, "mv", "shared", "moved")
    Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9")).write_text("")
    (work / "data").write_bytes(bytes(range(256)))
    hostile = {f"{number}/{name}": "x\n" for number, name in enumerate(HOSTILE_FILES)}
    commit(work, hostile)
    found = {change.path: (change.added, change.removed) for change in repo.diff_stat("main", "work")}
    odd = {"caf\\xe9": (0, 0), "data": (None, None), "moved": (3, 0), "shared": (0, 3)}
    assert found == odd | dict.fromkeys((*hostile, "new"), (1, 0))


def test_a_branch_that_shares_no_commit_is_all_new(root: Path, repo: Repository) -> None:
    git(root, "checkout", "--quiet", "--orphan", "lone")
    git(root, "rm", "--quiet", "-rf", ".")
    commit(root, {"alone": "1\n"})
    assert repo.diff_stat("main", "lone") == [FileChange("alone", 1, 0)]
    assert repo.preview_merge("main", "lone") == MergePreview(None, ())
    refused("UNRELATED_HISTORIES", repo.integrate, "lone", "main", "no", ANNA)


def test_a_changed_submodule_cannot_hide(root: Path, repo: Repository, work: Path) -> None:
    write(root, {".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = x\n\tignore = all\n'})
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    git(work, "commit", "--quiet", "--message", "sub")
    bring(work)
    git(root, "config", "diff.ignoreSubmodules", "all")
    assert FileChange("s", 1, 0) in repo.diff_stat("main", "work")


def test_commits_are_listed_newest_first_up_to_the_limit(repo: Repository, work: Path) -> None:
    write(work, {"two": ""})
    git(work, "add", "two")
    when = "2001-02-03T04:05:06Z"
    git(work, "commit", "-qm", "ünï\ncode\n\nbody", GIT_AUTHOR_NAME="Änne 漢", GIT_AUTHOR_DATE=when)
    bring(work)
    newest, older = repo.commits("main", "work", 10)
    assert newest == Commit(git(work, "rev-parse", "HEAD"), "Änne 漢", 981_173_106_000_000, "ünï code")
    assert (older.subject, older.author) == ("work", "pat")
    assert repo.commits("main", "work", 1) == [newest]
    assert repo.commits("main", "work", 0) == repo.commits("main", "work", -1) == []
    assert repo.commits("work", "main", 10) == []


@pytest.mark.parametrize(
    ("claimed", "at_us"),
    [
        ("a <b> nonsense", 0),
        ("a <b> 99999999999999999999 +0000", 253_402_300_799_000_000),
        ("a <b> 7 +0000", 7_000_000),
    ],
)
def test_a_commit_with_an_absurd_date_is_still_listed(root: Path, repo: Repository, claimed: str, at_us: int) -> None:
    tree, parent = git(root, "rev-parse", "HEAD^{tree}", "HEAD").split()
    text = f"tree {tree}\nparent {parent}\nauthor {claimed}\ncommitter {claimed}\n\nodd\n"
    odd = git(root, "hash-object", "--literally", "-w", "-t", "commit", "--stdin", stdin=text)
    assert [c.at_us for c in repo.commits("main", odd, 5)] == [at_us]


def test_an_author_in_another_encoding_is_readable(root: Path, repo: Repository) -> None:
    tree, parent = git(root, "rev-parse", "HEAD^{tree}", "HEAD").split()
    who = b"J\xfcrgen <j@x> 1 +0000\n"
    raw = b"tree %b\nparent %b\nauthor %bcommitter %b" % (tree.encode(), parent.encode(), who, who)
    (root / "declared").write_bytes(raw + b"encoding ISO-8859-1\n\ngr\xfcn\n")
    (root / "silent").write_bytes(raw + b"\ngr\xfcn\n")
    found = []
    for name in ("declared", "silent"):
        odd = git(root, "hash-object", "-w", "-t", "commit", name)
        found += [(c.author, c.subject) for c in repo.commits("main", odd, 5)]
    assert found == [("Jürgen", "grün"), ("J\\xfcrgen", "gr\\xfcn")]


def test_a_preview_gives_the_tree_of_the_merge_and_moves_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"kept": "changed on main\n"})
    before = Picture.of(root)
    preview = repo.preview_merge("main", "work")
    assert Picture.of(root) == before
    by_ids = repo.preview_merge(git(root, "rev-parse", "main"), git(root, "rev-parse", "work"))
    git(root, "merge", "--quiet", "work")
    assert preview == by_ids == MergePreview(git(root, "rev-parse", "HEAD^{tree}"), ())


def test_a_preview_lists_the_files_in_conflict_whatever_their_names(root: Path, repo: Repository, work: Path) -> None:
    names = [f"{number}/{name}" for number, name in enumerate(HOSTILE_FILES)]
    commit(work, dict.fromkeys(names, "theirs\n") | {"shared": "changed\n"})
    git(root, "rm", "--quiet", "shared")
    commit(root, dict.fromkeys(names, "ours\n"))
    preview = repo.preview_merge("main", "work")
    assert (preview.tree, sorted(preview.conflicts)) == (None, sorted([*names, "shared"]))


def test_the_main_checkout_lists_uncommitted_files_without_writing_its_index(root: Path, repo: Repository) -> None:
    commit(root, dict.fromkeys(HOSTILE_FILES, "x\n") | {"staged": "", "deleted": "", "same": ""})
    write(root, dict.fromkeys(HOSTILE_FILES, "y\n") | {"staged": "s", "untracked": "", "x.ignored": ""})
    git(root, "add", "staged")
    (root / "deleted").unlink()
    os.utime(root / "same", (1, 1))
    before = (root / ".git" / "index").read_bytes()
    assert sorted(repo.dirty_files("main")) == sorted([*HOSTILE_FILES, "staged", "deleted"])
    assert (root / ".git" / "index").read_bytes() == before


def test_a_branch_that_is_not_checked_out_here_has_no_dirty_files(root: Path, repo: Repository, work: Path) -> None:
    write(work, {"new": "changed\n"})
    write(root, {"shared": "changed\n"})
    assert repo.dirty_files("work") == repo.dirty_files("missing") == []
    git(root, "checkout", "--quiet", "--detach")
    assert repo.dirty_files("main") == []


def test_git_does_not_run_in_a_submodule_to_find_dirty_files(root: Path, repo: Repository, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(root), "source")
    add = ("submodule", "--quiet", "add", str(tmp_path / "source"), "sub")
    git(root, "-c", "protocol.file.allow=always", *add)
    commit(root, {})
    spy = script(tmp_path / "spy", f"touch {tmp_path / 'ran'}")
    git(root / "sub", "config", "core.fsmonitor", str(spy))
    write(root / "sub", {"shared": "changed\n"})
    assert repo.dirty_files("main") == []
    assert not (tmp_path / "ran").exists()
    commit(root / "sub", {})
    assert repo.dirty_files("main") == ["sub"]
