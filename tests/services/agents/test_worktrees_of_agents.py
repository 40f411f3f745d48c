"""An agent that Workbench did not start gets a worktree to work in from the operator, and learns where it is."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit, git
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound

pytestmark = pytest.mark.anyio


async def test_an_admission_can_give_a_worktree_and_the_agent_learns_its_path(
    workbench: Workbench, admit: Admit
) -> None:
    await given.worktree(workbench)
    place = workbench.settings.worktrees / "lab"
    registration = await workbench.call("register", name="ada", persona_id="implementer")
    await workbench.call("approve", approval_id=registration["approval_id"], choices={"worktree": "lab"})
    ada = await workbench.identify(registration["token"])
    for name in ("whoami", "registration_status"):
        answer = await workbench.dispatch(ada, name, {})
        assert (answer["worktree"], answer["worktree_path"]) == ("lab", str(place)), name
    await given.task(workbench, "Count", target_worktree="lab")
    claim = await workbench.dispatch(ada, "claim_task", {})
    assert (claim["task"]["title"], claim["worktree_path"]) == ("Count", str(place))
    (place / "count.txt").write_text("3")
    git("add", "count.txt", cwd=place)
    git("commit", "-q", "-m", "Counted", cwd=place)
    await workbench.dispatch(ada, "complete_task", {"task_id": claim["task"]["id"]})
    request = await workbench.call("integrate_worktree", worktree_name="lab")
    await workbench.call("approve", approval_id=request["approval_id"])
    assert (workbench.settings.project / "count.txt").read_text() == "3"


async def test_the_worktree_of_an_agent_can_be_set_and_cleared_after_admission(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    assert (await workbench.dispatch(ada.caller, "whoami", {}))["worktree_path"] is None
    await given.worktree(workbench)
    await given.task(workbench, "Count", target_worktree="lab")
    with pytest.raises(Conflict, match="it is for the worktree lab, and you have none"):
        await workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
    changed = await workbench.call("update_agent", agent_id="ada", changes={"worktree": "lab"})
    assert changed["worktree"] == "lab"
    assert (await workbench.dispatch(await workbench.identify(ada.token), "claim_task", {}))["task"]["id"] == 1
    changed = await workbench.call("update_agent", agent_id="ada", changes={"worktree": None})
    assert changed["worktree"] is None


async def test_an_agent_cannot_be_given_a_missing_or_closed_worktree(workbench: Workbench, admit: Admit) -> None:
    await admit("ada")
    await given.refuses(
        "WORKTREE_NOT_FOUND", workbench.call("update_agent", agent_id="ada", changes={"worktree": "lab"})
    )
    await given.worktree(workbench)
    await workbench.call("discard_worktree", worktree_name="lab")
    await given.refuses("WORKTREE_CLOSED", workbench.call("update_agent", agent_id="ada", changes={"worktree": "lab"}))
    with pytest.raises(NotFound, match="WORKTREE_NOT_FOUND"):
        await workbench.call("add_admission_rule", name="all", pattern="*", grants={"worktree": "nowhere"})
