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
@pytest.mark.parametrize("owner", ["the operator", "another planner"])
async def test_a_planner_may_not_change_the_tasks_of_others(
    workbench: Workbench, admit: Admit, name: str, owner: str
) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    await given.task(workbench, by=pam)
    task = await given.task(workbench, by=None if owner == "the operator" else pia)
    with pytest.raises(Refused, match="FORBIDDEN") as refused:
        await change(workbench, pam, name, task)
    assert refused.value.details["owner"] == ("operator" if owner == "the operator" else "pia")


@pytest.mark.parametrize("name", CHANGES)
async def test_a_planner_changes_its_own_tasks_also_after_it_was_renamed(
    workbench: Workbench, admit: Admit, name: str
) -> None:
    pam = await admit("pam", role="planner")
    await given.task(workbench, by=pam)
    task = await given.task(workbench, by=pam)
    await workbench.call("update_agent", agent_id="pam", changes={"agent_id": "pamela"})
    await change(workbench, Admitted("pamela", pam.token, await workbench.identify(pam.token)), name, task)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_planner_changes_what_is_below_its_tasks_whoever_made_it(
    workbench: Workbench, admit: Admit, name: str
) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    await given.task(workbench, by=pam)
    parent = await given.task(workbench, by=pam)
    below = await given.task(workbench, by=pia, parent_task_id=await given.task(workbench, parent_task_id=parent))
    await change(workbench, pam, name, below)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_planner_changes_the_tasks_of_agents_it_spawned_but_not_the_reverse(
    workbench: Workbench, admit: Admit, name: str
) -> None:
    pam = await admit("pam", role="planner")
    sub = await spawned_by(workbench, pam, "sub")
    deep = await spawned_by(workbench, sub, "deep")
    await given.task(workbench, by=pam)
    await change(workbench, pam, name, await given.task(workbench, by=deep))
    with pytest.raises(Refused, match="FORBIDDEN"):
        await change(workbench, deep, name, await given.task(workbench, by=pam))


async def test_a_planner_shapes_the_task_it_holds(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", "planner")
    task = await given.task(workbench, persona_id="planner")
    await workbench.dispatch(pam.caller, "claim_task", {"task_id": task})
    part = {"parent_task_id": task, "title": "A part", "persona_id": "implementer", "blocks_parent": True}
    made = await workbench.dispatch(pam.caller, "create_subtask", part)
    await workbench.dispatch(pam.caller, "release_task", {"task_id": task})
    await workbench.dispatch(pam.caller, "cancel_task", {"task_id": made["id"]})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(pam.caller, "cancel_task", {"task_id": task})


async def test_a_planner_makes_only_its_own_tasks_wait_for_a_subtask(workbench: Workbench, admit: Admit) -> None:
    pam, task = await admit("pam", role="planner"), await given.task(workbench)
    part = {"parent_task_id": task, "title": "A part"}
    await workbench.dispatch(pam.caller, "create_subtask", part)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(pam.caller, "create_subtask", part | {"blocks_parent": True})


async def test_a_planner_updates_only_its_own_plan(workbench: Workbench, admit: Admit) -> None:
    pam, pia = await admit("pam", role="planner"), await admit("pia", role="planner")
    await workbench.dispatch(pia.caller, "create_plan", {"text": PLAN})
    await workbench.dispatch(pam.caller, "create_plan", {"text": PLAN})  # the same text changes nothing
    for dry_run in (True, False):
        with pytest.raises(Refused, match="belongs to pia"):
            update = {"text": OTHER_PLAN, "update": True, "dry_run": dry_run}
            await workbench.dispatch(pam.caller, "create_plan", update)
    made = await workbench.dispatch(pia.caller, "create_plan", {"text": OTHER_PLAN, "update": True})
    assert list(made["tasks"]) == ["weigh"]


async def test_a_planner_does_not_remove_what_the_operator_added_to_its_plan(
    workbench: Workbench, admit: Admit
) -> None:
    pam = await admit("pam", role="planner")
    await workbench.dispatch(pam.caller, "create_plan", {"text": PLAN})
    added = PLAN + "  - {name: weigh, title: Weigh, persona: implementer}\n"
    await workbench.call("create_plan", text=added, update=True)
    with pytest.raises(Refused, match="belongs to operator"):
        await workbench.dispatch(pam.caller, "create_plan", {"text": PLAN, "update": True})
