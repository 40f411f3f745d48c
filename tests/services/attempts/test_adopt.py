"""The kept work of an attempt: shown, adopted, pruned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.services.worktrees.lab import commit, finished
from tests.worker.working import working
from workbench.errors import Conflict, NotFound, Refused
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


@pytest.fixture
async def kept(served: Served, settle: Admit, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A task that failed; its one attempt made `good.txt`."""
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    ada = await settle("ada", "lab")
    task_id = await given.task(served.workbench, run="echo good > good.txt; exit 1", max_retries=0)
    async with working(served, ada.token):
        return await given.reached(served.workbench, task_id, "failed")


async def test_kept_work_is_shown_and_is_a_candidate_that_is_merged_when_it_is_approved(
    served: Served, kept: dict[str, Any], repository: Path, admit: Admit
) -> None:
    call = served.workbench.call
    diff = await call("get_attempt_diff", task_id=kept["id"], attempt=1)
    assert [(file["path"], file["status"], file["added"]) for file in diff["files"]] == [("good.txt", "A", 1)]
    assert "+good" in diff["files"][0]["patch"]
    assert diff["commit"] == kept["attempts"][0]["kept"]["commit"]
    with pytest.raises(NotFound, match="NO_KEPT_WORK"):
        await call("get_attempt_diff", task_id=kept["id"], attempt=2)
    pat = await admit("pat", role="planner")
    with pytest.raises(Refused, match="FORBIDDEN"):  # the worktree is not the planner's
        await given.done_by(served.workbench, pat, "adopt_attempt", kept["id"], attempt=1)
    adoption = await call("adopt_attempt", task_id=kept["id"], attempt=1)
    assert (adoption["worktree"], adoption["target_branch"]) == ("lab", "main")
    (approval,) = [a for a in (await call("list_approvals"))["approvals"] if a["kind"] == "integration"]
    assert (approval["id"], approval["payload"]["source_commit"]) == (adoption["approval_id"], adoption["commit"])
    assert [file["path"] for file in approval["payload"]["files"]] == ["good.txt"]
    assert approval["payload"]["changed"] == []
    await call("approve", approval_id=adoption["approval_id"])
    assert (await finished(served.workbench, adoption["approval_id"]))["outcome"]["state"] == "integrated"
    assert "good.txt" in git("ls-tree", "--name-only", "main", cwd=repository).split()
    assert (await given.task_now(served.workbench, kept["id"]))["status"] == "failed"


@pytest.mark.long
async def test_conflicting_work_is_adopted_only_after_its_worktree_is_discarded(
    served: Served, kept: dict[str, Any]
) -> None:
    worktree = served.workbench.settings.worktrees / "lab"
    commit(worktree, "good.txt", "better\n")
    error = await given.refusal(served.workbench.call("adopt_attempt", task_id=kept["id"], attempt=1))
    assert (type(error), error.code, error.details["files"]) == (Conflict, "MERGE_CONFLICT", ["good.txt"])
    assert (worktree / "good.txt").read_text() == "better\n"
    await served.workbench.call("discard_worktree", worktree_name="lab")
    adoption = await served.workbench.call("adopt_attempt", task_id=kept["id"], attempt=1)
    assert adoption["worktree"] == f"attempt-{kept['id']}-1"


@pytest.mark.long
async def test_prune_deletes_kept_work_when_it_is_old_enough(
    served: Served, kept: dict[str, Any], repository: Path
) -> None:
    call = served.workbench.call
    ref = kept["attempts"][0]["kept"]["ref"]
    (item,) = [i for i in (await call("prune_worktrees", apply=True))["items"] if i["kind"] == "attempt"]
    assert (item["path"], item["safe"]) == (ref, False)
    served.workbench.settings.__dict__["keep_attempts_days"] = 0.0
    await call("prune_worktrees", apply=True)
    assert git("for-each-ref", "refs/workbench", cwd=repository) == ""
    attempt = (await call("get_task", task_id=kept["id"]))["attempts"][0]
    assert (attempt["kept"], attempt["problem"]) == (None, "What it made was pruned.")
