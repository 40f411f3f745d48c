"""Claiming tasks: their order, the agents that fit, and one holder for each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock
from tests.services.tasks.leases.calls import beat, do, enter, kinds
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.model import SECOND, iso

pytestmark = pytest.mark.anyio


async def test_a_claim_gives_the_task_under_its_lease(workbench: Workbench, ada: Admitted, clock: Clock) -> None:
    task = await given.task(workbench, run="echo hi")
    clock.forward(5)
    found = await given.claim(workbench, ada)
    assert (found["id"], found["status"], found["attempt"], found["assigned_agent_id"]) == (task, "claimed", 1, "ada")
    assert (found["run"], found["progress"], found["started_at"]) == ("echo hi", 0, None)
    assert found["claimed_at"] == iso(clock.now)
    assert found["lease_expires_at"] == iso(clock.now + 120 * SECOND)
    assert await kinds(workbench) == ["task.created", "task.claimed"]


async def test_tasks_are_taken_reserved_first_then_by_priority_then_by_age(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    await admit("bob")
    low = await given.task(workbench, priority=-1)
    old, young = await given.task(workbench), await given.task(workbench)
    high = await given.task(workbench, priority=900)
    mine = await given.task(
        workbench, "mine", "tester", priority=-1_000, assigned_agent_id="ada", target_worktree="lab"
    )
    await given.task(workbench, priority=999, assigned_agent_id="bob")
    await given.task(workbench, "not my work", "tester", priority=999)
    await given.task(workbench, "not my place", target_worktree="lab", priority=999)
    await given.task(workbench, "not yet", dependencies=[low], priority=0)
    order = [mine, high, old, young, low]
    assert [t["id"] for t in (await beat(workbench, ada))["available"]] == order
    assert [t["id"] for t in (await beat(workbench, ada, limit=2))["available"]] == order[:2]
    for task in order:
        assert (await given.claim(workbench, ada))["id"] == task
        await do(workbench, ada, "complete_task", task)
    assert (await given.claim(workbench, ada))["title"] == "not yet"


async def test_an_agent_in_a_worktree_takes_tasks_of_it_and_tasks_without_one(
    workbench: Workbench, settle: Admit
) -> None:
    ada = await settle("ada", "lab")
    inside, anywhere = await given.task(workbench, target_worktree="lab"), await given.task(workbench, priority=600)
    elsewhere = await given.task(workbench, target_worktree="other", priority=999)
    assert [t["id"] for t in (await beat(workbench, ada))["available"]] == [anywhere, inside]
    with pytest.raises(Conflict, match="it is for the worktree other, and yours is lab"):
        await given.claim(workbench, ada, elsewhere)
    assert (await given.claim(workbench, ada, inside))["worktree"] == "lab"


async def test_an_agent_without_a_persona_takes_only_reserved_tasks(workbench: Workbench) -> None:
    ada = await enter(workbench, "ada", None)
    await given.task(workbench)
    assert await given.claim(workbench, ada) is None
    mine = await given.task(workbench, assigned_agent_id="ada")
    assert (await given.claim(workbench, ada))["id"] == mine


async def test_a_second_claim_returns_the_held_task_unchanged(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    first, second = await given.task(workbench, lease_seconds=60), await given.task(workbench)
    await given.task(workbench, priority=999, assigned_agent_id="ada")
    held = await given.claim(workbench, ada, first)
    clock.forward(50)
    assert await given.claim(workbench, ada) == await given.claim(workbench, ada, first) == held
    assert (await kinds(workbench)).count("task.claimed") == 1
    await given.claim(workbench, ada, second)
    work = await beat(workbench, ada)
    assert [task["id"] for task in work["holding"]] == [first, second]
    assert work["lease_expires_at"] == iso(clock.now + 60 * SECOND)
    assert (await given.claim(workbench, ada))["id"] == first
    await do(workbench, ada, "start_task", second)
    assert (await given.claim(workbench, ada))["id"] == second, "the one in progress goes first"
    assert [task["id"] for task in (await beat(workbench, ada))["holding"]] == [second, first]


async def test_one_of_many_concurrent_claims_gets_the_task(workbench: Workbench, admit: Admit) -> None:
    agents = [await admit(f"a{n}") for n in range(6)]
    task = await given.task(workbench)
    found = await asyncio.gather(*(given.claim(workbench, agent) for agent in agents))
    assert [t["id"] for t in found if t] == [task]
    other = await given.task(workbench)
    by_name = [given.claim(workbench, agent, other) for agent in agents]
    answers = await asyncio.gather(*by_name, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == [*(["Conflict"] * 5), "dict"]


DEAD = "it depends on 1 (cancelled), which a planner or the operator has to retry first."


@pytest.mark.parametrize(
    ("case", "reason", "why"),
    [
        ("held", "held", "it is claimed, held by bob."),
        ("completed", "ended", "it is completed."),
        ("failed", "ended", "it is failed."),
        ("cancelled", "ended", "it is cancelled."),
        ("blocked", "dependency", "it waits for 1."),
        ("dead", "dependency_failed", DEAD),
        ("resting", "backoff", "its next attempt may begin at {not_before}."),
        ("persona", "persona", "it is for the persona tester, and yours is implementer."),
        ("worktree", "worktree", "it is for the worktree lab, and you have none."),
        ("reserved", "reserved", "it is reserved for bob."),
    ],
)
async def test_a_task_that_cannot_be_claimed_says_why(
    workbench: Workbench, ada: Admitted, bob: Admitted, case: str, reason: str, why: str
) -> None:
    first = await given.task(workbench, "first")
    blocked_by = [first] if case in ("blocked", "dead") else []
    new: dict[str, dict[str, Any]] = {
        **{"persona": {"persona_id": "tester"}, "worktree": {"target_worktree": "lab"}},
        **{"reserved": {"assigned_agent_id": "bob"}},
    }
    task = await given.task(workbench, dependencies=blocked_by, **new.get(case, {}))
    match case:
        case "held":
            await given.claim(workbench, bob, task)
        case "completed" | "failed" | "cancelled":
            await given.end(workbench, bob, task, case)
        case "dead":
            await given.end(workbench, bob, first, "cancelled")
        case "resting":
            await given.claim(workbench, bob, task)
            await do(workbench, bob, "fail_task", task)
    before = await given.task_now(workbench, task)
    with pytest.raises(Conflict, match="TASK_NOT_CLAIMABLE") as refused:
        await given.claim(workbench, ada, task)
    assert refused.value.message == f"Task {task} cannot be claimed: {why.format(**before)}"
    assert refused.value.details == {"status": before["status"], "reasons": [reason], "blocked_by": blocked_by}
    assert await given.task_now(workbench, task) == before


async def test_a_refused_claim_lists_every_reason_and_does_not_reveal_an_invisible_task(
    workbench: Workbench, ada: Admitted
) -> None:
    first = await given.task(workbench, "first")
    task = await given.task(workbench, persona_id="tester", target_worktree="lab", dependencies=[first])
    error = await given.refusal(given.claim(workbench, ada, task))
    assert (error.code, error.details["reasons"]) == ("TASK_NOT_CLAIMABLE", ["persona", "worktree", "dependency"])
    await given.project(workbench, "map")
    await given.session(workbench, "north", "map")
    hidden = await given.task(workbench, session_id="north")
    for task_id in (hidden, hidden + 1):
        error = await given.refusal(given.claim(workbench, ada, task_id))
        expected = f"There is no task {task_id} outside of sessions, and you are in none. list_tasks lists the tasks."
        assert (error.code, error.message) == ("TASK_NOT_FOUND", expected)


async def test_listing_available_tasks_claims_and_renews_nothing(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    held, low, high = [await given.task(workbench, priority=priority) for priority in (0, 1, 9)]
    await given.task(workbench, "blocked", dependencies=[held])
    until = (await given.claim(workbench, ada, held))["lease_expires_at"]
    clock.forward(20)
    for limit, ids in ((10, [high, low]), (1, [high])):
        page = await workbench.dispatch(ada.caller, "get_available_tasks", {"limit": limit})
        assert [task["id"] for task in page["tasks"]] == ids
    assert (await given.task_now(workbench, held))["lease_expires_at"] == until
    assert (await kinds(workbench)).count("task.claimed") == 1


PERSONAS = {"implementer": 200, "planner": 50, "reviewer": 75, "tester": 75}
"""Tasks of each."""


@pytest.mark.long
@pytest.mark.timeout(60)
async def test_a_hundred_workers_on_four_personas_starve_nobody(workbench: Workbench) -> None:
    new = [{"title": "t", "persona_id": p, "priority": n % 3} for p, count in PERSONAS.items() for n in range(count)]
    await workbench.call("create_tasks", tasks=new)
    agents = [await enter(workbench, f"{persona}-{n}", persona) for persona in PERSONAS for n in range(25)]

    async def work(agent: Admitted) -> int:
        done = 0
        while (task := await given.claim(workbench, agent)) is not None:
            await do(workbench, agent, "complete_task", task["id"])
            done += 1
        return done

    done = await asyncio.gather(*map(work, agents))
    by_persona = {persona: done[n * 25 : n * 25 + 25] for n, persona in enumerate(PERSONAS)}
    assert {persona: sum(mine) for persona, mine in by_persona.items()} == PERSONAS
    for persona, mine in by_persona.items():
        assert min(mine) >= PERSONAS[persona] / 25 / 2, f"a {persona} had less than half of its share"
