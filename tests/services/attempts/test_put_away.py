"""The work of an attempt that did not complete its task is put away, or blocks every merge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.failing_git import FailingGit, failing_git
from tests.services.worktrees.lab import ask, worktree_row
from tests.worker.working import working
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

BAD = "echo bad > bad.txt; git add -A; git commit -qm Bad; echo left > left.txt; exit 3"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingGit]:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    with failing_git(monkeypatch) as found:
        yield found


@pytest.mark.long
async def test_no_merge_takes_unsaved_work_of_a_failed_attempt(
    served: Served, settle: Admit, repository: Path, broken: FailingGit
) -> None:
    ada, call = await settle("ada", "lab"), served.workbench.call
    task_id = await given.task(served.workbench, run=BAD, max_retries=0)
    broken.begin("unconfined", 1, "write-tree", again=True)
    async with working(served, ada.token):
        task = await given.reached(served.workbench, task_id, "failed")
    assert "What it made is not put away" in task["attempts"][0]["problem"]
    for request in ("integrate_worktree", "update_worktree", "resolve_worktree"):
        error = await given.refuses("WORK_NOT_PUT_AWAY", call(request, worktree_name="lab"))
        assert f"Attempt 1 at task {task_id} by ada" in error.message
    assert f"Attempt 1 at task {task_id} did not complete" in (await worktree_row(served.workbench))["problem"]
    broken.end()
    error = await given.refusal(call("integrate_worktree", worktree_name="lab"))
    assert error.code == "NOTHING_TO_INTEGRATE"
    kept = git("ls-tree", "--name-only", f"refs/workbench/attempts/{task_id}/1", cwd=repository).split()
    assert kept == ["README.md", "bad.txt", "left.txt"]
    assert (await worktree_row(served.workbench))["problem"] is None


@pytest.mark.long
async def test_an_approval_is_void_once_the_work_of_its_attempt_is_put_away(
    served: Served, settle: Admit, repository: Path, broken: FailingGit
) -> None:
    ada, call = await settle("ada", "lab"), served.workbench.call
    goes_on = "touch ../made; until [ -e ../go ]; do sleep 0.01; done"
    run = f"echo 1 > bad.txt; git add -A; git commit -qm Bad; {goes_on}; {BAD}"
    task_id = await given.task(served.workbench, run=run, max_retries=0)
    lab = served.workbench.settings.worktrees / "lab"
    async with working(served, ada.token):
        await given.appeared(lab.parent / "made")
        approval_id = await ask(served.workbench)
        broken.begin("EAGAIN", 1, "write-tree")
        (lab.parent / "go").touch()
        await given.reached(served.workbench, task_id, "failed")
    await call("approve", approval_id=approval_id)
    approval = await call("get_approval", approval_id=approval_id, wait_seconds=20)
    assert (approval["status"], approval["outcome"]["code"]) == ("failed", "APPROVAL_VOID")
    assert git("log", "--format=%s", "main", cwd=repository) == git("log", "-1", "--format=%s", "main", cwd=repository)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ENOSPC with status 1"])  # as if nothing had changed; others are in the soak test
async def test_a_task_whose_commit_failed_is_not_completed(
    served: Served, settle: Admit, repository: Path, broken: FailingGit, kind: str
) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(served.workbench, run="echo good > good.txt", max_retries=0)
    broken.begin(kind, 1, "add, commit")
    async with working(served, ada.token):
        task = await given.reached(served.workbench, task_id, "failed", "completed")
    assert (task["status"], broken.failed) == ("failed", ["add, commit, rev-parse"])
    files = git("ls-tree", "--name-only", f"refs/workbench/attempts/{task_id}/1", cwd=repository).split()
    assert files == ["README.md", "good.txt"]
