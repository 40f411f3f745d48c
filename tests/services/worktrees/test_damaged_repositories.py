"""A worker damages the repository of its worktree: it is named at once, holds up nothing, and can be discarded."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.worktrees.lab import commit
from tests.worker.working import directory_of, ran, working
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.services.worktrees import kept_work, rescue
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(50)]  # shorter than git's time limit

BEGIN = "G=$(git rev-parse --git-dir); echo work > work.txt; git add -A; git commit -qm Work; cd $G"
OBJECT = "cd objects; f=$(find ?? -type f | head -1); rm -f $f; mkfifo $f"
DAMAGES = {
    "a FIFO as HEAD": "rm HEAD; mkfifo HEAD",
    "a FIFO as config": "rm config; mkfifo config",
    "a FIFO as an object": OBJECT,
    "a FIFO as alternates": "rm objects/info/alternates; mkfifo objects/info/alternates",
    "a link as HEAD": "rm HEAD; ln -s $WORKBENCH_PROJECT/.aiswarm/server.json HEAD",
    "a link as packed-refs": "rm -f packed-refs; ln -s $WORKBENCH_PROJECT/.aiswarm/server.json packed-refs",
    "another common directory": "echo $WORKBENCH_PROJECT/.git > commondir",
}
OTHERWISE = {"no HEAD": "rm HEAD", "a setting that is none": "echo '[[' >> config", "no objects": "rm -r objects"}

MISLEADING = {
    "a setting that includes what is closed": "git config include.path /proc/1/environ",
    "a setting that includes a FIFO": "cd -; mkfifo pipe; git config include.path ../../../pipe",
    "a FIFO that git reads": "cd -; mkfifo .gitignore",
}
"""What is no damage by the kinds of its files."""
OWN = [".aiswarm"] if abilities().namespaces else []
"""Where the repository of a worktree is mounted when it stands at the project's path."""


def git_of_a_worker(script: str, place: Path, **variables: str) -> None:
    who = {f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["/bin/sh", "-c", script], cwd=place, env=os.environ | who | variables, check=True, timeout=20)


async def test_the_view_of_all_worktrees_shows_the_others_and_names_the_damage(
    workbench: Workbench, repository: Path
) -> None:
    bad, good = await given.worktree(workbench, "bad"), await given.worktree(workbench, "good")
    commit(good)
    head = workbench.settings.repositories / "bad" / "HEAD"
    head.unlink()
    os.mkfifo(head)
    (bad / "only.txt").write_text("only here")
    worktrees = {worktree["name"]: worktree for worktree in (await workbench.call("get_worktree_status"))["worktrees"]}
    assert (worktrees["good"]["ahead"], worktrees["good"]["problem"]) == (1, None)
    assert "REPOSITORY_DAMAGED: " in worktrees["bad"]["problem"]
    assert "HEAD is no regular file" in worktrees["bad"]["problem"]
    for request in ("integrate_worktree", "update_worktree", "discard_worktree", "get_worktree_diff"):
        more = {"uncommitted": True} if request == "get_worktree_diff" else {}
        error = await given.refuses("REPOSITORY_DAMAGED", workbench.call(request, worktree_name="bad", **more))
        assert "workbench worktrees discard bad --force" in error.message
    made = await workbench.call("discard_worktree", worktree_name="bad", force=True)
    assert (Path(made["bundle"]) / "files" / "only.txt").read_text() == "only here"


@pytest.mark.long
@pytest.mark.parametrize("damage", [*DAMAGES, *OTHERWISE, *MISLEADING])
async def test_force_discards_a_worktree_whatever_its_repository_is(
    workbench: Workbench, repository: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(rescue, "LOOK_SECONDS", 1.0)
    place = await given.worktree(workbench)
    script = f"set -e; {BEGIN}; {(DAMAGES | OTHERWISE | MISLEADING)[damage]}"
    git_of_a_worker(script, place, WORKBENCH_PROJECT=str(repository))
    (place / "draft.txt").write_text("draft\n")
    made = await workbench.call("discard_worktree", worktree_name="lab", force=True, delete_branch=True)
    assert (made["status"], made["branch_kept"]) == ("discarded", False)
    assert [path.exists() for path in (place, workbench.settings.repositories / "lab")] == [False, False]
    saved = Path(made["bundle"])
    assert {name: (saved / "files" / name).read_text() for name in ("work.txt", "draft.txt")} == {
        "work.txt": "work\n",
        "draft.txt": "draft\n",
    }
    assert (saved / "repository").is_dir()


@pytest.mark.long
@pytest.mark.parametrize("damage", [*DAMAGES, *OTHERWISE])
async def test_an_attempt_in_a_damaged_worktree_ends_and_the_next_finds_it_restored(
    served: Served, settle: Admit, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    ada = await settle("ada", "lab")
    async with working(served, ada.token):
        task = await ran(served, f"{BEGIN}; {(DAMAGES | OTHERWISE)[damage]}", max_retries=0)
        assert task["status"] == "failed"
        codes = ["REPOSITORY_DAMAGED"] if damage in DAMAGES else ["GIT_FAILED", "IMPORT_REFUSED"]
        assert any(code in task["error_message"] for code in codes), task["error_message"]
        after = await ran(served, "ls; echo more > more.txt", max_retries=0)
    assert after["status"] == "completed"
    (attempt,) = (await given.task_now(served.workbench, task["id"]))["attempts"]
    (aside,) = served.workbench.settings.trash.iterdir()
    assert attempt["problem"].endswith(f"All files of the worktree as it was are in {aside}.")
    assert (aside / "files" / "work.txt").read_text() == "work\n"
    assert sorted(path.name for path in directory_of(served).iterdir()) == [*OWN, ".git", "README.md", "more.txt"]


@pytest.mark.long
@pytest.mark.parametrize("left", ["touch 'git~1'", "rm README.md; mkfifo README.md", "mkfifo .gitignore; exit 1"])
async def test_a_file_that_git_cannot_take_is_moved_to_the_trash(
    served: Served, settle: Admit, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(kept_work, "LOOK_SECONDS", 2.0)
    repositories = served.workbench._ctx.local.repositories
    repositories._opened = replace(await repositories.open(), limit=5.0)
    ada = await settle("ada", "lab")
    async with working(served, ada.token):
        task = await ran(served, f"echo precious > work.txt; {left}", max_retries=0)
        assert (task["status"], (await ran(served))["status"]) == ("failed", "completed")
    (aside,) = served.workbench.settings.trash.iterdir()
    assert (aside / "files" / "work.txt").read_text() == "precious\n"
    assert not (await given.task_now(served.workbench, task["id"]))["attempts"][0]["kept"]
