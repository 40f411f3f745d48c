"""Records made by the kernel of a run belong to the run's session; those of a person beside it do not."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Served
from workbench.client import HttpClient
from workbench.client.address import SESSION_VARIABLE
from workbench.errors import NotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(served: Served) -> str:
    await given.project(served.workbench, "sweep night")
    return str((await given.session(served.workbench, "night 1", "sweep night"))["id"])


async def test_tasks_plans_and_agents_made_by_a_runs_kernel_belong_to_its_session(
    served: Served, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SESSION_VARIABLE, session)
    async with HttpClient(served.info.url, served.workbench.operator_token) as kernel:
        await kernel.call("create_task", title="of the run", persona_id="implementer")
        await kernel.call("create_plan", text="plan: p\ntasks: [{name: a, title: A, persona: implementer}]")
        chosen = await kernel.call("create_session", project_id="sweep night", name="another")
        await kernel.call("create_task", title="chosen", persona_id="implementer", session_id=chosen["id"])
        registration = await kernel.call("register", name="helper", capabilities={})
        await kernel.call("approve", approval_id=registration["approval_id"])
        [agent] = (await kernel.call("list_agents"))["agents"]
    tasks = [await given.task_now(served.workbench, number) for number in (1, 2, 3)]
    sessions = {task["title"]: task["session_id"] for task in tasks}
    assert sessions == {"of the run": session, "A": session, "chosen": chosen["id"]}
    assert agent["session_id"] == session


async def test_a_session_that_is_not_there_is_one_coded_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SESSION_VARIABLE, "gone")
    async with HttpClient(served.info.url, served.workbench.operator_token) as kernel:
        with pytest.raises(NotFound, match=r"^SESSION_NOT_FOUND: "):
            await kernel.call("create_task", title="x", persona_id="implementer")


async def test_agents_that_a_person_admits_beside_a_run_are_in_no_session(served: Served, session: str) -> None:
    await served.workbench.call("start_run", name="night 1", session_id=session)
    registration = await served.workbench.call("register", name="of the run", capabilities={})
    await served.workbench.call("approve", approval_id=registration["approval_id"], choices={"session_id": session})
    mine = await served.workbench.call("register", name="mine", capabilities={})
    await served.workbench.call("approve", approval_id=mine["approval_id"])
    page = await served.workbench.call("list_agents")
    assert {agent["name"]: agent["session_id"] for agent in page["agents"]} == {"of the run": session, "mine": None}
