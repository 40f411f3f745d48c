"""Finding the repository of a directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.git.parts import commit, git, script
from tests.given import refused
from tests.users import NOBODY
from workbench.git import Repository


def test_a_repository_opens_from_everywhere_in_it(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to("a/b")
    for path in (root, root / "a" / "b", root / "link", root / ".git"):
        assert Repository.open(path) == Repository(root, root / ".git")


def test_variables_of_the_caller_lead_nowhere_else(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert Repository.open(root).current_branch() == "main"


def test_a_directory_without_a_repository_or_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    assert "git init" in str(refused("NOT_A_REPOSITORY", Repository.open, tmp_path))
    refused("NOT_A_REPOSITORY", Repository.open, tmp_path / "missing")
    git(tmp_path, "init", "--quiet")
    assert "git commit" in str(refused("NO_COMMITS", Repository.open, tmp_path))


def test_a_bare_repository_is_refused_but_not_a_worktree_of_it(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(root), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    assert "git worktree add" in str(refused("BARE_REPOSITORY", Repository.open, bare))
    found = Repository.open(tmp_path / "linked")
    assert (found.root, found.git_dir, found.record) == (tmp_path / "linked", bare, bare / "worktrees" / "linked")


def test_a_submodule_is_a_repository_of_its_own(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    git(tmp_path, "clone", "--quiet", str(root), str(source))
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "sub")
    sub = Repository.open(root / "sub")
    assert (sub.root, sub.git_dir) == (root / "sub", root / ".git" / "modules" / "sub")
    git(root / "sub", "worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repository.open(tmp_path / "linked")
    assert (linked.root, linked.git_dir) == (tmp_path / "linked", sub.git_dir)


def test_a_git_directory_elsewhere_is_found_from_every_checkout(tmp_path: Path) -> None:
    main, away = tmp_path / "main", tmp_path / "away"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", f"--separate-git-dir={away}", str(main))
    commit(main, {"file": ""})
    assert Repository.open(main) == Repository(main, away)
    git(main, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    assert (Repository.open(tmp_path / "linked").git_dir, Repository.open(tmp_path / "linked").own_dir) == (
        away,
        away / "worktrees" / "linked",
    )
    assert "main checkout" in str(refused("NOT_A_REPOSITORY", Repository.open, away))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_repository_that_git_does_not_trust_is_not_taken_for_none(root: Path) -> None:
    for path in (root, root / ".git"):
        os.chown(path, NOBODY, NOBODY)
    assert "ownership" in refused("GIT_FAILED", Repository.open, root).details["stderr"]


def test_without_git_the_error_says_so(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    refused("GIT_MISSING", Repository.open, root)


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.37.9", False), ("1.99.0", False), ("2.9.5", False), ("2.38.0", True), ("2.100.1 (Apple Git)", True)],
)
def test_an_old_git_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
) -> None:
    real = shutil.which("git")
    case = f'case "$*" in *version) echo git version "{version}";; *) exec {real} "$@";; esac'
    script(tmp_path / "bin" / "git", case)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    if fits:
        assert Repository.open(root).root == root
    else:
        refused("GIT_TOO_OLD", Repository.open, root)


def test_a_git_error_quotes_git_and_names_a_vanished_repository(root: Path, repo: Repository) -> None:
    (root / ".git" / "index").write_bytes(b"not an index at all")
    error = refused("GIT_FAILED", repo.dirty_files, "main")
    assert "index" in error.details["stderr"]
    assert "index" in error.message
    shutil.rmtree(root)
    assert str(root) in str(refused("GIT_FAILED", repo.current_branch))
