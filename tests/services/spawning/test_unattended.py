"""Open tasks without an agent are counted, and the agents whose restart would help are named."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Command, Served
from tests.services.processes.running import over, serving, spawn
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NEW = {"title": "t", "persona_id": "implementer", "run": "true"}
NOBODY = {"tasks": 0, "restartable": [], "message": ""}


async def unattended_work(workbench: Workbench) -> dict[str, Any]:
    """The result of the operation."""
    return await workbench.call("get_unattended_work")


async def test_a_task_that_an_active_agent_can_do_is_not_counted(workbench: Workbench, admit: Admit) -> None:
    assert await unattended_work(workbench) == NOBODY
    await workbench.call("create_task", **NEW)
    said = "There is no agent to do 1 open task, which needs the persona implementer. Spawn one."
    assert await unattended_work(workbench) == {"tasks": 1, "restartable": [], "message": said}
    other = await admit("rita", persona_id="reviewer")
    await workbench.dispatch(other.caller, "heartbeat", {})
    assert (await unattended_work(workbench))["tasks"] == 1
    ada = await admit("ada")
    await workbench.dispatch(ada.caller, "heartbeat", {})
    assert await unattended_work(workbench) == NOBODY
    await workbench.call("create_task", **NEW, target_worktree="elsewhere")
    await workbench.call("create_task", **NEW, dependencies=[1])
    assert (await unattended_work(workbench))["tasks"] == 1
    after = await given.task(workbench, "after", dependencies=[2])
    of_task = [(await workbench.call("get_unattended_work", task_id=task))["message"] for task in (1, after)]
    needs = "the persona implementer in the worktree elsewhere"
    assert of_task == ["", f"There is no agent to do 1 open task, which needs {needs}. Spawn one."]


@pytest.mark.long
async def test_an_agent_that_ended_is_offered_and_after_its_restart_nothing_is_left(served: Served) -> None:
    walt = await spawn(served, name="walt")
    await spawn(served, name="rita", persona_id="reviewer")
    await given.task(served.workbench, "t", assigned_agent_id="rita")
    assert (await unattended_work(served.workbench))["restartable"] == []
    os.kill(walt["pid"], signal.SIGKILL)
    await over(served, "walt")
    await served.workbench.call("create_task", **NEW)
    found = await unattended_work(served.workbench)
    assert (found["restartable"], found["message"][-13:]) == (["walt"], "Restart walt.")
    await served.workbench.call("restart_agent", agent_id="walt")
    await given.reached(served.workbench, 2, "completed")
    assert (await unattended_work(served.workbench))[
        "tasks"
    ] == 1  # rita is a script worker, and her task has no command


@pytest.mark.long
async def test_status_says_how_to_restart(settings: Settings, command: Command) -> None:
    async with serving(settings) as served:
        await spawn(served, name="walt")
        await served.workbench.call("terminate_agent", agent_id="walt")
        await served.workbench.call("create_task", **NEW)
        ran = await command("status")
        last = "There is no agent to do 1 open task. Restart walt. (workbench restart walt)"
        assert (ran.status, ran.out.splitlines()[-1]) == (0, last)
        assert "walt runs as process" in (await command("restart", "walt")).out
        await given.reached(served.workbench, 1, "completed")
        assert "There is no agent" not in (await command("status")).out
