"""The commands about worktrees."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Type, data
from tests.conftest import git


def test_a_worktree_is_made_and_merged_or_given_up(run: Type, repository: Path) -> None:
    island = data(run("--json", "call", "create_worktree", "name=island"))
    (Path(island["path"]) / "count.txt").write_text("344\n")
    git("add", ".", cwd=Path(island["path"]))
    git("commit", "-q", "-m", "Count", cwd=Path(island["path"]))
    assert "island" in run("worktrees").out
    assert data(run("--json", "worktrees", "status", "island"))["ahead"] == 1
    assert "count.txt" in run("worktrees", "status", "island").out
    assert "+344" in run("worktrees", "diff", "island", "count.txt").out
    assert run("integrate", "island").out == "To merge island into main, approve 1.\n"
    assert "wb/island/main into main: 1 commits" in run("approvals").out
    assert run("approve", "1").out.endswith("island is integrated\n")
    assert (repository / "count.txt").read_text() == "344\n"
    run("call", "create_worktree", "name=other")
    assert run("discard", "other").out == "Discarded other; the branch wb/other/main is kept.\n"
    assert run("worktrees").out == "There are no active worktrees.\n"


def test_worktrees_are_made_compared_updated_and_cleared_up(run: Type, repository: Path) -> None:
    assert run("worktrees", "conflicts").out == "No conflicts are predicted.\n"
    assert run("worktrees", "create", "one", "--from", "main").out.startswith("Created one on branch wb/one/main in /")
    run("worktrees", "create", "two", "--branch", "feature/two")
    for name in ("one", "two"):
        place = repository / ".aiswarm" / "worktrees" / name
        (place / "README.md").write_text(f"# {name}\n")
        git("commit", "-q", "-a", "-m", name, cwd=place)
    assert run("worktrees", "conflicts").out.splitlines()[1].split() == ["one", "two", "README.md"]
    assert run("worktrees", "update", "one").out == "one is up to date.\n"
    (repository / ".aiswarm" / "worktrees" / "two" / "draft.txt").write_text("draft\n")
    assert "+draft" in run("worktrees", "diff", "two", "--uncommitted").out
    assert run("worktrees", "discard", "two").err.startswith("WORKTREE_DIRTY")
    said = run("worktrees", "discard", "two", "--force", "--delete-branch").out
    assert said.startswith("Discarded two; the branch feature/two is deleted. What existed nowhere else is saved in /")
    assert "trash" in run("worktrees", "prune").out
    assert run("worktrees", "prune", "--yes").out.splitlines()[-1].endswith("freed")
    assert run("worktrees", "integrate", "one", "--fast-forward").status == 0
    assert run("approve", "1", "--despite-gates").out.endswith("one is integrated\n")
    assert (repository / "README.md").read_text() == "# one\n"
