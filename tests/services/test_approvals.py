"""One inbox: each question is decided once, and a handler that fails leaves it open."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError
from workbench.ops import OPERATOR

pytestmark = pytest.mark.anyio

HOWS = ("approve", "reject")


async def ask(workbench: Workbench, name: str = "Ada") -> int:
    """Put a question into the inbox."""
    return int((await workbench.call("register", name=name))["approval_id"])


async def ids_of(workbench: Workbench, **how: Any) -> list[int]:
    """Approvals by id."""
    return [a["id"] for a in (await workbench.call("list_approvals", **how))["approvals"]]


async def test_the_inbox_has_what_waits_oldest_first_and_the_rest_when_asked(workbench: Workbench) -> None:
    yes, no, open_one, last = [await ask(workbench, name) for name in "abcd"]
    await workbench.call("approve", approval_id=yes)
    await workbench.call("reject", approval_id=no)
    assert await ids_of(workbench) == [open_one, last]
    assert await ids_of(workbench, limit=1) == [open_one]
    assert await ids_of(workbench, status=None) == [yes, no, open_one, last]
    assert await ids_of(workbench, status="approved") == [yes]
    assert await ids_of(workbench, status="rejected", kind="registration") == [no]
    assert await ids_of(workbench, kind="integration") == []


async def test_a_decision_on_a_hub_names_the_user_of_the_hub_who_clicked_or_whose_server_it_is(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    for clicked, person in ((None, "ada"), ("ada", "ada"), ("bert", "bert")):
        question = {"approval_id": await ask(workbench)}
        decided = await workbench.dispatch(replace(OPERATOR, person=clicked), "reject", question)
        assert decided["approval"]["person"] == person


@pytest.mark.parametrize("first", ["approve", "reject"])
async def test_a_question_is_decided_once_and_by_the_person(workbench: Workbench, admit: Admit, first: str) -> None:
    planner, question = await admit("planner-1", role="planner"), await ask(workbench)
    for name, arguments in (("list_approvals", {}), *((how, {"approval_id": question}) for how in HOWS)):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(planner.caller, name, arguments)
    assert await ids_of(workbench) == [question]
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("reject", approval_id=question, reason="x" * 1_001)
    reason = {"reason": "x" * 1_000} if first == "reject" else {}
    decided = (await workbench.call(first, approval_id=question, **reason))["approval"]
    assert decided["reason"] == reason.get("reason")
    for second in HOWS:
        with pytest.raises(Conflict, match="ALREADY_DECIDED"):
            await workbench.call(second, approval_id=question)
        with pytest.raises(NotFound, match="APPROVAL_NOT_FOUND"):
            await workbench.call(second, approval_id=7)
    assert (await workbench.call("list_approvals", status=None))["approvals"][-1] == decided


async def test_one_of_many_concurrent_decisions_counts(workbench: Workbench) -> None:
    question = await ask(workbench)
    calls = [workbench.call(name, approval_id=question) for name in ("approve", "reject") * 8]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    (done,) = [answer for answer in answers if isinstance(answer, dict)]
    assert {a.code for a in answers if isinstance(a, WorkbenchError)} == {"ALREADY_DECIDED"}
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["registration_status"] == done["outcome"]["status"]
    events = (await workbench.call("list_events", kinds=["approval.*", "agent.*"]))["events"]
    assert len(events) == 4


async def test_get_approval_waits_for_the_decision(workbench: Workbench) -> None:
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
