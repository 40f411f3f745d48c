"""Budgets of all scopes, of time, and what is said of the same thing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admitted, Clock, admitted
from tests.services.processes.running import over, serving, spawn
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

HOUR = 3_600.0
TEXT = "plan: night\nbudget: 5usd\ntasks:\n- {name: a, title: a, persona: implementer}\n"


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


@pytest.fixture
async def ada(workbench: Workbench) -> Admitted:
    """An implementer in the session `lab`."""
    await given.project(workbench)
    await given.session(workbench, "lab")
    return await admitted(workbench, "ada", session_id="lab")


async def budget(workbench: Workbench, scope: str) -> dict[str, Any]:
    budgets = (await workbench.call("list_budgets"))["budgets"]
    return next(one for one in budgets if one["scope"] == scope)


async def spend(workbench: Workbench, agent: Admitted, task: int | None = None, tokens: int = 100) -> None:
    about = {"model": "m", "task_id": task, "input_tokens": tokens}
    await workbench.dispatch(agent.caller, "report_usage", about)


async def questions(workbench: Workbench) -> list[dict[str, Any]]:
    return list((await workbench.call("list_approvals", kind="budget"))["approvals"])


@pytest.mark.parametrize("scope", ["project", "session:lab", "persona:implementer", "run:1", "plan:night", "task:1"])
async def test_nothing_of_it_is_begun_once_the_budget_of_a_scope_is_used_up_and_all_once_it_is_raised(
    workbench: Workbench, ada: Admitted, scope: str
) -> None:
    session = ada.caller.session
    await workbench.call("create_plan", text=TEXT.replace("budget: 5usd\n", ""))
    task = await given.task(workbench, session_id=session, parent_task_id=1)
    await workbench.call("start_run", name="r", session_id=session)
    await workbench.call("set_budget", scope=scope, tokens=100)
    mine = 1 if scope == "plan:night" else task
    await given.claim(workbench, ada, mine)
    await spend(workbench, ada, mine)
    await given.done_by(workbench, ada, "release_task", mine)
    assert await given.claim(workbench, ada) is None or scope == "plan:night"
    refused = await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, ada, mine))
    assert refused.details["reasons"] == ["budget"]
    assert f"the budget of {'the project' if scope == 'project' else scope.replace(':', ' ')} is used up" in str(
        refused
    )
    spent = await budget(workbench, f"session:{session}" if scope == "session:lab" else scope)
    assert (spent["spent_tokens"], spent["spent_attempts"], spent["used_up"]) == (100, 1, ["tokens"])
    assert mine in spent["waiting"]
    (asked,) = await questions(workbench)
    await workbench.call("approve", approval_id=asked["id"])
    assert (await given.claim(workbench, ada, mine))["id"] == mine


async def test_the_time_of_a_budget_runs_while_at_least_one_attempt_is_under_way(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    bob = await admitted(workbench, "bob")
    tasks = [await given.task(workbench, lease_seconds=80_000) for _ in range(3)]
    await workbench.call("set_budget", scope="project", seconds=2 * HOUR)
    clock.forward(HOUR)
    assert (await budget(workbench, "project"))["spent_seconds"] == 0, "nobody works"
    await given.claim(workbench, ada, tasks[0])
    clock.forward(HOUR)
    await given.claim(workbench, bob, tasks[1])
    await given.done_by(workbench, ada, "complete_task", tasks[0])
    clock.forward(HOUR / 2)
    assert (await budget(workbench, "project"))["spent_seconds"] == 1.5 * HOUR, "two at a time count once"
    clock.forward(HOUR / 2)
    await workbench.duties["asking about budgets"].perform(workbench._ctx)
    (asked,) = await questions(workbench)
    assert asked["payload"]["used_up"] == ["seconds"]
    await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, ada, tasks[2]))
    await given.done_by(workbench, bob, "complete_task", tasks[1])  # what runs may finish
    clock.forward(5 * HOUR)
    await workbench.call("approve", approval_id=asked["id"])
    raised = await budget(workbench, "project")
    assert (raised["seconds"], raised["spent_seconds"]) == (4 * HOUR, 2 * HOUR), "nobody worked meanwhile"
    assert await given.claim(workbench, ada, tasks[2])


async def test_a_task_that_is_moved_takes_what_it_spent_with_it(workbench: Workbench, ada: Admitted) -> None:
    names = "- {name: a, title: a, persona: reviewer}\n- {name: b, title: b, persona: reviewer}\n"
    text = "plan: p\ntasks:\n" + names + "- {name: c, title: c, persona: implementer, parent: a}\n"
    ids = (await workbench.call("create_plan", text=text))["tasks"]
    for name in "ab":
        await workbench.call("set_budget", scope=f"task:{ids[name]}", tokens=100)
    await given.claim(workbench, ada, ids["c"])
    await spend(workbench, ada, ids["c"])
    await given.done_by(workbench, ada, "release_task", ids["c"])
    await workbench.call("create_plan", text=text.replace("parent: a", "parent: b"), update=True)
    left, now = [await budget(workbench, f"task:{ids[name]}") for name in "ab"]
    assert (left["spent_tokens"], left["spent_attempts"], left["used_up"]) == (0, 0, [])
    assert (now["spent_tokens"], now["spent_attempts"], now["used_up"]) == (100, 1, ["tokens"])


async def test_what_a_person_sets_stays_when_the_same_is_declared_again(workbench: Workbench, ada: Admitted) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("set_budget", scope="plan:night", usd=50)
    await workbench.call("create_plan", text=TEXT + "- {name: b, title: b, persona: implementer}\n", update=True)
    assert (await budget(workbench, "plan:night"))["usd"] == 50
    assert "usd: 5.0" in (await workbench.call("export_plan", plan="night"))["text"], "the plan says so"
    await workbench.call("create_plan", text=TEXT.replace("5usd", "6usd"), update=True)
    assert (await budget(workbench, "plan:night"))["usd"] == 6
    await workbench.call("set_budget", scope="plan:night")
    await workbench.call("create_plan", text=TEXT.replace("5usd", "6usd"), update=True)
    assert (await workbench.call("list_budgets"))["budgets"] == []


async def test_what_the_settings_state_is_set_once_until_they_state_something_else(migrated: Settings) -> None:
    async def limits_of(change: float | None, **settings: Any) -> list[Any]:
        async with Workbench.open(migrated.model_copy(update=settings)) as workbench:
            if change is not None:
                await workbench.call("set_budget", scope="project", usd=change)
            return [one["usd"] for one in (await workbench.call("list_budgets"))["budgets"]]

    assert await limits_of(None, budget_usd=5.0) == [5]
    assert await limits_of(50.0, budget_usd=5.0) == [50]
    assert await limits_of(None, budget_usd=5.0) == [50]
    assert await limits_of(None, budget_usd=6.0) == [6]
    assert await limits_of(None) == []


async def test_a_persona_states_its_budget_in_its_front_matter(workbench: Workbench, ada: Admitted) -> None:
    async def save(budget: str) -> None:
        await workbench.call("save_persona", persona_id="implementer", text=f"---\nbudget: {budget}\n---\nDo it.")

    async def stated() -> list[Any]:
        return [one["stated"] for one in (await workbench.call("list_budgets"))["budgets"]]

    await save("1 attempt")
    await given.until(lambda: stated())
    tasks = [await given.task(workbench) for _ in range(2)]
    await given.end(workbench, ada, tasks[0])
    await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, ada, tasks[1]))
    await save("{usd: 3, seconds: 7200}")
    async with workbench.feed.subscribe("budget.set") as events:
        while await stated() != [{"usd": 3, "seconds": 7200}]:
            await anext(events)
    assert await given.claim(workbench, ada, tasks[1])
    refusal = await given.refuses("PERSONA_INVALID", save("{hopes: 3}"))
    assert "`budget`: hopes: unknown name" in str(refusal)


SCOPES = {
    "": "BAD_SCOPE",
    "plan:": "BAD_SCOPE",
    "task:x": "BAD_SCOPE",
    "task:" + "9" * 40: "BAD_SCOPE",
    "task:٣": "BAD_SCOPE",
    "galaxy:far": "BAD_SCOPE",
    "plan:none": "PLAN_NOT_FOUND",
    "session:none": "SESSION_NOT_FOUND",
    "persona:none": "PERSONA_NOT_FOUND",
    "run:7": "RUN_NOT_FOUND",
    "task:7": "TASK_NOT_FOUND",
    "session:twin": "AMBIGUOUS_NAME",
}
AMOUNTS = ({"tokens": -1}, {"usd": float("nan")}, {"usd": 1e300}, {"seconds": -1}, {"attempts": 10**9})


async def test_a_budget_is_a_sensible_amount_for_something_that_there_is(workbench: Workbench) -> None:
    for project in ("p", "q"):
        await given.project(workbench, project)
        await given.session(workbench, "twin", project)
    for scope, code in SCOPES.items():
        await given.refuses(code, workbench.call("set_budget", scope=scope, tokens=1))
    for amounts in AMOUNTS:
        await given.refuses("INVALID_ARGUMENTS", workbench.call("set_budget", scope="project", **amounts))


async def test_absurd_numbers_are_booked_and_stay_within_what_the_store_holds(
    workbench: Workbench, ada: Admitted
) -> None:
    await workbench.call("set_budget", scope="project", tokens=1)
    for _ in range(3):
        await workbench.dispatch(
            ada.caller, "report_usage", {"model": "m", "input_tokens": 10**12, "output_tokens": 10**12, "cost_usd": 1e9}
        )
    spent = await budget(workbench, "project")
    assert (spent["spent_tokens"], spent["spent_usd"]) == (6 * 10**12, 3e9)


async def test_the_view_has_the_sums_of_the_ledger_for_each_limit(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    session = str(ada.caller.session)
    ids = (await workbench.call("create_plan", text=TEXT.replace("5usd", "{usd: 5, tokens: 1000, seconds: 60}")))[
        "tasks"
    ]
    part = await given.task(workbench, parent_task_id=ids["a"], session_id=session)
    run = (await workbench.call("start_run", name="r", session_id=session))["id"]
    inner = (await workbench.call("start_run", name="i", session_id=session, parent_id=run))["id"]
    scopes = [f"session:{session}", "persona:implementer", f"run:{run}", f"run:{inner}", f"task:{ids['a']}"]
    for scope in scopes:
        await workbench.call("set_budget", scope=scope, usd=1, tokens=1_000, attempts=5, seconds=100)
    bob = await admitted(workbench, "bob")
    await given.claim(workbench, ada, part)
    clock.forward(10)
    await given.claim(workbench, bob, ids["a"])
    for agent, task, tokens in ((ada, part, 800), (bob, ids["a"], 100), (bob, None, 50)):
        await spend(workbench, agent, task, tokens)
    clock.forward(5)
    await given.done_by(workbench, ada, "complete_task", part)
    clock.forward(5)
    await given.done_by(workbench, bob, "complete_task", ids["a"])
    live = Live()
    query = "SELECT scope, amount, allowed, spent, share, state, unpriced FROM budgets"
    rows = live.answer(await refresh(live, workbench.store), query).fetchall()
    found = {(scope, amount): more for scope, amount, *more in rows}
    assert found["plan:night", "seconds"] == [60, 10, pytest.approx(1 / 6), "open", 1]
    assert found[f"task:{ids['a']}", "seconds"][1] == 20
    assert found[f"run:{inner}", "tokens"] == [1_000, 800, 0.8, "nearly", 1]
    for one in (await workbench.call("list_budgets"))["budgets"]:
        for amount in ("tokens", "usd", "attempts", "seconds"):
            if one[amount] is not None:
                assert found[one["scope"], amount][:2] == [one[amount], one[f"spent_{amount}"]]
    await workbench.call("set_budget", scope=f"run:{run}", tokens=1)
    await workbench.call("set_budget", scope="plan:night", tokens=0)
    rows = live.answer(
        await refresh(live, workbench.store), query + " WHERE allowed < 2 AND amount = 'tokens'"
    ).fetchall()
    assert [(scope, share, state) for scope, _, _, _, share, state, _ in rows] == [
        ("plan:night", None, "used up"),
        (f"run:{run}", 800, "used up"),
    ]


@pytest.mark.usefixtures("_own_prices")
async def test_a_budget_in_money_says_at_once_that_models_without_a_price_were_used(
    workbench: Workbench, ada: Admitted, tmp_path: Path
) -> None:
    await workbench.call("create_plan", text=TEXT)
    await spend(workbench, ada)
    assert "1 of its requests have no known cost (m)" in await warning_of(workbench, "session:lab", usd=5)
    assert await warning_of(workbench, "session:lab", tokens=5) == ""
    before = (await workbench.call("estimate_costs", plan="night"))["sentence"]
    assert "The price of m is not known, and the budget of plan night is in US dollars: requests are refused." in before
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "prices.yaml").write_text(
        "prices:\n- {model: m, input: 1, cached: 1, cache_write: 1, output: 1}\n"
    )
    assert "The price of m" not in (await workbench.call("estimate_costs", plan="night"))["sentence"]


@pytest.fixture
def _own_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))


async def warning_of(workbench: Workbench, scope: str, **limits: float) -> str:
    """What is said when a budget is set."""
    return str((await workbench.call("set_budget", scope=scope, **limits))["warning"])


@pytest.mark.parametrize(
    ("settings", "how"),
    [({"budget_ends_running": True}, "released"), ({}, "completed")],
    indirect=["settings"],
    ids=["ended", "finishes"],
)
async def test_at_the_end_of_a_budget_of_time_what_runs_may_finish_or_is_ended_without_using_up_a_retry(
    migrated: Settings, how: str
) -> None:
    async with serving(migrated) as served:
        workbench = served.workbench
        wait = "sleep 1000" if how == "released" else "sleep 0.4"
        task = await given.task(workbench, run=wait)
        agent = await spawn(served)
        await given.reached(workbench, task, "in_progress")
        await workbench.call("set_budget", scope="project", seconds=0.001)
        seen = await given.reached(workbench, task, "pending" if how == "released" else "completed")
        (attempt,) = seen["attempts"]
        assert (attempt["outcome"], seen["retry_count"]) == (how, 0)
        assert (await budget(workbench, "project"))["used_up"] == ["seconds"]
        if how == "released":
            assert (await over(served, agent["agent_id"]))["reason"] == "The budget of its task is used up."
            assert [one["payload"]["tasks"] for one in await questions(workbench)] == [1]
