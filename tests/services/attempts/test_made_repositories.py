"""Repositories that agents make inside their worktrees (`git init`, `git clone`, a scaffolder) are part of the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.services.worktrees.lab import ask, finished
from tests.worker.working import directory_of, ran, working
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

UNBORN = "git init -q sub; echo precious > sub/f.txt; echo done > done.txt"
COMMITTED = f"{UNBORN}; git -C sub add -A; git -C sub commit -qm x"
LINKED = f"{COMMITTED}; git add -A 2>/dev/null; git commit -qm link"


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)


@pytest.mark.parametrize("run", [pytest.param(UNBORN, marks=pytest.mark.long), LINKED], ids=["unborn", "linked"])
async def test_files_of_nested_repositories_are_kept_on_failure_and_merged_on_completion(
    served: Served, settle: Admit, repository: Path, run: str
) -> None:
    ada = await settle("ada", "lab")
    async with working(served, ada.token):
        failed = await ran(served, f"{run}; exit 3", max_retries=0)
        completed = await ran(served, run, max_retries=0)
    assert (failed["status"], completed["status"]) == ("failed", "completed")
    approval_id = await ask(served.workbench)
    await served.workbench.call("approve", approval_id=approval_id)
    assert (await finished(served.workbench, approval_id))["outcome"]["state"] == "integrated"
    for commit in (f"refs/workbench/attempts/{failed['id']}/1", "main"):
        assert git("show", f"{commit}:sub/f.txt", cwd=repository) == "precious"
        assert " commit " not in git("ls-tree", "-r", commit, cwd=repository)


async def test_a_link_that_would_be_merged_in_place_of_files_is_refused_by_its_name(
    served: Served, settle: Admit, repository: Path
) -> None:
    await settle("ada", "lab")
    lab = directory_of(served)
    git("init", "-q", "sub dir", cwd=lab)
    for place, message in ((lab / "sub dir", "x"), (lab, "link")):
        (place / "f.txt").write_text("precious")
        git("add", "-A", cwd=place)
        git("commit", "-qm", message, cwd=place)
    error = await given.refuses("NESTED_REPOSITORY", served.workbench.call("integrate_worktree", worktree_name="lab"))
    assert error.details["files"] == ["sub dir"]
    call = served.workbench.call
    error = await given.refuses("WORKTREE_DIRTY", call("discard_worktree", worktree_name="lab"))
    assert error.details["files"] == ["sub dir"]
    assert (lab / "sub dir" / "f.txt").exists()
    made = await call("discard_worktree", worktree_name="lab", force=True)
    git("fetch", "-q", made["bundle"], "refs/*:refs/back/*", cwd=repository)
    uncommitted = "refs/back/workbench/saved/lab/uncommitted"
    assert git("show", f"{uncommitted}:sub dir/f.txt", cwd=repository) == "precious"
