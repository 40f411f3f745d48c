"""The callers that may hold tasks."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from tests.services.tasks.leases.calls import HOLDING, beat
from workbench.app import Workbench
from workbench.errors import BadInput, Refused

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["claim_task", "heartbeat_and_get_tasks", *HOLDING])
async def test_the_operator_and_readers_cannot_hold_tasks(workbench: Workbench, admit: Admit, name: str) -> None:
    needs = {"task_id": await given.task(workbench)} if name in HOLDING else {}
    more = {"error_message": "no"} if name == "fail_task" else {}
    with pytest.raises(BadInput, match="AGENT_ONLY"):
        await workbench.call(name, **needs, **more)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch((await admit("eve", tool="read")).caller, name, {})


async def test_the_agent_id_and_persona_in_a_call_must_be_the_callers_own(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    await admit("bob")
    task = await given.task(workbench)
    assert await beat(workbench, ada, agent_id="ada", persona_id="Implementer")
    assert (await workbench.dispatch(ada.caller, "claim_task", {"agent_id": "ada"}))["task"]["id"] == task
    for name, arguments in (
        ("heartbeat_and_get_tasks", {"agent_id": "bob"}),
        ("heartbeat_and_get_tasks", {"persona_id": "tester"}),
        ("claim_task", {"agent_id": "bob"}),
        ("report_task_progress", {"agent_id": "bob", "task_id": task}),
    ):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(ada.caller, name, arguments)
