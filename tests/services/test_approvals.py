"""One inbox: each question is decided once, and a handler that fails leaves it open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError

pytestmark = pytest.mark.anyio


async def ask(workbench: Workbench, name: str = "Ada") -> int:
    """Put a question into the inbox."""
    return int((await workbench.call("register", name=name))["approval_id"])


async def listed(workbench: Workbench, **how: Any) -> list[int]:
    """Approvals by id."""
    return [a["id"] for a in (await workbench.call("list_approvals", **how))["approvals"]]


async def test_the_inbox_has_what_waits_oldest_first_and_the_rest_when_asked(workbench: Workbench) -> None:
    yes, no, open_one, last = [await ask(workbench, name) for name in "abcd"]
    await workbench.call("approve", approval_id=yes)
    await workbench.call("reject", approval_id=no)
    assert await listed(workbench) == [open_one, last]
    assert await listed(workbench, limit=1) == [open_one]
    assert await listed(workbench, status=None) == [yes, no, open_one, last]
    assert await listed(workbench, status="approved") == [yes]
    assert await listed(workbench, status="rejected", kind="registration") == [no]
    assert await listed(workbench, kind="integration") == []


@pytest.mark.parametrize("first", ["approve", "reject"])
@pytest.mark.parametrize("second", ["approve", "reject"])
async def test_a_question_is_decided_once(workbench: Workbench, first: str, second: str) -> None:
    question = await ask(workbench)
    decided = (await workbench.call(first, approval_id=question))["approval"]
    with pytest.raises(Conflict, match="ALREADY_DECIDED"):
        await workbench.call(second, approval_id=question)
    assert (await workbench.call("list_approvals", status=None))["approvals"] == [decided]


async def test_of_many_who_decide_at_the_same_time_exactly_one_does(workbench: Workbench) -> None:
    question = await ask(workbench)
    calls = [workbench.call(name, approval_id=question) for name in ("approve", "reject") * 8]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    (done,) = [answer for answer in answers if isinstance(answer, dict)]
    assert {a.code for a in answers if isinstance(a, WorkbenchError)} == {"ALREADY_DECIDED"}
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["registration_status"] == done["outcome"]["status"]
    events = (await workbench.call("list_events", kinds=["approval.*", "agent.*"]))["events"]
    assert len(events) == 4


async def test_who_waits_for_a_decision_gets_it_when_it_is_made(workbench: Workbench) -> None:
    question, other = await ask(workbench), await ask(workbench)
    assert not (await workbench.call("get_approval", approval_id=question))["settled"]
    assert (await workbench.call("get_approval", approval_id=question, wait_seconds=0.01))["status"] == "pending"
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(workbench.call("get_approval", approval_id=question, wait_seconds=20))
        await workbench.call("approve", approval_id=other)
        await asyncio.sleep(0)
        assert not waiting.done()
        decided = (await workbench.call("reject", approval_id=question))["approval"]
    assert (decided["settled"], decided) == (True, waiting.result())
    with pytest.raises(NotFound, match="APPROVAL_NOT_FOUND"):
        await workbench.call("get_approval", approval_id=99, wait_seconds=20)


async def test_only_the_person_sees_the_inbox_and_decides(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("planner-1", role="planner")
    question = await ask(workbench)
    for name, arguments in {
        "list_approvals": {},
        "approve": {"approval_id": question},
        "reject": {"approval_id": question},
    }.items():
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(planner.caller, name, arguments)
    assert await listed(workbench) == [question]


async def test_a_question_that_was_never_asked_cannot_be_answered(workbench: Workbench) -> None:
    for name in ("approve", "reject"):
        with pytest.raises(NotFound, match="APPROVAL_NOT_FOUND"):
            await workbench.call(name, approval_id=7)


async def test_a_reason_has_a_limit(workbench: Workbench) -> None:
    question = await ask(workbench)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("reject", approval_id=question, reason="x" * 1_001)
    decided = await workbench.call("reject", approval_id=question, reason="x" * 1_000)
    assert decided["approval"]["reason"] == "x" * 1_000
