"""Plans are created whole or not at all."""

from __future__ import annotations

import asyncio

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from tests.services.tasks.plans.conftest import CHANGED, CHECKLIST, TEXT, UNCHANGED, listed
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict
from workbench.services.tasks.plans import apply
from workbench.state.settings import Settings, shipped

pytestmark = pytest.mark.anyio

NOTE = "Tasks 1, 3 have no command (run): only an LLM agent or a person can do them."


async def test_a_plan_becomes_tasks_in_an_order_they_can_be_done_in(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("paula", role="planner")
    plan = await workbench.dispatch(planner.caller, "create_plan", {"text": TEXT})
    version = (await workbench.call("export_plan", plan="p"))["version"]
    assert plan == {
        **{
            "plan": "p",
            "version": version,
            "tasks": {"first": 1, "middle": 2, "last": 3},
            "worktrees": ["lab", "other"],
        },
        **{"changed": True, "diff": UNCHANGED, "note": NOTE, "warnings": [], "approval_id": None},
    }
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
    assert events[-1]["data"] == {"tasks": plan["tasks"]}


NO_PLANS = [
    ("", [1]),
    (TEXT.replace("title: First", "titel: First"), [10, 10]),
    (TEXT.replace("persona: tester", "persona: wizard"), [8]),
    (TEXT.replace("other", "../other"), [10]),
    (TEXT.replace("[echo, hi]", '["\\ud800"]'), [8]),
    (TEXT.replace("{b: [1]}", '{b: "\\ud800"}'), [8]),
    (TEXT.replace("[first]", "[last]").replace("Reviewer", "wizard").replace("plan: p", "plan: a b"), [2, 4, 4]),
]


async def test_a_plan_with_problems_creates_nothing_and_names_their_lines(workbench: Workbench) -> None:
    last = (await workbench.call("list_events", limit=1000))["next_after"]
    for text, lines in NO_PLANS:
        with pytest.raises(BadInput, match="PLAN_INVALID") as refused:
            await workbench.call("create_plan", text=text)
        assert [problem["line"] for problem in refused.value.details["problems"]] == lines, text
        assert await listed(workbench) == []
        assert (await workbench.call("list_plans"))["plans"] == []
    assert (await workbench.call("list_events", after=last))["events"] == []


async def test_the_same_plan_again_changes_nothing_whatever_its_form(workbench: Workbench) -> None:
    plan = await workbench.call("create_plan", text=TEXT)
    await workbench.call("set_priority", task_id=2, priority=8)
    last = (await workbench.call("list_events", after=None))["next_after"]
    form = f"# A comment\n{TEXT.replace('[first, middle, first]', '[middle, first]').replace('Reviewer', 'reviewer')}"
    for text in (TEXT, form):
        for how in ({}, {"update": True}, {"dry_run": True}):
            again = await workbench.call("create_plan", text=text, **how)
            assert again == plan | {"changed": False, "note": None}
    assert (await workbench.call("list_events", after=last))["events"] == []
    assert len(await listed(workbench)) == 3


async def test_a_plan_that_is_sent_many_times_at_once_is_created_once(workbench: Workbench) -> None:
    made = await asyncio.gather(*(workbench.call("create_plan", text=TEXT) for _ in range(8)))
    assert [one["changed"] for one in made].count(True) == 1
    assert [one["tasks"] for one in made] == [{"first": 1, "middle": 2, "last": 3}] * 8
    assert len(await listed(workbench)) == 3


async def test_a_plan_without_a_recorded_hash_is_recognised_by_its_tasks(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.store.write(lambda tx: tx.run(apply.SQL.remember, name="p", sha256="", now=tx.now))
    with pytest.raises(Conflict, match="PLAN_EXISTS"):
        await workbench.call("create_plan", text=CHANGED)
    assert not (await workbench.call("create_plan", text=TEXT))["changed"]
    await workbench.call("set_priority", task_id=2, priority=8)
    assert not (await workbench.call("create_plan", text=TEXT))["changed"]


async def test_another_plan_of_the_same_name_is_refused_and_told_what_to_do(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    with pytest.raises(Conflict, match=r"PLAN_EXISTS.*update=true"):
        await workbench.call("create_plan", text=TEXT.replace("title: First", "title: Foremost"))
    assert len(await listed(workbench)) == 3
    assert (await workbench.call("create_plan", text=TEXT, name="q"))["plan"] == "q"
    assert (await workbench.call("create_plan", text=TEXT, number_if_taken=True))["plan"] == "p-2"
    assert (await workbench.call("create_plan", text=TEXT, number_if_taken=True))["plan"] == "p-3"
    assert (await workbench.call("create_plan", text=TEXT, name="r", number_if_taken=True))["plan"] == "r"
    with pytest.raises(BadInput, match="PLAN_INVALID"):
        await workbench.call("create_plan", text=TEXT, name="a b")
    assert [plan["plan"] for plan in (await workbench.call("list_plans"))["plans"]] == ["p", "q", "p-2", "p-3", "r"]


async def test_a_ticked_item_becomes_no_task_and_no_dependency(workbench: Workbench) -> None:
    ticked = CHECKLIST.replace("[ ] First", "[x] First")
    with pytest.raises(BadInput, match="PLAN_INVALID"):
        await workbench.call("create_plan", text=ticked, format="yaml")
    plan = await workbench.call("create_plan", text=ticked, format="markdown")
    assert (plan["plan"], plan["tasks"]) == ("p", {"middle": 1, "part": 2, "last": 3})
    part, last = [await given.task_now(workbench, n) for n in (2, 3)]
    assert (part["dependencies"], part["parent_task_id"], last["dependencies"]) == ([], 1, [1])


async def test_an_item_is_ticked_when_its_task_is_completed_or_no_longer_needed(
    workbench: Workbench, ada: Admitted
) -> None:
    await workbench.call("create_plan", text=CHECKLIST)
    ticked = CHECKLIST.replace("[ ] First", "[x] First")
    trial = await workbench.call("create_plan", text=ticked, dry_run=True)
    gone = '- first: First\n~ part: after ["first"] → []\n~ last: after ["first", "middle"] → ["middle"]'
    assert trial["diff"]["text"] == gone
    await given.claim(workbench, ada, 1)
    with pytest.raises(Conflict, match="line 3: 'first' is claimed; cancel it before it is removed"):
        await workbench.call("create_plan", text=ticked, update=True)
    await given.done_by(workbench, ada, "complete_task", 1)
    plan = await workbench.call("create_plan", text=ticked)
    assert (plan["changed"], plan["tasks"]) == (False, {"first": 1, "middle": 2, "part": 3, "last": 4})
    text = (await workbench.call("export_plan", plan="p", format="markdown", tick=True))["text"]
    assert "- [x] First" in text
    assert not (await workbench.call("create_plan", text=text))["changed"]


async def test_a_part_may_come_before_the_whole_and_the_whole_may_wait_for_it(workbench: Workbench) -> None:
    text = (
        "plan: p\ntasks:\n- {name: part, title: Part, persona: tester, parent: whole}\n"
        "- {name: whole, title: Whole, persona: tester, after: [part]}\n"
    )
    await workbench.call("create_plan", text=text)
    (whole,) = (await workbench.call("get_task_tree"))["tasks"]
    assert (whole["name"], whole["blocked"], [t["name"] for t in whole["children"]]) == ("whole", True, ["part"])


@pytest.mark.parametrize("limit", [{"max_plan_tasks": 2}, {"max_result_bytes": 1_024}])
async def test_a_plan_and_its_tasks_may_hold_no_more_than_the_settings_say(
    settings: Settings, limit: dict[str, int]
) -> None:
    async with Workbench.open(settings.model_copy(update=limit)) as workbench:
        with pytest.raises(BadInput, match="TOO_LARGE"):
            await workbench.call("create_plan", text=TEXT.replace("{b: [1]}", f"{{b: {'x' * 1_024}}}"))
        assert await listed(workbench) == []


async def test_the_plan_that_comes_with_workbench_is_accepted(workbench: Workbench) -> None:
    text = shipped("data", "penguins-plan.yaml").read_text("utf-8")
    plan = await workbench.call("create_plan", text=text)
    ready = [task["name"] for task in await listed(workbench) if not task["blocked"]]
    assert (plan["worktrees"], ready) == (["report", "bills", "mass"], ["clean"])
