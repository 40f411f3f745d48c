"""Who requested an approval learns the decision: by waiting, by events, and from the worktree itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, followed
from tests.services.worktrees.lab import commit, one
from workbench.app import Workbench
from workbench.errors import NotFound, Refused

pytestmark = pytest.mark.anyio


async def asked(workbench: Workbench, planner: Admitted, name: str = "lab") -> int:
    """A worktree of a planner with a commit, and the approval of its integration that it requested."""
    made = await workbench.dispatch(planner.caller, "create_worktree", {"name": name})
    commit(Path(made["path"]))
    return int(
        (await workbench.dispatch(planner.caller, "request_integration", {"worktree_name": name}))["approval_id"]
    )


async def get(workbench: Workbench, agent: Admitted, approval_id: int, **more: Any) -> dict[str, Any]:
    """Get an approval as an agent."""
    return await workbench.dispatch(agent.caller, "get_approval", {"approval_id": approval_id, **more})


async def test_a_planner_waits_for_the_decision_on_what_it_requested(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    number = await asked(workbench, pam)
    assert (await get(workbench, pam, number))["status"] == "pending"
    waiting = asyncio.create_task(get(workbench, pam, number, wait_seconds=20))
    await followed(workbench)
    await workbench.call("reject", approval_id=number, reason="Tests are missing.")
    found = await waiting
    assert (found["status"], found["decided_by"], found["reason"]) == ("rejected", "operator", "Tests are missing.")


async def test_a_planner_gets_the_events_of_what_it_requested_and_of_nothing_else(
    workbench: Workbench, admit: Admit
) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    number = await asked(workbench, pam)
    await workbench.call("reject", approval_id=number, reason="No.")
    told = {}
    for agent in (pam, pia):
        page = await workbench.dispatch(
            agent.caller, "list_events", {"kinds": ["approval.requested", "approval.rejected"]}
        )
        told[agent.agent_id] = [(e["kind"], e["subject"], e["data"].get("reason")) for e in page["events"]]
    mine = f"approval:{number}"
    assert told == {
        "pam": [("approval.requested", mine, None), ("approval.rejected", mine, "No.")],
        "pia": [],
    }


async def test_a_renamed_planner_still_learns_the_decision(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    number = await asked(workbench, pam)
    await workbench.call("update_agent", agent_id="pam", changes={"agent_id": "pamela"})
    await workbench.call("reject", approval_id=number, reason="No.")
    pamela = Admitted("pamela", pam.token, await workbench.identify(pam.token))
    assert (await get(workbench, pamela, number))["reason"] == "No."
    page = await workbench.dispatch(pamela.caller, "list_events", {"kinds": ["approval.rejected"]})
    assert [event["subject"] for event in page["events"]] == [f"approval:{number}"]


async def test_others_do_not_see_the_approval(workbench: Workbench, admit: Admit) -> None:
    pam, pia, ada = await admit("pam", role="planner"), await admit("pia", role="planner"), await admit("ada")
    number = await asked(workbench, pam)
    for hidden in (number, number + 100):
        with pytest.raises(NotFound, match=f"There is no approval {hidden} that you requested"):
            await get(workbench, pia, hidden)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await get(workbench, ada, number)
    assert (await workbench.call("get_approval", approval_id=number))["requester"] == "pam"


async def test_the_status_of_a_worktree_has_its_newest_approval(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    number = await asked(workbench, pam)
    pending = (await one(workbench))["approval"]
    assert (pending["id"], pending["status"], pending["requester"]) == (number, "pending", "pam")
    await workbench.call("reject", approval_id=number, reason="No.")
    (found,) = (await workbench.dispatch(pam.caller, "get_worktree_status", {"worktree_name": "lab"}))["worktrees"]
    decided = found["approval"]
    assert (found["approval_id"], decided["id"]) == (None, number)
    assert (decided["status"], decided["decided_by"], decided["reason"]) == ("rejected", "operator", "No.")


async def test_a_worktree_without_a_request_has_no_approval(workbench: Workbench) -> None:
    await workbench.call("create_worktree", name="lab")
    assert (await one(workbench))["approval"] is None
