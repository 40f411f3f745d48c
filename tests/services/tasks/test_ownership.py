"""A planner cancels and changes its own tasks and those below them; others' are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import Refused
from workbench.rules import access
from workbench.services.agents.register import add_pending

pytestmark = pytest.mark.anyio

CHANGES: dict[str, dict[str, Any]] = {
    "cancel_task": {},
    "set_priority": {"priority": 9},
    "reassign_task": {"assigned_agent_id": None},
    "add_dependency": {"depends_on": 1},
    "retry_task": {},
}
PLAN = "plan: survey\ntasks:\n  - {name: count, title: Count, persona: implementer}\n"
OTHER_PLAN = "plan: survey\ntasks:\n  - {name: weigh, title: Weigh, persona: implementer}\n"


async def change(workbench: Workbench, agent: Admitted, name: str, task_id: int) -> None:
    """Change a task as an agent; one that is to be retried is cancelled first."""
    if name == "retry_task":
        await workbench.call("cancel_task", task_id=task_id)
    await workbench.dispatch(agent.caller, name, {"task_id": task_id, **CHANGES[name]})


async def spawned_by(workbench: Workbench, planner: Admitted, name: str) -> Admitted:
    """A planner that another one spawned, without a process."""
    token = access.new_token("wba")
    more = {"capabilities": {}, "persona_id": "planner", "parent": planner.caller.agent}
    made = await workbench.store.write(lambda tx: add_pending(tx, workbench._ctx, name, token, **more))
    await workbench.call("approve", approval_id=made.approval_id, choices={"agent_id": name})
    return Admitted(name, token, await workbench.identify(token))


@pytest.mark.parametrize("name", CHANGES)
async def test_a_planner_may_not_change_the_tasks_of_others(workbench: Workbench, admit: Admit, name: str) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    await given.task(workbench, by=pam)
    for by, owner in ((None, "operator"), (pia, "pia")):
        with pytest.raises(Refused, match="FORBIDDEN") as refused:
            await change(workbench, pam, name, await given.task(workbench, by=by))
        assert refused.value.details["owner"] == owner


@pytest.mark.parametrize("name", CHANGES)
async def test_a_planner_changes_its_own_tasks_their_subtasks_and_its_agents_tasks(
    workbench: Workbench, admit: Admit, name: str
) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    sub = await spawned_by(workbench, pam, "sub")
    deep = await spawned_by(workbench, sub, "deep")
    await given.task(workbench, by=pam)
    own, of_deep, parent = [await given.task(workbench, by=by) for by in (pam, deep, pam)]
    below = await given.task(workbench, by=pia, parent_task_id=await given.task(workbench, parent_task_id=parent))
    with pytest.raises(Refused, match="FORBIDDEN"):
        await change(workbench, deep, name, await given.task(workbench, by=pam))
    await workbench.call("update_agent", agent_id="pam", changes={"agent_id": "pamela"})
    pamela = Admitted("pamela", pam.token, await workbench.identify(pam.token))
    for task in (own, of_deep, below):
        await change(workbench, pamela, name, task)


async def test_a_planner_shapes_the_task_it_holds(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", "planner", role="planner")
    task = await given.task(workbench, persona_id="planner")
    part = {"parent_task_id": task, "title": "A part", "persona_id": "implementer"}
    await workbench.dispatch(pam.caller, "create_subtask", part)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(pam.caller, "create_subtask", part | {"blocks_parent": True})
    await given.claim(workbench, pam, task)
    subtask = await workbench.dispatch(pam.caller, "create_subtask", part | {"blocks_parent": True})
    await given.done_by(workbench, pam, "release_task", task)
    await given.done_by(workbench, pam, "cancel_task", subtask["id"])
    with pytest.raises(Refused, match="FORBIDDEN"):
        await given.done_by(workbench, pam, "cancel_task", task)


async def test_a_planner_updates_only_its_own_plan_and_its_own_tasks_there(workbench: Workbench, admit: Admit) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    await workbench.dispatch(pia.caller, "create_plan", {"text": PLAN})
    await workbench.dispatch(pam.caller, "create_plan", {"text": PLAN})  # the same text changes nothing
    for dry_run in (True, False):
        with pytest.raises(Refused, match="belongs to pia"):
            update = {"text": OTHER_PLAN, "update": True, "dry_run": dry_run}
            await workbench.dispatch(pam.caller, "create_plan", update)
    plan = await workbench.dispatch(pia.caller, "create_plan", {"text": OTHER_PLAN, "update": True})
    assert list(plan["tasks"]) == ["weigh"]
    added = OTHER_PLAN + "  - {name: count, title: Count, persona: implementer}\n"
    await workbench.call("create_plan", text=added, update=True)
    with pytest.raises(Refused, match="belongs to operator"):
        await workbench.dispatch(pia.caller, "create_plan", {"text": OTHER_PLAN, "update": True})
