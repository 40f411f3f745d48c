"""Script workers take only tasks with a command; the creator of one without is told who can do it."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admitted, Served
from tests.services.processes.running import process, spawn
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.services.access.authentication import COMMANDS_ONLY

pytestmark = pytest.mark.anyio

NEW = {"title": "t", "persona_id": "implementer"}
ONE = "Task {} has no command (run): only an LLM agent or a person can do it."


async def test_new_tasks_without_a_command_are_noted(workbench: Workbench) -> None:
    for number, run in enumerate((None, "", []), 1):
        assert (await workbench.call("create_task", **NEW, run=run))["note"] == ONE.format(number)
    assert (await workbench.call("create_task", **NEW, run="true"))["note"] is None
    assert (await workbench.call("create_subtask", parent_task_id=1, title="s"))["note"] == ONE.format(5)
    some = [NEW | {"run": "true"}, *[NEW] * 7]
    page = await workbench.call("create_tasks", tasks=some)
    said = "Tasks 7, 8, 9, 10, 11 and 2 more have no command (run): only an LLM agent or a person can do them."
    assert page["note"] == said
    assert (await workbench.call("create_tasks", tasks=some[:1]))["note"] is None


async def test_a_new_plan_notes_its_tasks_without_a_command(workbench: Workbench) -> None:
    line = "  - {{name: {0}, title: {0}, persona: implementer{1}}}\n"
    text = "plan: p\ntasks:\n" + line.format("a", ", run: make") + line.format("b", "")
    assert (await workbench.call("create_plan", text=text))["note"] == ONE.format(2)
    text += line.format("c", "")
    assert (await workbench.call("create_plan", text=text, update=True))["note"] == ONE.format(3)


async def test_an_agent_that_only_runs_commands_is_offered_no_other_tasks(workbench: Workbench, ada: Admitted) -> None:
    registration = await workbench.call(
        "register", name="script", capabilities={COMMANDS_ONLY: True}, persona_id="implementer"
    )
    await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "script"})
    script = Admitted("script", registration["token"], await workbench.identify(registration["token"]))
    await workbench.call("create_task", **NEW, priority=900)
    await workbench.call("create_task", **NEW, assigned_agent_id="script")
    assert (await workbench.dispatch(script.caller, "heartbeat_and_get_tasks", {}))["available"] == []
    assert await given.claim(workbench, script) is None
    with pytest.raises(Conflict, match="it has no command; only an LLM agent or a person can do it") as refused:
        await given.claim(workbench, script, 1)
    assert refused.value.details["reasons"] == ["command"]
    await workbench.call("create_task", **NEW, run="true", priority=1)
    assert (await given.claim(workbench, script))["id"] == 3
    assert (await given.claim(workbench, ada))["id"] == 1


@pytest.mark.long
@pytest.mark.timeout(60)
async def test_a_script_worker_leaves_a_task_without_a_command_pending(served: Served) -> None:
    first = await served.workbench.call("create_task", **NEW, priority=900)
    await spawn(served, name="walt")
    await given.reached(
        served.workbench, (await served.workbench.call("create_task", **NEW, run="true"))["id"], "completed"
    )
    task = await served.workbench.call("get_task", task_id=first["id"])
    assert (task["status"], task["attempts"]) == ("pending", [])
    (agent,) = (await served.workbench.call("list_agents"))["agents"]
    assert agent["capabilities"] == {COMMANDS_ONLY: True}
    with pytest.raises(Conflict, match="NO_COMMAND"):
        await spawn(served, task_id=first["id"])
    assert (await process(served, "walt"))["running"]
