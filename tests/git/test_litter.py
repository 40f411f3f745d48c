"""What programs leave behind in a worktree is not committed, and the question about a merge names unusual files."""

from __future__ import annotations

from pathlib import Path

from tests.git.parts import ANNA, MEGABYTE, add, commit, git, inside, write
from workbench.git import FileContent, Repository

LITTER = (
    *("a/__pycache__/b.cpython-311.pyc", "old.pyc", ".pytest_cache/v/x", ".ruff_cache/x", "sub/.mypy_cache/x"),
    *(".ipynb_checkpoints/n-checkpoint.ipynb", "sub/.DS_Store", "node_modules/left-pad/index.js"),
    *(".coverage", "sub/.coverage.host.7", ".hypothesis/x", "src/lab.egg-info/PKG-INFO"),
)


def test_no_litter_is_committed_shown_or_kept_in_a_worktree(repo: Repository, work: Path) -> None:
    checkout = inside(work)
    write(work, dict.fromkeys(LITTER, "litter") | {"real.py": "x = 1\n"})
    assert [file.path for file in checkout.dirty_diff(MEGABYTE)] == checkout.uncommitted() == ["real.py"]
    git(work, "add", "--all")  # as an agent does
    assert git(work, "diff", "--cached", "--name-only") == "real.py"
    checkout.commit_all("work", ANNA)
    repo.import_branch(checkout, "work", max_bytes=MEGABYTE)
    changed = {change.path for change in repo.diff_stat("main", "work")}
    assert "real.py" in changed
    assert changed.isdisjoint(LITTER)


def test_what_looks_like_litter_is_committed_where_the_project_tracks_such_files(
    root: Path, repo: Repository, place: Path
) -> None:
    commit(root, {"vendor/node_modules/a.js": "a", "fixtures/x.pyc": "x"})
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("!.DS_Store\n")
    add(repo, place / "other", "other")
    write(place / "other", dict.fromkeys(LITTER, "litter"))
    inside(place / "other").commit_all("work", ANNA)
    committed = git(place / "other", "show", "--name-only", "--format=", "HEAD").split()
    assert sorted(committed) == ["node_modules/left-pad/index.js", "old.pyc", "sub/.DS_Store"]


def test_the_size_of_files_that_a_branch_adds_or_changes_is_known_and_whether_they_are_binary(
    root: Path, repo: Repository
) -> None:
    commit(root, {"gone.bin": "\0", "text": "t"})
    git(root, "switch", "--quiet", "--create", "more")
    git(root, "rm", "--quiet", "gone.bin")
    (root / "link").symlink_to("text")
    commit(root, {"text": "four", "new.bin": "\0" * 9, "dir/é": "é"})
    assert repo.contents("main", "more") == [
        FileContent("dir/é", 2, False),
        FileContent("link", 4, False),
        FileContent("new.bin", 9, True),
        FileContent("text", 4, False),
    ]
    assert repo.contents("more", "more") == []
