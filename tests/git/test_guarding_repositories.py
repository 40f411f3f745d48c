"""The fingerprint of guarded files, and the lock between processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.git.parts import ANNA, bring, git, inside, script, write
from workbench.errors import Unavailable
from workbench.git import Repository, changed

pytestmark = pytest.mark.long


def test_worktrees_and_the_persons_housekeeping_change_no_fingerprint(root: Path, repo: Repository, work: Path) -> None:
    before = repo.protected()
    write(work, {"more": ""})
    inside(work).commit_all("more", ANNA)
    git(work, "branch", "side")
    git(root, "pack-refs", "--all")
    git(root, "gc", "--quiet")
    git(root, "status")
    assert changed(before, repo.protected()) == []
    bring(work)
    assert changed(before, repo.protected()) == ["refs/heads/work"]


GUARDED: dict[str, tuple[Callable[[Path], object], str]] = {
    "settings": (lambda g: (g / "config").write_text("[core]\nfsmonitor = x\n"), "config"),
    "settings of the worktree": (lambda g: (g / "config.worktree").touch(), "config.worktree"),
    "a hook": (lambda g: script(g / "hooks" / "pre-commit", "x"), "hooks/pre-commit"),
    "a hook that may run": (lambda g: (g / "hooks" / "there").chmod(0o755), "hooks/there"),
    "a hook below": (lambda g: write(g, {"hooks/a/b": "x"}), "hooks/a/b"),
    "a hook that is a link": (lambda g: (g / "hooks" / "x").symlink_to("/bin/sh"), "hooks/x"),
    "a hook that is a pipe": (lambda g: os.mkfifo(g / "hooks" / "x"), "hooks/x"),
    "attributes": (lambda g: write(g, {"info/attributes": "* filter=x"}), "info/attributes"),
    "what is ignored": (lambda g: (g / "info" / "exclude").unlink(), "info/exclude"),
    "HEAD": (lambda g: (g / "HEAD").write_text("ref: refs/heads/x\n"), "HEAD"),
    "a branch": (lambda g: git(g, "update-ref", "refs/heads/main", "work"), "refs/heads/main"),
    "a new branch": (lambda g: git(g, "update-ref", "refs/heads/x", "work"), "refs/heads/x"),
    "a tag": (lambda g: git(g, "tag", "x"), "refs/tags/x"),
    "a stash": (lambda g: git(g, "update-ref", "refs/stash", "work"), "refs/stash"),
    "a symbolic reference": (lambda g: git(g, "symbolic-ref", "refs/heads/y", "refs/heads/main"), "refs/heads/y"),
    "borrowing": (lambda g: write(g, {"objects/info/alternates": "/tmp\n"}), "objects/info/alternates"),
    "a record": (lambda g: (g / "worktrees/w/HEAD").write_text("ref: refs/heads/main\n"), "worktrees/w/HEAD"),
    "a record's settings": (lambda g: write(g, {"worktrees/w/config.worktree": "x"}), "worktrees/w/config.worktree"),
    "a new record": (lambda g: write(g, {"worktrees/x/gitdir": "x"}), "worktrees/x/gitdir"),
}


@pytest.mark.parametrize("what", GUARDED)
def test_a_change_of_a_guarded_file_is_noticed(root: Path, repo: Repository, work: Path, what: str) -> None:
    write(root, {".git/hooks/there": "x"})
    before = repo.protected()
    change, name = GUARDED[what]
    change(root / ".git")
    assert changed(before, repo.protected()) == changed(repo.protected(), before) == [name]


# -- one at a time


HOLD = """
import sys, pathlib
from workbench.system.file_lock import held
with held(pathlib.Path(sys.argv[1]), 5) as is_held:
    print("held" if is_held else "not held", flush=True)
    sys.stdin.read()
"""


def test_a_held_lock_of_a_repository_is_reported_as_busy(root: Path, repo: Repository) -> None:
    holder = [sys.executable, "-c", HOLD, str(root / ".git" / "workbench.flock")]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable, match="GIT_BUSY"), repo.lock(0.05):
            raise AssertionError("it was held")
        process.kill()
    with repo.lock(0.0):
        pass


def test_a_lock_that_was_let_go_can_be_taken_again_and_leaves_no_lock_of_git(root: Path, repo: Repository) -> None:
    for _ in range(3):
        with repo.lock():
            git(root, "commit", "--quiet", "--allow-empty", "--message", "x")
    with suppress(ZeroDivisionError), repo.lock():
        raise ZeroDivisionError
    with repo.lock(0.0):
        pass
    assert not list((root / ".git").rglob("*.lock"))
