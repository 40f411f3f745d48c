"""Script workers take only tasks with a command; the creator of one without is told who can do it."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Served
from tests.services.processes.running import process, spawn
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.ops import Caller
from workbench.services.access.authentication import COMMANDS_ONLY

pytestmark = pytest.mark.anyio

NEW = {"title": "t", "persona_id": "implementer"}
ONE = "Task {} has no command (run): only an LLM agent or a person can do it."


async def admitted(workbench: Workbench, name: str, **capabilities: bool) -> Caller:
    """An agent with capabilities."""
    made = await workbench.call("register", name=name, persona_id="implementer", capabilities=capabilities)
    await workbench.call("approve", approval_id=made["approval_id"], choices={"agent_id": name})
    return await workbench.identify(made["token"])


@pytest.mark.parametrize("run", [None, "", []])
async def test_a_new_task_without_a_command_says_who_can_do_it(workbench: Workbench, run: Any) -> None:
    assert (await workbench.call("create_task", **NEW, run=run))["note"] == ONE.format(1)
    assert (await workbench.call("create_task", **NEW, run="true"))["note"] is None
    assert (await workbench.call("create_subtask", parent_task_id=1, title="s"))["note"] == ONE.format(3)


async def test_many_new_tasks_say_which_have_no_command(workbench: Workbench) -> None:
    some = [NEW | {"run": "true"}, *[NEW] * 7]
    made = await workbench.call("create_tasks", tasks=some)
    said = "Tasks 2, 3, 4, 5, 6 and 2 more have no command (run): only an LLM agent or a person can do them."
    assert made["note"] == said
    assert (await workbench.call("create_tasks", tasks=some[:1]))["note"] is None


async def test_a_new_plan_says_which_of_its_tasks_have_no_command(workbench: Workbench) -> None:
    line = "  - {{name: {0}, title: {0}, persona: implementer{1}}}\n"
    text = "plan: p\ntasks:\n" + line.format("a", ", run: make") + line.format("b", "")
    assert (await workbench.call("create_plan", text=text))["note"] == ONE.format(2)
    text += line.format("c", "")
    assert (await workbench.call("create_plan", text=text, update=True))["note"] == ONE.format(3)


async def test_an_agent_that_only_runs_commands_is_offered_no_other_tasks(workbench: Workbench) -> None:
    script, other = await admitted(workbench, "script", commands_only=True), await admitted(workbench, "llm")
    await workbench.call("create_task", **NEW, priority=900)
    await workbench.call("create_task", **NEW, assigned_agent_id="script")
    assert (await workbench.dispatch(script, "heartbeat_and_get_tasks", {}))["available"] == []
    assert (await workbench.dispatch(script, "claim_task", {}))["task"] is None
    with pytest.raises(Conflict, match="it has no command; only an LLM agent or a person can do it") as refused:
        await workbench.dispatch(script, "claim_task", {"task_id": 1})
    assert refused.value.details["reasons"] == ["command"]
    await workbench.call("create_task", **NEW, run="true", priority=1)
    assert (await workbench.dispatch(script, "claim_task", {}))["task"]["id"] == 3
    assert (await workbench.dispatch(other, "claim_task", {}))["task"]["id"] == 1


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
    (found,) = (await served.workbench.call("list_agents"))["agents"]
    assert found["capabilities"] == {COMMANDS_ONLY: True}
    with pytest.raises(Conflict, match="NO_COMMAND"):
        await spawn(served, task_id=first["id"])
    assert (await process(served, "walt"))["running"]
