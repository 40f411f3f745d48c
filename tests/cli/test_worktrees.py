"""The commands about worktrees."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Type, data
from tests.cli.test_completion import completions
from tests.conftest import git
from tests.git.parts import CommandLog


def worktree(run: Type, name: str = "lab", **files: str) -> Path:
    """A new worktree with a commit of some files."""
    place = Path(data(run("--json", "worktrees", "create", name))["path"])
    commit(place, name, **files)
    return place


def commit(place: Path, title: str, **files: str) -> None:
    """Commit some Markdown files."""
    for stem, text in files.items():
        (place / f"{stem}.md").write_text(text)
    git("add", ".", cwd=place)
    git("commit", "-q", "--allow-empty", "-m", title, cwd=place)


@pytest.mark.long
def test_a_worktree_is_created_and_merged_or_discarded(run: Type, repository: Path) -> None:
    worktree(run, "island", count="344\n")
    assert "island" in run("worktrees").out
    assert data(run("--json", "worktrees", "status", "island"))["ahead"] == 1
    assert "count.md" in run("worktrees", "status", "island").out
    assert "+344" in run("worktrees", "diff", "island", "count.md").out
    assert run("integrate", "island").out.splitlines() == [
        "To merge island into main, run `workbench approve 1`.",
        "Tasks: none in this worktree.",
        "Gates: none are set.",
        "Checks: no conflicts with main; protected parts are unchanged.",
    ]
    assert "wb/island/main into main: 1 commit" in run("approvals").out
    assert run("approve", "1").out.splitlines()[1] == "1   island is integrated"
    assert (repository / "count.md").read_text() == "344\n"
    run("call", "create_worktree", "name=other")
    assert run("discard", "other").out == "Discarded other; the branch wb/other/main is kept.\n"
    assert run("worktrees").out == "There are no active worktrees.\n"


@pytest.mark.long
def test_worktrees_are_created_compared_updated_and_cleaned_up(run: Type, repository: Path) -> None:
    assert run("worktrees", "conflicts").out == "No conflicts are predicted.\n"
    assert run("worktrees", "create", "one", "--from", "main").out.startswith("Created one on branch wb/one/main in /")
    run("worktrees", "create", "two", "--branch", "feature/two")
    for name in ("one", "two"):
        place = repository / ".aiswarm" / "worktrees" / name
        commit(place, name, README=f"# {name}\n")
    assert run("worktrees", "conflicts").out.splitlines()[1].split() == ["one", "two", "README.md"]
    assert run("worktrees", "update", "one").out == "one is up to date.\n"
    (repository / ".aiswarm" / "worktrees" / "two" / "draft.txt").write_text("draft\n")
    assert "+draft" in run("worktrees", "diff", "two", "--uncommitted").out
    assert run("worktrees", "discard", "two").err.startswith("WORKTREE_DIRTY")
    out = run("worktrees", "discard", "two", "--force", "--delete-branch").out
    assert out.startswith("Discarded two; the branch feature/two is deleted. What existed nowhere else is saved in /")
    assert "trash" in run("worktrees", "prune").out
    assert run("worktrees", "prune", "--yes").out.splitlines()[-1].endswith("freed")
    assert run("worktrees", "integrate", "one", "--fast-forward").status == 0
    assert run("approve", "1", "--despite-gates").out.splitlines()[1] == "1   one is integrated"
    assert (repository / "README.md").read_text() == "# one\n"


@pytest.mark.long
def test_a_conflict_is_resolved_by_the_steps_that_are_shown(run: Type, repository: Path) -> None:
    place = worktree(run, README="# Theirs\n")
    commit(repository, "Mine", README="# Mine\n")
    out = run("integrate", "lab").out
    assert "It conflicts with main; `workbench worktrees resolve lab` shows the steps." in out
    assert "Checks: conflicts with main in README.md" in run("approvals").out
    assert "`workbench worktrees resolve lab`" in run("worktrees", "update", "lab").out
    steps = run("worktrees", "resolve", "lab").out.splitlines()
    assert steps[0] == "main is being merged into lab. In conflict: README.md."
    assert steps[1].startswith(f"1. Edit README.md in {place}: keep the right lines")
    assert run("worktrees", "resolve", "lab", "--finish").err.startswith("CONFLICTS_LEFT: README.md in lab still has")
    (place / "README.md").write_text("# Both\n")
    assert run("worktrees", "resolve", "lab").out.startswith(
        "main is being merged into lab. No file is in conflict any"
    )
    assert run("worktrees", "resolve", "lab", "--finish").out.startswith("main is merged into lab.\n1. Request the int")
    run("integrate", "lab")
    assert run("approve", "--all").status == 0
    assert (repository / "README.md").read_text() == "# Both\n"


def test_a_command_in_a_worktree_sees_its_target_as_it_is(run: Type, repository: Path) -> None:
    place = worktree(run)
    commit(repository, "Mine", mine="mine\n")
    assert run("worktrees", "run", "lab", "--", "git", "merge", "-q", "main").status == 0
    assert (place / "mine.md").read_text() == "mine\n"


@pytest.mark.long
def test_closed_worktrees_and_decided_approvals_stay_visible(run: Type, repository: Path) -> None:
    for name in ("lab", "other"):
        worktree(run, name)
    run("integrate", "lab")
    run("approve", "1")
    run("discard", "other", "--reason", "Dead end")
    merged = git("rev-parse", "main", cwd=repository)
    lines = run("worktrees", "--all").out.splitlines()
    assert "There are no active worktrees." in lines
    lab, other = (next(line.split() for line in lines if line.startswith(name)) for name in ("lab", "other"))
    assert lab[1:7] == ["wb/lab/main", "main", "integrated", merged[:12], getpass.getuser(), getpass.getuser()]
    assert (other[3], other[-2:]) == ("discarded", ["Dead", "end"])
    shown = run("worktrees", "status", "lab").out
    assert merged[:12] in shown
    assert "path" not in shown.split()  # it is gone
    assert "No file has changed" not in shown
    assert "`workbench worktrees diff lab` prints what it changed." in shown
    assert run("worktrees", "diff", "lab").status == 0
    assert run("worktrees", "run", "lab", "--", "true").err.startswith("WORKTREE_CLOSED: The worktree lab is integrat")
    assert [one["name"] for one in data(run("--json", "worktrees", "--all"))["closed"]] == ["other", "lab"]
    assert "lab into main" in run("approvals", "--all").out
    assert run("approvals").out == "Nothing needs your approval.\n"


@pytest.mark.long
def test_open_tasks_are_named_before_their_worktree_is_integrated(run: Type, repository: Path) -> None:
    place = worktree(run)
    run("call", "create_task", "title=Tests", "persona_id=implementer", "target_worktree=lab")
    for command in (("integrate", "lab"), ("approvals",)):
        assert "Tasks: 1 open (1)." in run(*command).out
    run("approve", "1")
    run("call", "cancel_task", "task_id=1")
    assert run("retry", "1").err.startswith("WORKTREE_CLOSED: Task 1 works in the worktree lab, which is integrated.")
    assert run("retry", "1", "--recreate").out == "Task 1 is retried.\n"
    assert place.is_dir()


@pytest.mark.long
def test_the_request_to_merge_a_worktree_is_shown_in_words(run: Type, repository: Path) -> None:
    worktree(run)

    def told() -> list[str]:
        lines = run("worktrees", "status", "lab").out.splitlines()
        return [line.split(maxsplit=1)[1] for line in lines if "approval" in line]

    assert told() == []
    run("integrate", "lab")
    assert told() == ["1, pending"]
    run("reject", "1", "--reason", "Not yet.")
    person = data(run("--json", "worktrees", "status", "lab"))["approval"]["person"]
    assert told() == [f"1, rejected by {person}: Not yet."]


@pytest.mark.long
def test_changes_are_requested_and_listed(run: Type, repository: Path) -> None:
    place = worktree(run, count="344\n345\n")
    assert run("worktrees", "changes", "lab").out == "No changes were requested in lab.\n"
    run("integrate", "lab")
    comments = ("-c", "count.md:1-2", "Which island?", "-m", "Nearly.", "--task", "implementer")
    head = git("rev-parse", "--short=7", "HEAD", cwd=place)
    asked = run("request-changes", "lab", *comments)
    assert asked.out == f"Requested changes in lab at {head}. Task 1 has them. Approval 1 stays open.\n"
    assert "wb/lab/main into main: 1 commit, changes requested" in run("approvals").out
    (request,) = data(run("--json", "worktrees", "changes", "lab"))
    (comment,) = request["comments"]
    assert (comment["line"], comment["end_line"], comment["quoted"]) == (1, 2, ["344", "345"])
    lines = run("worktrees", "changes", "lab").out.splitlines()
    assert [line.split()[-1] for line in lines] == ["state", "Nearly.", "open"]
    assert run("request-changes", "lab", "-c", "count.md", "?").status == 2
    assert run("request-changes", "lab").err.startswith("NOTHING_REQUESTED")


@pytest.mark.long
def test_completing_worktrees_runs_no_git(
    run: Type, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ran = set[str](), []
    log = CommandLog(tmp_path / "logged")
    monkeypatch.setenv("PATH", f"{log.folder}:{os.environ['PATH']}")
    for name in ("one", "two", "three"):
        assert run("worktrees", "create", name).status == 0
        made.add(name)
        log.commands()
        assert completions("worktrees", "status", "") == made
        ran.append(log.commands())
    assert ran[0] == ran[1] == ran[2]


def test_submodules_without_files_are_named_when_a_worktree_is_made_and_in_the_list(
    run: Type, repository: Path
) -> None:
    git("clone", "-q", str(repository), "lib", cwd=repository)
    (repository / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib\n')
    git("add", "lib", ".gitmodules", cwd=repository)
    git("commit", "-q", "-m", "A submodule", cwd=repository)
    assert run("worktrees", "create", "lab").out.endswith(
        "lab. Without the files of submodules: lib (it is not initialised in your checkout).\n"
    )
    assert "lab: Without the files of submodules: lib (it is not initialised in your checkout)." in run("worktrees").out
