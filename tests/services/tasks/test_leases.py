"""Doing tasks under leases, with a clock that only the test moves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import ExitStack
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from tests.conftest import Admit, Admitted, Clock, followed
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError
from workbench.model import SECOND, iso
from workbench.ops import OPERATOR, Caller
from workbench.services import SERVICES
from workbench.services.access import personas
from workbench.services.tasks import attempts, expiry
from workbench.settings import Settings
from workbench.store.queries import Query
from workbench.store.sqlite import open_store

pytestmark = pytest.mark.anyio

HOLDING = ("start_task", "report_task_progress", "complete_task", "fail_task", "release_task")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Leases of two minutes, two retries, pauses of 10, 20 and at most 25 seconds."""
    return settings.model_copy(update={"retry_base_seconds": 10.0, "retry_cap_seconds": 25.0})


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


async def make(workbench: Workbench, title: str = "t", persona_id: str = "implementer", **more: Any) -> int:
    """Create a task; its id."""
    return int((await workbench.call("create_task", title=title, persona_id=persona_id, **more))["id"])


async def do(workbench: Workbench, agent: Admitted, name: str, task_id: int, **more: Any) -> dict[str, Any]:
    """Call an operation about a task as an agent."""
    if name == "fail_task":
        more = {"error_message": "no", **more}
    return await workbench.dispatch(agent.caller, name, {"task_id": task_id, **more})


async def claim(workbench: Workbench, agent: Admitted, **which: int) -> Any:
    """Claim a task; the task or None."""
    return (await workbench.dispatch(agent.caller, "claim_task", which))["task"]


async def beat(workbench: Workbench, agent: Admitted, **more: Any) -> dict[str, Any]:
    """A heartbeat."""
    return await workbench.dispatch(agent.caller, "heartbeat_and_get_tasks", more)


async def get(workbench: Workbench, task_id: int) -> dict[str, Any]:
    """Everything about a task."""
    return await workbench.call("get_task", task_id=task_id)


async def sweep(workbench: Workbench) -> int:
    """End the leases and pauses that are over by the clock."""
    return await workbench.store.write(lambda tx: expiry.expire(tx, workbench.settings, lambda: 0.0))


async def enter(workbench: Workbench, name: str, persona_id: str = "implementer") -> Admitted:
    """Register and admit an agent."""
    made = await workbench.call("register", name=name, persona_id=persona_id)
    await workbench.call("approve", approval_id=made["approval_id"])
    return Admitted(name, made["token"], await workbench.identify(made["token"]))


async def kinds(workbench: Workbench) -> list[str]:
    """The kinds of the events about tasks so far."""
    return [e["kind"] for e in (await workbench.call("list_events", kinds=["task.*"], limit=1000))["events"]]


# Claiming


async def test_a_claim_gives_the_task_under_its_lease(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada, task = await admit("ada"), await make(workbench, run="echo hi")
    clock.forward(5)
    found = await claim(workbench, ada)
    assert (found["id"], found["status"], found["attempt"], found["assigned_agent_id"]) == (task, "claimed", 1, "ada")
    assert (found["run"], found["progress"], found["started_at"]) == ("echo hi", 0, None)
    assert found["claimed_at"] == iso(clock.now)
    assert found["lease_expires_at"] == iso(clock.now + 120 * SECOND)
    assert await kinds(workbench) == ["task.created", "task.claimed"]


async def test_tasks_are_taken_reserved_first_then_by_priority_then_by_age(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    await admit("bob")
    low = await make(workbench, priority=-1)
    old, young = await make(workbench), await make(workbench)
    high = await make(workbench, priority=900)
    mine = await make(workbench, "mine", "tester", priority=-1_000, assigned_agent_id="ada", target_worktree="lab")
    await make(workbench, priority=999, assigned_agent_id="bob")
    await make(workbench, "not my work", "tester", priority=999)
    await make(workbench, "not my place", target_worktree="lab", priority=999)
    await make(workbench, "not yet", dependencies=[low], priority=0)
    order = [mine, high, old, young, low]
    assert [t["id"] for t in (await beat(workbench, ada))["available"]] == order
    assert [t["id"] for t in (await beat(workbench, ada, limit=2))["available"]] == order[:2]
    for task in order:
        assert (await claim(workbench, ada))["id"] == task
        await do(workbench, ada, "complete_task", task)
    assert (await claim(workbench, ada))["title"] == "not yet"


async def test_who_works_in_a_worktree_takes_its_tasks_and_those_of_none(workbench: Workbench, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    inside, anywhere = await make(workbench, target_worktree="lab"), await make(workbench, priority=600)
    elsewhere = await make(workbench, target_worktree="other", priority=999)
    assert [t["id"] for t in (await beat(workbench, ada))["available"]] == [anywhere, inside]
    with pytest.raises(Conflict, match="another persona, worktree, session or agent"):
        await claim(workbench, ada, task_id=elsewhere)
    assert (await claim(workbench, ada, task_id=inside))["worktree"] == "lab"


async def test_a_reviewer_without_a_worktree_takes_what_belongs_to_none(workbench: Workbench, admit: Admit) -> None:
    rex = await admit("rex", "reviewer")
    await make(workbench, "elsewhere", "reviewer", target_worktree="lab")
    here = await make(workbench, "here", "reviewer")
    assert (await claim(workbench, rex))["id"] == here
    await do(workbench, rex, "complete_task", here)
    assert await claim(workbench, rex) is None


async def test_without_a_persona_only_what_is_reserved_can_be_taken(workbench: Workbench) -> None:
    made = await workbench.call("register", name="nil")
    await workbench.call("approve", approval_id=made["approval_id"])
    nil = Admitted("nil", made["token"], await workbench.identify(made["token"]))
    await make(workbench)
    assert await claim(workbench, nil) is None
    mine = await make(workbench, assigned_agent_id="nil")
    assert (await claim(workbench, nil))["id"] == mine


async def test_a_second_claim_gives_what_is_held_and_changes_nothing(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada, first = await admit("ada"), await make(workbench)
    await make(workbench, priority=999, assigned_agent_id="ada")
    held = await claim(workbench, ada, task_id=first)
    clock.forward(50)
    assert await claim(workbench, ada) == await claim(workbench, ada, task_id=first) == held
    assert (await kinds(workbench)).count("task.claimed") == 1


async def test_of_several_that_are_held_the_one_in_progress_goes_first(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    first, second = await make(workbench), await make(workbench)
    await claim(workbench, ada, task_id=first)
    await claim(workbench, ada, task_id=second)
    await do(workbench, ada, "start_task", second)
    assert (await claim(workbench, ada))["id"] == second
    assert [t["id"] for t in (await beat(workbench, ada))["holding"]] == [second, first]


async def test_an_agent_may_hold_several_that_it_names(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada = await admit("ada")
    long, short = await make(workbench), await make(workbench, lease_seconds=60)
    await claim(workbench, ada, task_id=short)
    await claim(workbench, ada, task_id=long)
    work = await beat(workbench, ada)
    assert [t["id"] for t in work["holding"]] == [long, short]
    assert work["lease_expires_at"] == iso(clock.now + 60 * SECOND)
    assert (await claim(workbench, ada))["id"] == long


async def test_of_many_who_claim_at_once_exactly_one_gets_the_task(workbench: Workbench, admit: Admit) -> None:
    agents = [await admit(f"a{n}") for n in range(6)]
    task = await make(workbench)
    found = await asyncio.gather(*(claim(workbench, agent) for agent in agents))
    assert [t["id"] for t in found if t] == [task]
    other = await make(workbench)
    by_name = [claim(workbench, agent, task_id=other) for agent in agents]
    answers = await asyncio.gather(*by_name, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == [*(["Conflict"] * 5), "dict"]


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("held", "it is claimed."),
        ("completed", "it is completed."),
        ("failed", "it is failed."),
        ("cancelled", "it is cancelled."),
        ("blocked", "it waits for 1."),
        ("resting", "its next attempt waits for the backoff to end."),
        ("persona", "it is for another persona, worktree, session or agent."),
        ("worktree", "it is for another persona, worktree, session or agent."),
        ("reserved", "it is for another persona, worktree, session or agent."),
    ],
)
async def test_a_task_that_cannot_be_claimed_says_why(workbench: Workbench, admit: Admit, case: str, why: str) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    first = await make(workbench, "first")
    task = await make(
        workbench,
        persona_id="tester" if case == "persona" else "implementer",
        dependencies=[first] if case == "blocked" else [],
        target_worktree="lab" if case == "worktree" else None,
        assigned_agent_id="bob" if case == "reserved" else None,
    )
    if case in ("held", "completed", "failed", "resting"):
        await claim(workbench, bob, task_id=task)
    ends: dict[str, Coroutine[Any, Any, Any]] = {
        "completed": do(workbench, bob, "complete_task", task),
        "failed": do(workbench, bob, "fail_task", task, retryable=False),
        "resting": do(workbench, bob, "fail_task", task),
        "cancelled": workbench.call("cancel_task", task_id=task),
    }
    for name, end in ends.items():
        if name == case:
            await end
        else:
            end.close()
    before = await get(workbench, task)
    with pytest.raises(Conflict, match="TASK_NOT_CLAIMABLE") as refused:
        await claim(workbench, ada, task_id=task)
    assert refused.value.message == f"Task {task} cannot be claimed: {why}"
    assert refused.value.details["status"] == before["status"]
    assert await get(workbench, task) == before


# Holding


async def test_a_heartbeat_renews_every_lease_by_its_own_length(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    tasks = [await make(workbench), await make(workbench, lease_seconds=30)]
    for task in tasks:
        await claim(workbench, ada, task_id=task)
    for _ in range(10):
        clock.forward(29)
        assert (await beat(workbench, ada))["lease_expires_at"] == iso(clock.now + 30 * SECOND)
        assert await sweep(workbench) == 0
    assert [(await get(workbench, t))["lease_expires_at"] for t in tasks] == [
        *(iso(clock.now + 120 * SECOND), iso(clock.now + 30 * SECOND)),
    ]
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["last_heartbeat"] == iso(clock.now)


async def test_a_lease_ends_at_its_time_and_not_before(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada, bob, task = await admit("ada"), await admit("bob"), await make(workbench)
    await claim(workbench, ada)
    clock.forward(119.999)
    assert await sweep(workbench) == 0
    assert await claim(workbench, bob) is None
    clock.forward(0.001)
    await sweep(workbench)
    after = await get(workbench, task)
    assert (after["status"], after["assigned_agent_id"], after["retry_count"]) == ("pending", None, 1)
    assert after["lease_expires_at"] is None
    (attempt,) = after["attempts"]
    assert (attempt["outcome"], attempt["error_message"]) == ("expired", "the lease ran out")
    assert attempt["ended_at"] == iso(clock.now)
    assert (await kinds(workbench))[-1] == "task.expired"


@pytest.mark.timeout(20)
async def test_the_open_project_ends_leases_and_pauses_by_itself(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    await make(workbench)
    await claim(workbench, ada)
    async with workbench.feed.subscribe("task.expired", "task.retry_ready") as events:
        clock.forward(121)
        assert (await anext(events)).kind == "task.expired"
        clock.forward(13)
        assert (await anext(events)).kind == "task.retry_ready"
    assert (await claim(workbench, ada))["attempt"] == 2


@pytest.mark.timeout(20)
@pytest.mark.parametrize("step", [3_600, 121, -3_600])
async def test_a_clock_that_is_set_ends_no_lease_and_lengthens_none(settings: Settings, step: int) -> None:
    wall, steady = Clock(), Clock()
    async with (
        Workbench.open(settings, clock=wall, steady=steady) as workbench,
        Workbench.open(settings, clock=wall, steady=steady) as other,
    ):
        ada, task, resting = await enter(workbench, "ada"), await make(workbench), await make(workbench)
        await do(workbench, ada, "fail_task", (await claim(workbench, ada, task_id=resting))["id"])
        await claim(workbench, ada, task_id=task)
        async with workbench.feed.subscribe("task.*") as events:
            wall.forward(step)
            assert (await anext(events)).subject == f"task:{resting}", "a pause may end early"
            while {workbench.leases._ahead, other.leases._ahead} != {wall.now - steady.now}:
                await asyncio.sleep(0.01)
            assert (await get(workbench, task))["lease_expires_at"] == iso(wall.now + 120 * SECOND)
            for clock in (wall, steady):
                clock.forward(121)
            assert [((event := await anext(events)).kind, event.subject)] == [("task.expired", f"task:{task}")]
    assert step > 0 or wall.now < steady.now


@pytest.mark.timeout(20)
async def test_a_clock_that_drifts_was_not_set(settings: Settings) -> None:
    wall, steady = Clock(), Clock()
    async with Workbench.open(settings, clock=wall, steady=steady) as workbench:
        ada, task = await enter(workbench, "ada"), await make(workbench)
        until = (await claim(workbench, ada))["lease_expires_at"]
        for _ in range(60):
            wall.forward(2)
            steady.forward(1)
            await workbench.leases.end_due(workbench._ctx)
            assert (await get(workbench, task))["lease_expires_at"] in (until, None)
        assert (await get(workbench, task))["retry_count"] == 1


async def test_leases_that_end_together_are_retried_at_times_of_their_own(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    tasks = [await make(workbench) for _ in range(8)]
    for number, task in enumerate(tasks):
        await claim(workbench, await admit(f"agent-{number}"), task_id=task)
    clock.forward(121)
    await workbench.leases.end_due(workbench._ctx)
    assert len({(await get(workbench, task))["not_before"] for task in tasks}) == len(tasks)


@pytest.mark.parametrize("name", HOLDING)
async def test_who_lost_the_lease_can_do_nothing_to_the_task(
    workbench: Workbench, admit: Admit, clock: Clock, name: str
) -> None:
    ada, bob, task = await admit("ada"), await admit("bob"), await make(workbench)
    await claim(workbench, ada)
    clock.forward(121)
    await sweep(workbench)
    with pytest.raises(Conflict, match="LEASE_LOST") as refused:
        await do(workbench, ada, name, task)
    assert refused.value.details == {"status": "pending", "attempt": 1}
    clock.forward(13)
    await sweep(workbench)
    await claim(workbench, bob)
    before = await get(workbench, task)
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await do(workbench, ada, name, task)
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await do(workbench, ada, name, task, attempt=2)
    assert await get(workbench, task) == before
    await do(workbench, bob, "complete_task", task, attempt=2)
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await do(workbench, bob, name, task)


@pytest.mark.parametrize("name", HOLDING)
async def test_an_earlier_attempt_of_the_same_agent_counts_no_more(
    workbench: Workbench, admit: Admit, name: str
) -> None:
    ada, task = await admit("ada"), await make(workbench)
    await claim(workbench, ada)
    await do(workbench, ada, "release_task", task)
    await claim(workbench, ada)
    before = await get(workbench, task)
    for attempt in (1, 3, 0):
        with pytest.raises(Conflict, match=r"LEASE_LOST.*\(it is claimed, attempt 2\)"):
            await do(workbench, ada, name, task, attempt=attempt)
    assert await get(workbench, task) == before
    await do(workbench, ada, name, task, attempt=2)


@pytest.mark.parametrize("name", HOLDING)
async def test_a_task_that_nobody_or_another_holds_is_not_mine(workbench: Workbench, admit: Admit, name: str) -> None:
    ada, bob, task = await admit("ada"), await admit("bob"), await make(workbench)
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await do(workbench, ada, name, task)
    await claim(workbench, bob)
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await do(workbench, ada, name, task)
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await do(workbench, ada, name, 99)


# Progress and the end


async def test_starting_is_said_once_and_progress_says_it_too(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada = await admit("ada")
    one, two = await make(workbench), await make(workbench)
    await claim(workbench, ada, task_id=one)
    began = clock.now
    for _ in range(2):
        assert (await do(workbench, ada, "start_task", one))["status"] == "in_progress"
        clock.forward(1)
    await claim(workbench, ada, task_id=two)
    await do(workbench, ada, "report_task_progress", two, percent_complete=7)
    for task, at in ((one, began), (two, clock.now)):
        found = await get(workbench, task)
        assert (found["started_at"], found["attempts"][0]["started_at"]) == (iso(at), iso(at))
    assert (await kinds(workbench)).count("task.started") == 2


async def test_progress_keeps_notes_and_percentages_and_renews_the_lease(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada, task = await admit("ada"), await make(workbench)
    await claim(workbench, ada)
    for note, percent, shown in (("a", 30, 30), ("b", None, 30), ("", 40, 40), ("", 10, 10)):
        clock.forward(100)
        said = {"progress_note": note} | ({"percent_complete": percent} if percent else {})
        line = await do(workbench, ada, "report_task_progress", task, agent_id="ada", **said)
        assert (line["progress"], line["status"]) == (shown, "in_progress")
    assert (await get(workbench, task))["lease_expires_at"] == iso(clock.now + 120 * SECOND)
    lines = (await workbench.call("get_task_logs", task_id=task))["lines"]
    assert [(x["message"], x["level"]) for x in lines] == [("a", "info"), ("b", "info")]
    for bad in (
        {"percent_complete": 101},
        {"percent_complete": -1},
        {"level": "loud"},
        {"progress_note": "x" * 10_001},
    ):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await do(workbench, ada, "report_task_progress", task, **bad)


@pytest.mark.parametrize("started", [True, False])
async def test_completing_keeps_the_result_and_implies_the_start(
    workbench: Workbench, admit: Admit, clock: Clock, started: bool
) -> None:
    ada, task = await admit("ada"), await make(workbench)
    await claim(workbench, ada)
    if started:
        await do(workbench, ada, "start_task", task)
    clock.forward(3)
    result = {"rows": 344, "text": "é\n", "none": None, "list": [1.5, True]}
    line = await do(workbench, ada, "complete_task", task, result_data=result, artifacts=["a.csv", "commit:1"])
    assert (line["status"], line["progress"]) == ("completed", 100)
    found = await get(workbench, task)
    assert (found["result_data"], found["artifacts"]) == (result, ["a.csv", "commit:1"])
    assert (found["completed_at"], found["lease_expires_at"], found["error_message"]) == (iso(clock.now), None, None)
    (attempt,) = found["attempts"]
    assert (attempt["outcome"], attempt["ended_at"]) == ("completed", iso(clock.now))
    assert attempt["started_at"] == found["started_at"] == iso(clock.now - (3 * SECOND if started else 0))
    assert await kinds(workbench) == [f"task.{kind}" for kind in ("created", "claimed", "started", "completed")]
    assert (await beat(workbench, ada))["holding"] == []


async def test_a_result_has_a_limit_and_the_task_stays_held(workbench: Workbench, admit: Admit) -> None:
    ada, task = await admit("ada"), await make(workbench)
    await claim(workbench, ada)
    for bad in ({"result_data": "x" * 1_048_576}, {"artifacts": ["x" * 1_048_576]}):
        with pytest.raises(BadInput, match="TOO_LARGE"):
            await do(workbench, ada, "complete_task", task, **bad)
    abyss: Any = None
    for _ in range(100):
        abyss = [abyss]
    for bad in (
        *({"result_data": float("nan")}, {"result_data": abyss}, {"result_data": {"\ud800": 1}}),
        *({"artifacts": ["a"] * 1_001}, {"artifacts": [1]}),
    ):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await do(workbench, ada, "complete_task", task, **bad)
    assert (await get(workbench, task))["status"] == "claimed"
    await do(workbench, ada, "complete_task", task, result_data="x" * 1_048_574)


async def test_a_failed_task_is_tried_again_after_pauses_that_double(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada, task = await admit("ada"), await make(workbench, max_retries=3)
    for attempt, pause in ((1, 10), (2, 20), (3, 25)):
        assert (await claim(workbench, ada))["attempt"] == attempt
        await do(workbench, ada, "report_task_progress", task, percent_complete=50)
        line = await do(workbench, ada, "fail_task", task, error_message=f"e{attempt}")
        assert (line["status"], line["progress"], line["assigned_agent_id"]) == ("pending", 0, None)
        found = await get(workbench, task)
        assert (found["retry_count"], found["error_message"]) == (attempt, f"e{attempt}")
        assert iso(clock.now + pause * SECOND) <= found["not_before"] <= iso(clock.now + pause * 5 * SECOND // 4)
        clock.forward(pause - 0.001)
        await sweep(workbench)
        assert await claim(workbench, ada) is None
        clock.forward(pause / 4 + 0.001)
        await sweep(workbench)
    await claim(workbench, ada)
    assert (await do(workbench, ada, "fail_task", task, error_message="e4"))["status"] == "failed"
    found = await get(workbench, task)
    assert (found["error_message"], found["retry_count"], found["completed_at"]) == ("e4", 3, iso(clock.now))
    assert [(a["outcome"], a["error_message"]) for a in found["attempts"]] == [("failed", f"e{n}") for n in range(1, 5)]
    tries = ["claimed", "started", "progressed", "retried", "retry_ready"] * 3
    assert await kinds(workbench) == [f"task.{kind}" for kind in ("created", *tries, "claimed", "failed")]


async def test_a_task_whose_leases_run_out_too_often_fails(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada, task = await admit("ada"), await make(workbench, max_retries=1)
    for _ in range(2):
        await claim(workbench, ada)
        clock.forward(121)
        await sweep(workbench)
        clock.forward(13)
        await sweep(workbench)
    found = await get(workbench, task)
    assert (found["status"], found["error_message"]) == ("failed", "the lease ran out")
    assert [a["outcome"] for a in found["attempts"]] == ["expired", "expired"]
    assert (await kinds(workbench))[-1] == "task.failed"


async def test_a_task_that_is_cancelled_by_the_end_of_another_lease_does_not_come_back(
    workbench: Workbench, clock: Clock
) -> None:
    """Both leases end in one look, as after a night in which nobody looked."""
    ada, bob = await enter(workbench, "ada"), await enter(workbench, "bob")
    first = await make(workbench, max_retries=0)
    second = await make(workbench, dependencies=[first], on_failure="cancel")
    below = await make(workbench, parent_task_id=second)
    await claim(workbench, ada, task_id=first)
    await claim(workbench, bob, task_id=below)
    clock.forward(3600)
    assert await sweep(workbench) == 1
    assert [(await get(workbench, task))["status"] for task in (first, second, below)] == ["failed", *["cancelled"] * 2]
    assert "task.expired" not in await kinds(workbench)
    assert [a["outcome"] for a in (await get(workbench, below))["attempts"]] == ["cancelled"]


@pytest.mark.parametrize(("max_retries", "retryable"), [(0, True), (2, False)])
async def test_without_a_retry_left_or_wanted_a_failure_is_final(
    workbench: Workbench, admit: Admit, max_retries: int, retryable: bool
) -> None:
    ada, task = await admit("ada"), await make(workbench, max_retries=max_retries)
    await claim(workbench, ada)
    line = await do(workbench, ada, "fail_task", task, retryable=retryable)
    assert (line["status"], line["assigned_agent_id"]) == ("failed", "ada")
    assert (await get(workbench, task))["retry_count"] == 0


async def test_a_released_task_is_claimable_at_once_and_costs_no_retry(workbench: Workbench, admit: Admit) -> None:
    ada, bob, task = await admit("ada"), await admit("bob"), await make(workbench, max_retries=0)
    for agent in (ada, bob, ada):
        await claim(workbench, agent)
        await do(workbench, agent, "report_task_progress", task, percent_complete=50)
        line = await do(workbench, agent, "release_task", task, reason="Lunch.")
        assert (line["status"], line["progress"], line["assigned_agent_id"]) == ("pending", 0, None)
    found = await claim(workbench, bob)
    assert (found["attempt"], found["retry_count"]) == (4, 0)
    assert [(a["agent_id"], a["outcome"], a["error_message"]) for a in found["attempts"]] == [
        *(("ada", "released", "Lunch."), ("bob", "released", "Lunch."), ("ada", "released", "Lunch.")),
        ("bob", None, None),
    ]


# Who may


@pytest.mark.parametrize("name", ["claim_task", "heartbeat_and_get_tasks", *HOLDING])
async def test_the_person_holds_no_tasks(workbench: Workbench, name: str) -> None:
    task = await make(workbench)
    needs = {"task_id": task} if name in HOLDING else {}
    more = {"error_message": "no"} if name == "fail_task" else {}
    with pytest.raises(BadInput, match="AGENT_ONLY"):
        await workbench.call(name, **needs, **more)


@pytest.mark.parametrize("name", ["claim_task", "heartbeat_and_get_tasks", *HOLDING])
async def test_who_may_only_read_takes_no_tasks(workbench: Workbench, admit: Admit, name: str) -> None:
    eve = await admit("eve", tool="read")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(eve.caller, name, {})


async def test_the_ids_an_agent_sends_must_be_its_own(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    await admit("bob")
    task = await make(workbench)
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


# Waiting


@pytest.mark.timeout(20)
@pytest.mark.parametrize("news", ["created", "unblocked", "released", "rested"])
async def test_who_waits_for_work_hears_of_it_at_once(
    workbench: Workbench, admit: Admit, clock: Clock, news: str
) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    task = await make(workbench)
    await claim(workbench, bob)
    waits = await make(workbench, dependencies=[task])
    if news == "rested":
        await do(workbench, bob, "fail_task", task)
    waiting = asyncio.create_task(beat(workbench, ada, wait_seconds=30))
    await followed(workbench)
    await make(workbench, "not for ada", "tester")
    match news:
        case "created":
            task = await make(workbench)
        case "unblocked":
            await do(workbench, bob, "complete_task", task)
            task = waits
        case "released":
            await do(workbench, bob, "release_task", task)
        case "rested":
            clock.forward(13)
    assert [t["id"] for t in (await waiting)["available"]] == [task]


@pytest.mark.timeout(20)
async def test_more_tasks_at_once_than_a_subscriber_may_lag_end_no_wait_for_work(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"feed_queue": 10})) as workbench:
        ada = await enter(workbench, "ada")
        waiting = asyncio.create_task(beat(workbench, ada, wait_seconds=15))
        await followed(workbench)
        others = [{"title": f"{number}", "persona_id": "tester"} for number in range(100)]
        await workbench.call("create_tasks", tasks=others)
        await asyncio.wait({waiting}, timeout=0.5)
        assert not waiting.done()
        task = await make(workbench)
        assert [t["id"] for t in (await waiting)["available"]] == [task]


async def test_who_waits_for_work_in_vain_is_told_so(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    assert await beat(workbench, ada, wait_seconds=0.05) == {"holding": [], "available": [], "lease_expires_at": None}


@pytest.mark.timeout(20)
async def test_nobody_waits_longer_than_the_setting_allows(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"wait_limit_seconds": 0.05})) as workbench:
        ada = await enter(workbench, "ada")
        assert (await beat(workbench, ada, wait_seconds=3_600))["available"] == []


async def test_a_beat_without_a_list_renews_as_well(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada = await admit("ada")
    assert await workbench.dispatch(ada.caller, "heartbeat", {}) == {"holding": [], "lease_expires_at": None}
    tasks = [await make(workbench, lease_seconds=seconds) for seconds in (90, 30)]
    for task in tasks:
        await claim(workbench, ada, task_id=task)
    clock.forward(20)
    beat = await workbench.dispatch(ada.caller, "heartbeat", {"agent_id": "ada"})
    assert beat == {"holding": tasks, "lease_expires_at": iso(clock.now + 30 * SECOND)}
    assert (await get(workbench, tasks[0]))["lease_expires_at"] == iso(clock.now + 90 * SECOND)
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert (agent["last_heartbeat"], agent["registration_status"]) == (iso(clock.now), "active")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "heartbeat", {"agent_id": "bob"})


async def test_what_could_be_claimed_is_told_without_claiming_or_renewing(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    held, low, high = await make(workbench), await make(workbench, priority=1), await make(workbench, priority=9)
    await make(workbench, "blocked", dependencies=[held])
    until = (await claim(workbench, ada, task_id=held))["lease_expires_at"]
    clock.forward(20)
    for limit, ids in ((10, [high, low]), (1, [high])):
        found = await workbench.dispatch(ada.caller, "get_available_tasks", {"limit": limit})
        assert [task["id"] for task in found["tasks"]] == ids
    assert (await get(workbench, held))["lease_expires_at"] == until
    assert (await kinds(workbench)).count("task.claimed") == 1


PERSONAS = {"implementer": 200, "planner": 50, "reviewer": 75, "tester": 75}
"""Tasks of each."""


@pytest.mark.timeout(60)
async def test_a_hundred_workers_on_four_personas_starve_nobody(workbench: Workbench) -> None:
    new = [{"title": "t", "persona_id": p, "priority": n % 3} for p, count in PERSONAS.items() for n in range(count)]
    await workbench.call("create_tasks", tasks=new)
    agents = [await enter(workbench, f"{persona}-{n}", persona) for persona in PERSONAS for n in range(25)]

    async def work(agent: Admitted) -> int:
        done = 0
        while (task := await claim(workbench, agent)) is not None:
            await do(workbench, agent, "complete_task", task["id"])
            done += 1
        return done

    done = await asyncio.gather(*map(work, agents))
    by_persona = {persona: done[n * 25 : n * 25 + 25] for n, persona in enumerate(PERSONAS)}
    assert {persona: sum(mine) for persona, mine in by_persona.items()} == PERSONAS
    for persona, mine in by_persona.items():
        assert min(mine) >= PERSONAS[persona] / 25 / 2, f"a {persona} had less than half of its share"


async def test_who_holds_a_task_is_not_kept_waiting(workbench: Workbench, admit: Admit) -> None:
    ada, task = await admit("ada"), await make(workbench)
    await claim(workbench, ada)
    assert [t["id"] for t in (await beat(workbench, ada, wait_seconds=30))["holding"]] == [task]


# Any order of all of it


LINES = Query(
    "lines",
    """
    SELECT s.*, t.max_retries, t.parent_id, t.on_failure, t.no_retry,
        a.assigned_agent_id AS holder, r.assigned_agent_id AS only_for,
        (SELECT COUNT(*) FROM task_dependencies d JOIN task_status o ON o.task_id = d.depends_on
         WHERE d.task_id = s.task_id AND o.status <> 'completed'
           AND NOT (t.on_failure = 'ignore' AND o.status IN ('failed', 'cancelled'))) AS open_dependencies
    FROM task_status s JOIN tasks t ON t.id = s.task_id
    LEFT JOIN agents a ON a.id = s.assigned_agent_id LEFT JOIN agents r ON r.id = s.reserved_for
    ORDER BY s.task_id
    """,
)
ATTEMPTS = Query(
    "attempts",
    """
    SELECT x.*, a.assigned_agent_id AS agent FROM task_attempts x JOIN agents a ON a.id = x.agent_id
    ORDER BY x.task_id, x.attempt
    """,
)
EVENTS = Query("events", "SELECT kind, subject FROM events WHERE subject LIKE 'task:%' ORDER BY id")
EDGES = Query("edges", "SELECT task_id, depends_on FROM task_dependencies")
NONE: frozenset[str] = frozenset()
LIFE: dict[str, tuple[frozenset[str], str]] = {
    "created": (NONE, "pending"),
    "claimed": (frozenset({"pending"}), "claimed"),
    "started": (frozenset({"claimed"}), "in_progress"),
    "completed": (frozenset({"in_progress"}), "completed"),
    **{kind: (frozenset({"claimed", "in_progress"}), "pending") for kind in ("released", "retried", "expired")},
    "failed": (frozenset({"claimed", "in_progress"}), "failed"),
    "cancelled": (frozenset({"pending", "claimed", "in_progress"}), "cancelled"),
    "revived": (frozenset({"failed", "cancelled"}), "pending"),
}
"""What an event says of a task: where it was, and where it is now. Others change nothing of that."""
ENDS = ("completed", "failed", "cancelled")
DEAD = ("failed", "cancelled")
NAMES = st.sampled_from(["ada", "bob", "rex"])
PERSONA_OF = {"ada": "implementer", "bob": "implementer", "rex": "reviewer"}
MOST = 8
"""Tasks there are at most: so few that they meet."""
TASKS = st.integers(1, MOST)

Line = dict[str, Any]


class Leases(RuleBasedStateMachine):
    """Three agents, a person and a jumping clock do what they like to tasks in a real store."""

    claims: Bundle[tuple[str, int, int]] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.clock = Clock()
        self.runner = self.closing.enter_context(asyncio.Runner())
        folder = self.closing.enter_context(TemporaryDirectory())
        self.settings = Settings(project=Path(folder), retry_base_seconds=10, retry_cap_seconds=30, lease_seconds=100)
        self.store = open_store(self.settings.database, self.clock)
        self.closing.callback(self.store.close)
        self.agents = self.runner.run(self.begin())
        self.ended: dict[int, Line] = {}
        self.before: list[Line] = []
        self.told_to_cancel = 0

    async def begin(self) -> dict[str, Caller]:
        """Without `Workbench.open`: nothing happens but what the rules do."""
        self.workbench = Workbench(self.settings, self.store, SERVICES)
        await personas.sync(self.store, self.settings)
        found = {}
        for name, persona in PERSONA_OF.items():
            made = await self.workbench.call("register", name=name, persona_id=persona)
            await self.workbench.call("approve", approval_id=made["approval_id"])
            found[name] = await self.workbench.identify(made["token"])
        return found

    def call(self, agent: str | None, name: str, **arguments: Any) -> dict[str, Any]:
        caller = self.agents[agent] if agent else OPERATOR
        return self.runner.run(self.workbench.dispatch(caller, name, arguments))

    def tried(self, agent: str | None, name: str, **arguments: Any) -> tuple[Any, str]:
        """What came of a call, and the code of the error if there was one."""
        try:
            return self.call(agent, name, **arguments), ""
        except WorkbenchError as error:
            return None, error.code

    def rows(self, query: Query) -> list[Line]:
        return [dict(row) for row in self.runner.run(self.store.read(lambda tx: tx.all(query)))]

    def line(self, task_id: int) -> Line | None:
        return next((line for line in self.rows(LINES) if line["task_id"] == task_id), None)

    def edges(self) -> set[tuple[int, int]]:
        return {(row["task_id"], row["depends_on"]) for row in self.rows(EDGES)}

    def dead(self) -> set[int]:
        return {line["task_id"] for line in self.rows(LINES) if line["status"] in DEAD}

    def teardown(self) -> None:
        self.closing.close()

    @initialize()
    def begin_with_tasks(self) -> None:
        for more in ({}, {"dependencies": [1]}, {"assigned_agent_id": "bob"}, {"max_retries": 0}):
            self.call(None, "create_task", title="t", persona_id="implementer", **more)

    # Making

    @rule(
        persona=st.sampled_from(["implementer", "implementer", "reviewer"]),
        priority=st.sampled_from([0, 0, 5]),
        retries=st.integers(0, 2),
        reserved=st.none() | NAMES,
        policy=st.sampled_from(["block", "cancel", "ignore"]),
        waits=st.data(),
    )
    def create(
        self, persona: str, priority: int, retries: int, reserved: str | None, policy: str, waits: st.DataObject
    ) -> None:
        known = [line["task_id"] for line in self.rows(LINES)]
        if len(known) < MOST:
            chosen = waits.draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
            more = {"priority": priority, "max_retries": retries, "assigned_agent_id": reserved, "on_failure": policy}
            more |= {"no_retry": ["Fatal"], "dependencies": chosen}
            made, code = self.tried(None, "create_task", title="t", persona_id=persona, **more)
            dead = policy == "cancel" and self.dead() & set(chosen)
            assert code == ("DEPENDENCY_DEAD" if dead else "")
            assert dead or made["blocked"] == bool(made["blocked_by"])

    @rule(claim=claims, blocks=st.booleans())
    def break_down(self, claim: tuple[str, int, int], blocks: bool) -> None:
        agent, task_id, _ = claim
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        if len(lines) == MOST:
            return
        part = {"parent_task_id": task_id, "title": "part", "blocks_parent": blocks}
        made, code = self.tried(agent, "create_subtask", **part)
        above = [lines[task_id]]
        while above[-1]["parent_id"]:
            above.append(lines[above[-1]["parent_id"]])
        mine = any(line["holder"] == agent and line["status"] not in ENDS for line in above)
        if not mine:
            assert code == "FORBIDDEN"
        elif blocks and lines[task_id]["status"] in ENDS:
            assert code == "WRONG_STATE"
        else:
            assert (task_id, made["id"]) in self.edges() or not blocks

    @rule(task=TASKS, first=TASKS)
    def add_dependency(self, task: int, first: int) -> None:
        line, edges = self.line(task), self.edges()
        there = line and self.line(first)
        circle = not has_no_circle(edges | {(task, first)})
        expected = "" if there else "TASK_NOT_FOUND"
        if there and line:
            expected = "WRONG_STATE" if line["status"] in ENDS else "DEPENDENCY_CYCLE" if circle else ""
            if not expected and line["on_failure"] == "cancel" and first in self.dead():
                expected = "DEPENDENCY_DEAD"
        assert self.tried(None, "add_dependency", task_id=task, depends_on=first)[1] == expected
        assert self.edges() == edges | ({(task, first)} if not expected else set())

    @rule(edge=st.data())
    def remove_dependency(self, edge: st.DataObject) -> None:
        edges = self.edges()
        task, first = edge.draw(st.sampled_from(sorted(edges | {(1, 1)})))
        line = self.line(task)
        assert line
        expected = "WRONG_STATE" if line["status"] in ENDS else "" if (task, first) in edges else "NO_DEPENDENCY"
        assert self.tried(None, "remove_dependency", task_id=task, depends_on=first)[1] == expected

    # Doing

    @rule(target=claims, agent=NAMES)
    def claim_the_best(self, agent: str) -> Any:
        lines = self.rows(LINES)
        held = [line["task_id"] for line in lines if line["holder"] == agent and line["status"] not in ENDS]
        free = [line for line in lines if self.is_free_for(agent, line)]
        free.sort(key=lambda line: (line["only_for"] is None, -line["priority"], line["task_id"]))
        expected = next(iter([*held, *(line["task_id"] for line in free)]), None)
        task = self.call(agent, "claim_task")["task"]
        assert (task and task["id"]) == expected
        return (agent, task["id"], task["attempt"]) if task else multiple()

    @rule(target=claims, agent=NAMES, which=TASKS)
    def claim_by_id(self, agent: str, which: int) -> Any:
        line = self.line(which)
        mine = line and line["holder"] == agent and line["status"] not in ENDS
        claim, code = self.tried(agent, "claim_task", task_id=which)
        if line and (mine or self.is_free_for(agent, line)):
            return (agent, which, claim["task"]["attempt"])
        assert code == ("TASK_NOT_CLAIMABLE" if line else "TASK_NOT_FOUND")
        return multiple()

    def is_free_for(self, agent: str, line: Line) -> bool:
        ready = line["status"] == "pending" and not line["open_dependencies"] and line["not_before"] is None
        fits = line["only_for"] == agent if line["only_for"] else line["persona_id"] == PERSONA_OF[agent]
        return ready and fits

    @rule(
        claim=claims,
        name=st.sampled_from(HOLDING),
        retryable=st.booleans(),
        error_class=st.sampled_from([None, "Fatal"]),
        says=st.booleans(),
    )
    def use_a_claim(
        self, claim: tuple[str, int, int], name: str, retryable: bool, error_class: str | None, says: bool
    ) -> None:
        agent, task_id, attempt = claim
        line = self.rows(LINES)[task_id - 1]
        current = line["status"] not in ENDS and line["holder"] == agent and (not says or line["attempt"] == attempt)
        more: dict[str, Any] = {"attempt": attempt} if says else {}
        if name == "fail_task":
            more |= {"error_message": "no", "retryable": retryable, "error_class": error_class}
        done, code = self.tried(agent, name, task_id=task_id, **more)
        waits = name == "complete_task" and line["open_dependencies"]
        assert code == ("LEASE_LOST" if not current else "DEPENDENCIES_OPEN" if waits else "")
        if name == "fail_task" and done:
            never = error_class is not None and error_class in line["no_retry"]
            again = retryable and not never and line["retry_count"] < line["max_retries"]
            assert done["status"] == ("pending" if again else "failed")

    @rule(agent=NAMES)
    def beat(self, agent: str) -> None:
        work = self.call(agent, "heartbeat_and_get_tasks")
        for line in self.rows(LINES):
            if line["holder"] == agent and line["status"] not in ENDS:
                assert line["lease_expires_at"] == self.clock.now + 100 * SECOND
                assert line["task_id"] in {t["id"] for t in work["holding"]}
        assert all(t["assigned_agent_id"] == agent for t in work["holding"])

    @rule(agent=NAMES)
    def lose_the_process(self, agent: str) -> None:
        internal = str(self.agents[agent].agent)
        self.runner.run(self.store.write(lambda tx: attempts.release_all(tx, internal, "it died")))
        assert [line for line in self.rows(LINES) if line["holder"] == agent and line["status"] not in ENDS] == []

    # Steering

    @rule(which=TASKS)
    def cancel(self, which: int) -> None:
        self.told_to_cancel = which
        line = self.line(which)
        _, code = self.tried(None, "cancel_task", task_id=which)
        assert code == ("TASK_NOT_FOUND" if not line else "WRONG_STATE" if which in self.ended else "")

    @rule(which=TASKS, retries=st.none() | st.integers(0, 2))
    def retry(self, which: int, retries: int | None) -> None:
        line = self.line(which)
        made, code = self.tried(None, "retry_task", task_id=which, max_retries=retries)
        expected = "TASK_NOT_FOUND" if not line else "" if line["status"] in DEAD else "WRONG_STATE"
        if line and not expected and line["on_failure"] == "cancel":
            waits = {first for task, first in self.edges() if task == which}
            expected = "DEPENDENCY_DEAD" if waits & self.dead() else ""
        assert code == expected
        if made:
            assert (made["status"], made["retry_count"]) == ("pending", 0)
            del self.ended[which]

    @rule(which=TASKS, agent=st.none() | NAMES)
    def reassign(self, which: int, agent: str | None) -> None:
        line = self.line(which)
        expected = "" if line else "TASK_NOT_FOUND"
        if line:
            theirs = agent and line["holder"] == agent
            expected = "WRONG_STATE" if line["status"] in ENDS else "ALREADY_THEIRS" if theirs else ""
        assert self.tried(None, "reassign_task", task_id=which, assigned_agent_id=agent)[1] == expected
        after = self.line(which)
        assert expected or (after and (after["status"], after["only_for"]) == ("pending", agent))

    @rule(which=TASKS, priority=st.sampled_from([-5, 0, 5, 9]))
    def prioritise(self, which: int, priority: int) -> None:
        line = self.line(which)
        _, code = self.tried(None, "set_priority", task_id=which, priority=priority)
        assert code == ("TASK_NOT_FOUND" if not line else "WRONG_STATE" if line["status"] in ENDS else "")

    # Time

    @rule(seconds=st.sampled_from([1, 12, 40, 99, 101]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.forward(seconds)
        self.runner.run(self.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.5)))
        for line in self.rows(LINES):
            assert line["lease_expires_at"] is None or line["lease_expires_at"] > self.clock.now
            assert line["not_before"] is None or line["not_before"] > self.clock.now

    @rule(seconds=st.sampled_from([1, 101]))
    def let_time_pass_unseen(self, seconds: int) -> None:
        self.clock.forward(seconds)

    @rule(seconds=st.sampled_from([-3_600, -50, 50, 3_600]))
    def set_the_clock(self, seconds: int) -> None:
        """As an open project does when it sees that the host's clock was set."""
        held = [(line["task_id"], line["attempt"]) for line in self.rows(LINES) if line["lease_expires_at"]]
        self.clock.forward(seconds)
        self.runner.run(self.store.write(expiry.restart_leases))
        self.runner.run(self.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.5)))
        after = [line for line in self.rows(LINES) if line["lease_expires_at"]]
        assert [(line["task_id"], line["attempt"]) for line in after] == held
        assert {line["lease_expires_at"] for line in after} <= {self.clock.now + 100 * SECOND}

    # What is always so

    @invariant()
    def a_task_is_held_by_one_and_its_attempts_say_so(self) -> None:
        attempts = self.rows(ATTEMPTS)
        for line in self.rows(LINES):
            mine = [a for a in attempts if a["task_id"] == line["task_id"]]
            running = [a for a in mine if a["ended_at"] is None]
            held = line["status"] in ("claimed", "in_progress")
            assert [a["attempt"] for a in mine] == list(range(1, line["attempt"] + 1)), "a row for each attempt"
            assert [a["agent"] for a in running] == ([line["holder"]] if held else []), "at most one holder"
            assert (line["lease_expires_at"] is not None) == held
            assert line["not_before"] is None or line["status"] == "pending"
            assert sum(a["outcome"] == "completed" for a in mine) == (line["status"] == "completed"), "once at most"

    @invariant()
    def every_step_has_its_event(self) -> None:
        lived: dict[int, list[str]] = {}
        for event in self.rows(EVENTS):
            task_id, kind = event["subject"].removeprefix("task:"), event["kind"].removeprefix("task.")
            lived.setdefault(int(task_id), []).append(kind)
        attempts = self.rows(ATTEMPTS)
        for line in self.rows(LINES):
            state, retries, told = "", 0, lived[line["task_id"]]
            for kind in told:
                if kind in LIFE:
                    before, after = LIFE[kind]
                    assert state in before or kind == "created", f"{kind} after {state}"
                    state = after
                    retries = 0 if kind == "revived" else retries + (kind in ("retried", "expired"))
            assert state == line["status"]
            assert line["retry_count"] == retries <= line["max_retries"]
            assert told.count("claimed") == line["attempt"]
            bad = [a for a in attempts if a["task_id"] == line["task_id"] and a["outcome"] in ("failed", "expired")]
            assert len(bad) == sum(told.count(kind) for kind in ("failed", "retried", "expired"))

    @invariant()
    def what_waits_for_what_is_counted_and_never_a_circle(self) -> None:
        assert has_no_circle(self.edges())
        for line in self.rows(LINES):
            assert line["unmet"] == line["open_dependencies"]
            assert line["status"] != "completed" or not line["open_dependencies"] or line["on_failure"] == "ignore"

    @invariant()
    def nothing_waits_for_the_dead_that_it_was_to_be_cancelled_with(self) -> None:
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        waiting = {task for task, first in self.edges() if lines[first]["status"] in DEAD}
        assert not [t for t in waiting if lines[t]["on_failure"] == "cancel" and lines[t]["status"] not in ENDS]

    @invariant()
    def what_ended_stays_as_it_was_unless_it_is_revived(self) -> None:
        for line in self.rows(LINES):
            if line["status"] in ENDS:
                left = line | {"unmet": 0, "open_dependencies": 0}
                assert self.ended.setdefault(line["task_id"], left) == left

    @invariant()
    def an_end_means_for_others_what_their_policy_says(self) -> None:
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        was = {line["task_id"]: line["status"] for line in self.before}
        died = {task for task, line in lines.items() if line["status"] in DEAD and was.get(task) not in DEAD}
        cancelled = {task for task in died if lines[task]["status"] == "cancelled"}
        doomed = {task for task, first in self.edges() if first in died and lines[task]["on_failure"] == "cancel"}
        doomed |= {task for task, line in lines.items() if line["parent_id"] in cancelled}
        assert {lines[task]["status"] for task in doomed} <= set(ENDS)
        assert cancelled <= doomed | {self.told_to_cancel}
        self.before = list(lines.values())


def has_no_circle(edges: set[tuple[int, int]]) -> bool:
    """Whether no task waits for itself, at however many removes."""
    waits: dict[int, set[int]] = {}
    for task, first in edges:
        waits.setdefault(task, set()).add(first)
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return False
    return True


TestLeasesInAnyOrder = pytest.mark.timeout(400)(Leases.TestCase)  # it takes long only when it looks for a short example
TestLeasesInAnyOrder.settings = hypothesis.settings(max_examples=15, stateful_step_count=50, deadline=None)


class ForLong(Leases):
    """The same, in many more orders."""


SOAK = int(os.environ.get("WORKBENCH_SOAK", "0"))
TestLeasesInAnyOrderForLong = pytest.mark.chaos(pytest.mark.timeout(3_000)(ForLong.TestCase))
TestLeasesInAnyOrderForLong.settings = hypothesis.settings(
    max_examples=600 * SOAK or 60, stateful_step_count=50, deadline=None
)
