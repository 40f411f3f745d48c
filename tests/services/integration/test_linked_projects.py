"""The project is a linked worktree of the person's, also of a bare repository: all happens on its branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Admit, Served, git
from tests.services.worktrees.lab import ask, commit, finished
from tests.worker.working import directory_of, ran, working
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture(params=["checkout", pytest.param("bare", marks=pytest.mark.long)])
def repository(repository: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The linked worktree, on the branch dev."""
    if request.param == "bare":
        git("clone", "-q", "--bare", str(repository), str(tmp_path / "bare.git"), cwd=tmp_path)
        repository = tmp_path / "bare.git"
    git("worktree", "add", "-q", "-b", "dev", str(tmp_path / "linked"), cwd=repository)
    return tmp_path / "linked"


@pytest.mark.long
async def test_work_is_integrated_and_adopted_in_a_linked_project(
    served: Served, settle: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    ada, call = await settle("ada", "lab"), served.workbench.call
    main = git("rev-parse", "main", cwd=repository)
    async with working(served, ada.token):
        task = await ran(served, "echo 1 > adopted.txt; exit 1", max_retries=0)
    commit(directory_of(served), "made.txt")
    approval_id = await ask(served.workbench)
    await call("approve", approval_id=approval_id)
    assert (await finished(served.workbench, approval_id))["outcome"]["state"] == "integrated"
    adopted = await call("adopt_attempt", task_id=task["id"], attempt=1)
    await call("approve", approval_id=adopted["approval_id"])
    assert (await finished(served.workbench, adopted["approval_id"]))["outcome"]["state"] == "integrated"
    assert {"made.txt", "adopted.txt"} <= {path.name for path in repository.iterdir()}
    assert git("status", "--porcelain", cwd=repository) == ""
    assert (git("rev-parse", "main", cwd=repository), adopted["target_branch"]) == (main, "dev")
