"""Permission to see and change plans, and their progress."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from tests.services.tasks.plans.conftest import CHECKLIST, EXTRA, TEXT
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, Refused

pytestmark = pytest.mark.anyio


async def test_a_plan_of_another_session_is_out_of_sight(workbench: Workbench, admit: Admit) -> None:
    await workbench.call("create_plan", text=TEXT.replace("title: First", "title: First, session: night"))
    await workbench.call("create_plan", text=CHECKLIST, name="common")
    paula = (await admit("paula", role="planner")).caller
    assert [p["plan"] for p in (await workbench.dispatch(paula, "list_plans", {}))["plans"]] == ["common"]
    with pytest.raises(NotFound, match="PLAN_NOT_FOUND"):
        await workbench.dispatch(paula, "export_plan", {"plan": "p"})
    for how in ({}, {"update": True}, {"dry_run": True}):
        with pytest.raises(Conflict, match=r"PLAN_EXISTS.*Give this one another name") as refused:
            await workbench.dispatch(paula, "create_plan", {"text": TEXT, **how})
        assert refused.value.details == {}
    text = CHECKLIST.replace("persona=reviewer", "persona=reviewer session=night")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(paula, "create_plan", {"text": text, "name": "common", "update": True})
    moved = await workbench.call("create_plan", text=text, name="common", update=True)
    assert list(moved["diff"]["changed"]) == ["last"]
    again = await workbench.call("create_plan", text=CHECKLIST.replace("Part", "Parts"), name="common", update=True)
    assert again["diff"]["text"] == "+ parts: Parts\n- part: Part"
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await workbench.call("create_plan", text=text.replace("night", "day"), name="day")


async def test_a_planners_plan_is_its_sessions_and_says_so_to_others_only(workbench: Workbench, admit: Admit) -> None:
    (night,) = (await workbench.call("list_sessions"))["sessions"]
    token = (await admit("paula", role="planner")).token
    await workbench.call("update_agent", agent_id="paula", changes={"session_id": night["id"]})
    paula = await workbench.identify(token)
    await workbench.dispatch(paula, "create_plan", {"text": TEXT})
    (event,) = (await workbench.call("list_events", kinds=["plan.created"]))["events"]
    assert event["session"] == night["id"]
    own = (await workbench.dispatch(paula, "export_plan", {"plan": "p"}))["text"]
    assert ("session" in own, "session" in (await workbench.call("export_plan", plan="p"))["text"]) == (False, True)


async def test_a_task_that_goes_to_another_session_is_reserved_for_nobody_there(
    workbench: Workbench, ada: Admitted
) -> None:
    await workbench.call("create_plan", text=EXTRA)
    await workbench.call("reassign_task", task_id=1, assigned_agent_id=ada.agent_id)
    for title, reserved_for in (("Other", "ada"), ("Other, session: night", None)):
        await workbench.call("create_plan", text=EXTRA.replace("Extra", title), update=True)
        assert (await given.task_now(workbench, 1))["reserved_for"] == reserved_for


async def test_list_plans_counts_the_tasks_of_each_plan_by_outcome(workbench: Workbench, ada: Admitted) -> None:
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "create_plan", {"text": TEXT})
    version = (await workbench.call("create_plan", text=TEXT.replace("worktree: other", "worktree:")))["version"]
    assert (await workbench.call("list_plans"))["plans"] == [
        {
            "plan": "p",
            "tasks": 3,
            "completed": 0,
            "failed": 0,
            "cancelled": 0,
            "open": 3,
            "blocked": 2,
            "version": version,
        }
    ]
    await given.end(workbench, ada, 1)
    await given.end(workbench, ada, 3, "cancelled")
    assert (await workbench.call("list_plans"))["plans"] == [
        {
            "plan": "p",
            "tasks": 3,
            "completed": 1,
            "failed": 0,
            "cancelled": 1,
            "open": 1,
            "blocked": 0,
            "version": version,
        }
    ]
