"""The requester of an approval learns the decision: by waiting, by events, and from the worktree itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, followed
from tests.services.worktrees.lab import commit, worktree_row
from workbench.app import Workbench
from workbench.errors import NotFound, Refused

pytestmark = pytest.mark.anyio


async def ask_as_planner(workbench: Workbench, planner: Admitted, name: str = "lab") -> int:
    """A worktree of a planner with a commit, and the approval of its integration that it requested."""
    worktree = await workbench.dispatch(planner.caller, "create_worktree", {"name": name})
    commit(Path(worktree["path"]))
    return int(
        (await workbench.dispatch(planner.caller, "request_integration", {"worktree_name": name}))["approval_id"]
    )


async def get(workbench: Workbench, agent: Admitted, approval_id: int, **more: Any) -> dict[str, Any]:
    """Get an approval as an agent."""
    return await workbench.dispatch(agent.caller, "get_approval", {"approval_id": approval_id, **more})


async def test_a_planner_waits_for_the_decision_on_what_it_requested(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    number = await ask_as_planner(workbench, pam)
    assert (await get(workbench, pam, number))["status"] == "pending"
    pending = (await worktree_row(workbench))["approval"]
    assert (pending["id"], pending["status"], pending["requester"]) == (number, "pending", "pam")
    waiting = asyncio.create_task(get(workbench, pam, number, wait_seconds=20))
    await followed(workbench)
    await workbench.call("reject", approval_id=number, reason="Tests are missing.")
    (worktree,) = (await workbench.dispatch(pam.caller, "get_worktree_status", {"worktree_name": "lab"}))["worktrees"]
    assert (worktree["approval_id"], worktree["approval"]["id"]) == (None, number)
    for told in (await waiting, worktree["approval"]):
        assert (told["status"], told["decided_by"], told["reason"]) == ("rejected", "operator", "Tests are missing.")
    await given.worktree(workbench, "other")
    assert (await worktree_row(workbench, "other"))["approval"] is None


async def test_only_the_requesting_planner_gets_the_events_even_when_renamed(
    workbench: Workbench, admit: Admit
) -> None:
    pam, pia, ada = await admit("pam", role="planner"), await admit("pia", role="planner"), await admit("ada")
    number = await ask_as_planner(workbench, pam)
    for hidden in (number, number + 100):
        with pytest.raises(NotFound, match=f"There is no approval {hidden} that you requested"):
            await get(workbench, pia, hidden)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await get(workbench, ada, number)
    assert (await workbench.call("get_approval", approval_id=number))["requester"] == "pam"
    await workbench.call("update_agent", agent_id="pam", changes={"agent_id": "pamela"})
    await workbench.call("reject", approval_id=number, reason="No.")
    pamela = Admitted("pamela", pam.token, await workbench.identify(pam.token))
    assert (await get(workbench, pamela, number))["reason"] == "No."
    mine, kinds = f"approval:{number}", ["approval.requested", "approval.rejected"]
    for agent, told in ((pamela, [(kinds[0], mine, None), (kinds[1], mine, "No.")]), (pia, [])):
        page = await workbench.dispatch(agent.caller, "list_events", {"kinds": kinds})
        assert [(e["kind"], e["subject"], e["data"].get("reason")) for e in page["events"]] == told
