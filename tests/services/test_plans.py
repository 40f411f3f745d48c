"""Plans are created whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, Refused
from workbench.settings import Settings, shipped

pytestmark = pytest.mark.anyio

TEXT = """
plan: p
tasks:
  - name: last
    title: Last
    persona: Reviewer
    after: [first, middle, first]
  - {name: middle, title: Middle, persona: tester, after: [first], worktree: lab, run: [echo, hi], priority: 7,
     max_retries: 0, lease_seconds: 9, description: text, context_ref: doc, metadata: {a: {b: [1]}}}
  - {name: first, title: First, persona: implementer, worktree: other}
"""


async def listed(workbench: Workbench) -> list[dict[str, Any]]:
    """All tasks, by id."""
    tasks: list[dict[str, Any]] = (await workbench.call("list_tasks", limit=500))["tasks"]
    return tasks


async def test_a_plan_becomes_tasks_in_an_order_they_can_be_done_in(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("paula", role="planner")
    made = await workbench.dispatch(planner.caller, "create_plan", {"text": TEXT})
    assert made == {"plan": "p", "tasks": {"first": 1, "middle": 2, "last": 3}, "worktrees": ["lab", "other"]}
    first, middle, last = [await workbench.call("get_task", task_id=n) for n in (1, 2, 3)]
    assert [(t["name"], t["plan"], t["dependencies"], t["blocked"]) for t in (first, middle, last)] == [
        ("first", "p", [], False),
        ("middle", "p", [1], True),
        ("last", "p", [1, 2], True),
    ]
    said = {"title": "Middle", "persona_id": "tester", "worktree": "lab", "run": ["echo", "hi"], "priority": 7}
    more = {"max_retries": 0, "description": "text", "context_ref": "doc", "metadata": {"a": {"b": [1]}}}
    assert {key: middle[key] for key in said | more} == said | more
    assert (last["persona_id"], last["created_by"]) == ("reviewer", "paula")
    events = (await workbench.call("list_events", kinds=["plan.*", "task.*"]))["events"]
    assert [e["kind"] for e in events] == [*(["task.created"] * 3), "plan.created"]
    assert events[-1]["data"] == {"tasks": made["tasks"]}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [1]),
        (TEXT.replace("title: First", "titel: First"), [10, 10]),
        (TEXT.replace("persona: tester", "persona: wizard"), [8]),
        (TEXT.replace("other", "../other"), [10]),
        (TEXT.replace("[first]", "[last]").replace("Reviewer", "wizard").replace("plan: p", "plan: a b"), [2, 4, 4]),
    ],
)
async def test_a_plan_with_problems_creates_nothing_and_names_their_lines(
    workbench: Workbench, text: str, lines: list[int]
) -> None:
    last = (await workbench.call("list_events", limit=1000))["next_after"]
    with pytest.raises(BadInput, match="PLAN_INVALID") as refused:
        await workbench.call("create_plan", text=text)
    assert [problem["line"] for problem in refused.value.details["problems"]] == lines
    assert await listed(workbench) == []
    assert (await workbench.call("list_plans"))["plans"] == []
    assert (await workbench.call("list_events", after=last))["events"] == []


async def test_two_plans_cannot_have_the_same_name(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    with pytest.raises(Conflict, match="PLAN_EXISTS"):
        await workbench.call("create_plan", text=TEXT)
    assert len(await listed(workbench)) == 3
    assert (await workbench.call("create_plan", text=TEXT, name="q"))["plan"] == "q"
    assert (await workbench.call("create_plan", text=TEXT, number_if_taken=True))["plan"] == "p-2"
    assert (await workbench.call("create_plan", text=TEXT, number_if_taken=True))["plan"] == "p-3"
    assert (await workbench.call("create_plan", text=TEXT, name="r", number_if_taken=True))["plan"] == "r"
    with pytest.raises(BadInput, match="PLAN_INVALID"):
        await workbench.call("create_plan", text=TEXT, name="a b")
    assert [plan["plan"] for plan in (await workbench.call("list_plans"))["plans"]] == ["p", "q", "p-2", "p-3", "r"]


async def test_a_plan_has_a_limit_of_tasks(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"max_plan_tasks": 2})) as workbench:
        with pytest.raises(BadInput, match="TOO_LARGE"):
            await workbench.call("create_plan", text=TEXT)
        assert await listed(workbench) == []


async def test_a_task_may_hold_no_more_than_any_other_data_does(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"max_result_bytes": 1_024})) as workbench:
        with pytest.raises(BadInput, match="TOO_LARGE"):
            await workbench.call("create_plan", text=TEXT.replace("{b: [1]}", f"{{b: {'x' * 1_024}}}"))
        assert await listed(workbench) == []


async def test_plans_say_how_far_they_are(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    await workbench.call("create_plan", text=TEXT.replace("worktree: other", "worktree:"))
    assert (await workbench.call("list_plans"))["plans"] == [{"plan": "p", "tasks": 3, "completed": 0, "open": 3}]
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": 1})
    await workbench.call("cancel_task", task_id=3)
    assert (await workbench.call("list_plans"))["plans"] == [{"plan": "p", "tasks": 3, "completed": 1, "open": 1}]


async def test_a_worker_makes_no_plans(workbench: Workbench, admit: Admit) -> None:
    worker = await admit("walt")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(worker.caller, "create_plan", {"text": TEXT})


async def test_the_plan_that_comes_with_workbench_is_accepted(workbench: Workbench) -> None:
    text = shipped("data", "penguins-plan.yaml").read_text("utf-8")
    made = await workbench.call("create_plan", text=text)
    ready = [task["name"] for task in await listed(workbench) if not task["blocked"]]
    assert (made["worktrees"], ready) == (["report", "bills", "mass"], ["clean"])
