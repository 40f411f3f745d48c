"""The actor of an event: `system` for unrequested changes, and the approver for approved ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served
from tests.services.processes import running
from tests.services.worktrees.lab import approval, ask, commit, finished, settled
from workbench.app import Workbench
from workbench.ops import Caller
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def actors(workbench: Workbench, *kinds: str) -> set[tuple[str, str]]:
    """The kinds of events with their actors."""
    page = await workbench.call("list_events", kinds=list(kinds), limit=1_000)
    return {(event["kind"], event["actor"]) for event in page["events"]}


async def lab_of(workbench: Workbench) -> Caller:
    """A planner with a commit in its worktree `lab`."""
    registration = await workbench.call("register", name="pam", persona_id="planner")
    await workbench.call("approve", approval_id=registration["approval_id"])
    pam = await workbench.identify(registration["token"])
    lab = await workbench.dispatch(pam, "create_worktree", {"name": "lab"})
    commit(Path(lab["path"]))
    return pam


@pytest.mark.long
async def test_the_end_of_a_process_is_noted_by_the_system(served: Served) -> None:
    task = await given.task(served.workbench, run="true")
    spawned = await running.spawn(served, task_id=task)
    assert spawned["approval_id"] is None  # the operator's spawn is admitted, so nothing is left to approve
    await running.over(served, spawned["agent_id"])
    ended = await given.until(lambda: actors(served.workbench, "agent.exited"))
    assert ended == {("agent.exited", "system")}
    assert await actors(served.workbench, "agent.spawned") == {("agent.spawned", "operator")}


@pytest.mark.long
async def test_a_queued_merge_names_its_approver_and_its_consequences_the_system(
    served: Served, repository: Path
) -> None:
    commit(await given.worktree(served.workbench))
    number = await ask(served.workbench)
    await served.workbench.call("approve", approval_id=number)
    assert (await finished(served.workbench, number))["decided_by"] == "operator"
    assert await actors(served.workbench, "worktree.integrated") == {("worktree.integrated", "operator")}


@pytest.mark.long
async def test_a_returned_merge_names_the_system_as_actor_and_the_planner_as_requester(
    settings: Settings, repository: Path
) -> None:
    changed = settings.model_copy(update={"integration_gates": ("test ! -e late.txt",)})
    async with Workbench.open(changed) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        pam = await lab_of(workbench)
        request = await workbench.dispatch(pam, "request_integration", {"worktree_name": "lab"})
        await settled(workbench, request["approval_id"])
        commit(repository, "late.txt")
        await workbench.call("approve", approval_id=request["approval_id"])
        first = await finished(workbench, request["approval_id"])
        assert (first["status"], first["decided_by"]) == ("failed", "operator")
        refused = await given.until(lambda: actors(workbench, "worktree.refused"))
        assert refused == {("worktree.refused", "system")}

        async def pending() -> list[dict[str, Any]]:
            return list((await workbench.call("list_approvals"))["approvals"])

        again = (await given.until(pending))[0]
        assert again["requester"] == "pam"
        page = await workbench.call("list_events", subject=f"approval:{again['id']}")
        assert (page["events"][0]["kind"], page["events"][0]["actor"]) == ("approval.requested", "system")


@pytest.mark.parametrize("is_served", [True, False])
@pytest.mark.long
async def test_without_required_approval_the_requester_decides(settings: Settings, is_served: bool) -> None:
    changed = settings.model_copy(update={"integration_requires_approval": False})
    async with Workbench.open(changed) as workbench, Servers(workbench) as servers:
        if is_served:
            await servers.start(0)
        how = {"worktree_name": "lab", "require_human_approval": False}
        request = await workbench.dispatch(await lab_of(workbench), "integrate_worktree", how)
        decided = await finished(workbench, request["approval_id"])
        assert (decided["status"], decided["requester"], decided["decided_by"]) == ("approved", "pam", "pam")
        assert await actors(workbench, "worktree.integrated") == {("worktree.integrated", "pam")}
        assert (await approval(workbench, request["approval_id"]))["outcome"]["state"] == "integrated"
