"""Budgets stop the requests of attempts, and the claims of tasks, once they are used up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import given
from tests.conftest import Admit, Admitted, Served
from tests.shells.models.conftest import Box, key_at
from tests.shells.models.upstream import Asked, Upstream, says, upstream
from workbench.analytics.live import Live, refresh
from workbench.cli.execution import set_budget
from workbench.execution.execution import Execution, Verdict
from workbench.rules.budgets import parse

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ASKED = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": []}
USED = {"input_tokens": 900, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 0, "output_tokens": 500}
EACH = 2_000
"""Tokens of a request."""
SUPERVISOR = "k" * 32
PLAN = "plan: night\nbudget: 100k tokens\ntasks:\n" + "".join(
    f"- {{name: t{number}, title: t, persona: implementer}}\n" for number in range(30)
)


@pytest.fixture(autouse=True)
def _own_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))


def answers() -> Any:
    """A provider that uses the same in each request."""
    return upstream(says({"type": "message", "model": "claude-haiku-4-5", "usage": USED}))


async def budget(served: Served, scope: str) -> dict[str, Any]:
    budgets = (await served.workbench.call("list_budgets"))["budgets"]
    return next(one for one in budgets if one["scope"] == scope)


async def question(served: Served) -> dict[str, Any]:
    (asked,) = (await served.workbench.call("list_approvals", kind="budget"))["approvals"]
    return dict(asked)


@asynccontextmanager
async def attempt(served: Served, agent: Admitted, model: Upstream, task: Any) -> AsyncIterator[httpx2.AsyncClient]:
    workbench = served.workbench
    workbench.gateway.keys[agent.caller.agent] = {"anthropic": key_at(model)}
    workbench.gateway.reading.setdefault(agent.caller.agent, asyncio.Lock())
    about = {"attempt": task["attempt"], "key": SUPERVISOR, "with_models": True}
    begun = await given.done_by(workbench, agent, "begin_attempt", task["id"], **about)
    headers = {"x-api-key": begun["model_token"]}
    base = f"{served.info.url}/models/anthropic/v1/"
    async with httpx2.AsyncClient(base_url=base, headers=headers, trust_env=False, verify=False) as client:
        yield client


async def works(served: Served, agent: Admitted, model: Upstream) -> None:
    """Have an agent do tasks, with two requests each, until there are none."""
    while task := await given.claim(served.workbench, agent):
        async with attempt(served, agent, model, task) as client:
            said = [await client.post("messages", json=ASKED) for _ in range(2)]
        is_done = all(answer.status_code == 200 for answer in said)
        outcome = {"outcome": "completed"} if is_done else {"outcome": "failed", "retryable": False, "reason": "no"}
        about = {"attempt": task["attempt"], "key": SUPERVISOR, **outcome}
        await given.done_by(served.workbench, agent, "finish_attempt", task["id"], **about)


async def test_a_budget_over_thirty_tasks_is_kept_by_four_workers_and_goes_on_where_it_stood_once_raised(
    served: Served, admit: Admit
) -> None:
    workbench = served.workbench
    await workbench.call("create_plan", text=PLAN)
    agents = [await admit(f"ada-{number}") for number in range(4)]
    async with answers() as model:
        await asyncio.gather(*(works(served, agent, model) for agent in agents))
        first = len((await workbench.call("list_tasks", status="completed"))["tasks"])
        spent = await budget(served, "plan:night")
        assert 100_000 <= spent["spent_tokens"] < 100_000 + len(agents) * EACH
        assert spent["spent_tokens"] == len(model.asked) * EACH
        assert first < 30
        assert len(spent["waiting"]) == 30 - first
        assert await given.kinds(workbench, "budget.*") == ["budget.set", "budget.nearly", "budget.exceeded"]
        assert "BUDGET_EXCEEDED" not in str((await workbench.call("list_tasks", status="failed"))["tasks"])
        refused = await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, agents[0], spent["waiting"][0]))
        assert refused.details["reasons"] == ["budget"]

        asked = await question(served)
        assert asked["payload"]["tasks"] >= 30 - first, "those under way then waited too"
        await given.refuses(
            "BUDGET_NOT_RAISED", workbench.call("approve", approval_id=asked["id"], choices={"tokens": 9})
        )
        await workbench.call("approve", approval_id=asked["id"], choices={"tokens": 10**6})
        await asyncio.gather(*(works(served, agent, model) for agent in agents))
        assert len((await workbench.call("list_tasks", status="completed"))["tasks"]) == 30

        spent = await budget(served, "plan:night")
        assert spent["spent_tokens"] == len(model.asked) * EACH
        assert spent["waiting"] == []
        live = Live()
        sums = "SELECT SUM(input_tokens + cached_tokens + output_tokens)::BIGINT FROM spending WHERE plan = 'night'"
        (row,) = live.answer(await refresh(live, workbench.store), sums).fetchall()
        assert row[0] == spent["spent_tokens"]


async def test_what_ten_spend_in_the_same_second_is_counted_once_each_and_nobody_goes_on(
    served: Served, admit: Admit
) -> None:
    workbench = served.workbench
    top = await given.task(workbench)
    await workbench.call("set_budget", scope=f"task:{top}", tokens=EACH)
    together, left = asyncio.Event(), [10]

    async def at_once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        left[0] -= 1
        if not left[0]:
            together.set()
        await together.wait()
        await says({"type": "message", "model": "claude-haiku-4-5", "usage": USED})(asked, writer)

    async with upstream(at_once) as model:

        async def one(number: int) -> list[httpx2.Response]:
            agent = await admit(f"ada-{number}")
            mine = await given.task(workbench, parent_task_id=top)
            async with attempt(served, agent, model, await given.claim(workbench, agent, mine)) as client:
                return [await client.post("messages", json=ASKED) for _ in range(2)]

        said = await asyncio.gather(*map(one, range(10)))
    assert [[answer.status_code for answer in both] for both in said] == [[200, 403]] * 10
    assert "BUDGET_EXCEEDED" in said[0][1].text
    assert (await budget(served, f"task:{top}"))["spent_tokens"] == 10 * EACH


async def test_money_is_not_spent_on_a_model_whose_price_is_unknown(served: Served, box: Box) -> None:
    async with answers() as model:
        client = await box(key_at(model))
        await served.workbench.call("set_budget", scope="project", usd=1)
        unknown = await client.post("/anthropic/v1/messages", json=ASKED | {"model": "mine-7b"})
        assert "PRICE_UNKNOWN" in unknown.text
        assert not model.asked
        assert (await client.post("/anthropic/v1/messages", json=ASKED)).status_code == 200
    rows = (await served.workbench.call("list_costs"))["costs"]
    assert (await budget(served, "project"))["spent_usd"] == pytest.approx(rows[0]["cost_usd"], abs=1e-9)


async def test_a_budget_below_what_is_spent_asks_at_once_and_a_rejection_stops_it_for_good(
    served: Served, box: Box
) -> None:
    workbench = served.workbench
    async with answers() as model:
        client = await box(key_at(model))
        await client.post("/anthropic/v1/messages", json=ASKED)
        await workbench.call("set_budget", scope="project", tokens=EACH - 1)
        assert "BUDGET_EXCEEDED" in (await client.post("/anthropic/v1/messages", json=ASKED)).text
        asked = await question(served)
        await workbench.call("approve", approval_id=asked["id"])
        assert (await budget(served, "project"))["tokens"] == 2 * (EACH - 1)
        await workbench.call("set_budget", scope="project", tokens=2)
        await workbench.call("approve", approval_id=(await question(served))["id"])
        assert (await budget(served, "project"))["tokens"] == EACH + 2, (
            "as much again as was stated, beyond what is spent"
        )
        await workbench.call("set_budget", scope="project", tokens=0)
        asked = await question(served)
        await given.refuses("BUDGET_NOT_RAISED", workbench.call("approve", approval_id=asked["id"]))
        await workbench.call("reject", approval_id=asked["id"], reason="enough")
        assert (await budget(served, "project"))["stopped"]
        assert (await workbench.call("list_approvals", kind="budget"))["approvals"] == []


async def test_attempts_are_counted_and_the_last_one_may_end(served: Served, admit: Admit) -> None:
    workbench, agent = served.workbench, await admit("ada")
    task = await given.task(workbench, max_retries=5)
    await workbench.call("set_budget", scope=f"task:{task}", attempts=1)
    await given.claim(workbench, agent, task)
    assert (await workbench.call("list_approvals", kind="budget"))["approvals"] == []
    await given.done_by(workbench, agent, "fail_task", task, error_message="no")
    assert (await question(served))["payload"]["used_up"] == ["attempts"]
    assert await given.claim(workbench, agent) is None


async def test_an_agent_changes_no_budget_that_there_is(served: Served, admit: Admit) -> None:
    workbench, planner = served.workbench, await admit("pat", "planner")
    text = "plan: mine\nbudget: 5usd\ntasks:\n- {name: a, title: a, persona: implementer, budget: 3 attempts}\n"
    made = await workbench.dispatch(planner.caller, "create_plan", {"text": text})
    exported = (await workbench.call("export_plan", plan="mine"))["text"]
    assert "budget:\n  usd: 5.0" in exported
    assert "attempts: 3" in exported
    more = {"text": text.replace("5usd", "500usd"), "update": True}
    await given.refuses("FORBIDDEN", workbench.dispatch(planner.caller, "create_plan", more))
    await workbench.call("create_plan", **more)
    assert (await budget(served, "plan:mine"))["usd"] == 500
    assert (await budget(served, f"task:{made['tasks']['a']}"))["attempts"] == 3


async def test_an_execution_waits_for_nobody_when_only_a_budget_holds_it_up(served: Served) -> None:
    workbench = served.workbench
    text = "plan: p\nbudget: 0usd\ntasks:\n- {name: a, title: a, persona: implementer, run: 'true'}"
    await workbench.call("create_plan", text=text)
    loop = asyncio.get_running_loop()

    def call(name: str, /, **more: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(workbench.call(name, **more), loop).result()

    standing = await asyncio.to_thread(Execution(call, "p").step)
    assert standing.verdict is Verdict.QUESTIONS
    assert not standing.agents
    assert standing.questions == [(await question(served))["id"]]
    await workbench.call("create_plan", text="plan: other\ntasks:\n- {name: a, title: a, persona: implementer}")
    execution = Execution(call, "other")
    other = await asyncio.to_thread(execution.step)
    assert (other.questions, other.verdict) == ([], Verdict.STUCK), "the question is not about that plan"
    more = "plan: other\ntasks:\n- {name: a, title: a, persona: implementer, worktree: lab}"
    await workbench.call("create_plan", text=more, update=True)
    await asyncio.to_thread(execution.step)
    (made,) = (await workbench.call("get_worktree_status"))["worktrees"]
    assert made["name"] == "lab", "a plan may be changed meanwhile"
    await workbench.call("approve", approval_id=standing.questions[0], choices={"usd": 5})
    await asyncio.to_thread(set_budget, call, "p", parse("0usd"))
    assert (await budget(served, "plan:p"))["usd"] == 5, "said again, it leaves what was raised"
