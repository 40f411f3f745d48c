"""An update changes a plan to a new text, whole or not at all."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from tests import given
from tests.conftest import Admit, Admitted
from tests.rules.tasks.test_plan import documents
from tests.services.tasks.plans.conftest import CHANGED, EXTRA, SET_CANCEL, TEXT, UNCHANGED, listed
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.rules import yaml_text
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import Format, write

pytestmark = pytest.mark.anyio


async def test_an_update_adds_changes_and_removes_in_one_go_and_tells(workbench: Workbench) -> None:
    trial = await workbench.call("create_plan", text=TEXT, dry_run=True)
    assert (trial["tasks"], trial["changed"], trial["diff"]["added"]) == ({}, True, ["last", "middle", "first"])
    assert (await workbench.call("list_plans"))["plans"] == []
    made = await workbench.call("create_plan", text=TEXT, update=True)  # of what is not there
    assert made["tasks"] == {"first": 1, "middle": 2, "last": 3}
    before, last = await listed(workbench), (await workbench.call("list_events", after=None))["next_after"]
    trial = await workbench.call("create_plan", text=CHANGED, dry_run=True)
    assert (await listed(workbench), trial["tasks"]) == (before, made["tasks"])
    made = await workbench.call("create_plan", text=CHANGED, update=True)
    assert made["tasks"] == {"first": 1, "last": 3, "extra": 4}
    assert (made["changed"], made["worktrees"], made["diff"]) == (True, ["lab"], trial["diff"])
    assert made["diff"]["text"].splitlines()[:2] == ["+ extra: Extra", "- middle: Middle"]
    first, middle, last_one, extra = [await given.task_now(workbench, n) for n in (1, 2, 3, 4)]
    said = {"title": "Foremost", "persona_id": "tester", "worktree": "lab", "run": "ls", "priority": 900}
    more = {"max_retries": 9, "description": "text", "context_ref": "doc", "metadata": {"x": 1}, "lease_seconds": 7.0}
    rest = {"no_retry": ["ValueError"], "on_failure": "ignore", "dependencies": [3, 4], "blocked_by": [3, 4]}
    assert {key: first[key] for key in said | more | rest} == said | more | rest
    assert [(t["plan"], t["status"], t["parent_task_id"]) for t in (first, middle, last_one, extra)] == [
        *(("p", "pending", 4), (None, "cancelled", None), ("p", "pending", 4), ("p", "pending", None)),
    ]
    assert (last_one["dependencies"], last_one["blocked"], extra["blocked"]) == ([], False, False)
    events = (await workbench.call("list_events", after=last))["events"]
    assert [e["kind"] for e in events if e["kind"].startswith("plan.")] == ["plan.updated"]
    assert events[-1]["data"] == {
        **{"added": ["extra"], "changed": ["first", "last"], "removed": ["middle"], "retried": []},
        "tasks": {"extra": 4, "first": 1, "last": 3, "middle": 2},
    }
    assert [e["data"]["fields"] for e in events if e["kind"] == "task.changed"][1] == ["parent", "after"]
    assert not (await workbench.call("create_plan", text=CHANGED))["changed"]
    with pytest.raises(Conflict, match="PLAN_EXISTS"):
        await workbench.call("create_plan", text=TEXT)
    back = await workbench.call("create_plan", text=TEXT, update=True)
    assert back["tasks"] == {"first": 1, "last": 3, "middle": 5}
    fresh = await workbench.call("create_plan", text=TEXT, name="q")
    texts = [(await workbench.call("export_plan", plan=plan))["text"] for plan in ("p", "q")]
    assert len({text.partition("tasks:")[2].count("\n") for text in texts}) == len(fresh["diff"]["added"]) + 1


async def test_a_plan_update_that_changes_a_claimed_task_is_refused_whole(workbench: Workbench, ada: Admitted) -> None:
    await workbench.call("create_plan", text=TEXT.replace("worktree: other", "worktree:"))
    await given.claim(workbench, ada, 1)
    before = await listed(workbench)
    text = CHANGED.replace("worktree: lab", "worktree:").replace("extra}", "extra, priority: 3}")
    for how in ({"update": True}, {"dry_run": True}):
        with pytest.raises(Conflict, match="PLAN_CONFLICT") as refused:
            await workbench.call("create_plan", text=text, **how)
        (problem,) = refused.value.details["problems"]
        assert (problem["line"], problem["task"]) == (4, "first")
        assert problem["reason"].startswith("'first' is claimed; title, persona, description, parent, ")
        assert "+ extra" in refused.value.details["diff"]
    assert await listed(workbench) == before
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": 1})
    with pytest.raises(Conflict, match=r"\n  not in the text: 'first' is completed; it stays in the plan"):
        await workbench.call("create_plan", text=EXTRA, update=True)


async def test_a_priority_set_by_hand_does_not_keep_a_plan_from_growing(workbench: Workbench, ada: Admitted) -> None:
    await workbench.call("create_plan", text=EXTRA)
    await workbench.call("set_priority", task_id=1, priority=900)
    await given.claim(workbench, ada)
    plan = await workbench.call("create_plan", text=EXTRA + EXTRA.splitlines()[-1].replace("extra", "b"), update=True)
    assert (plan["diff"]["added"], plan["diff"]["changed"]) == (["b"], {})
    assert (await given.task_now(workbench, 1))["priority"] == 900


async def test_a_plan_update_may_drop_a_cancelled_task_and_reuse_its_name(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("cancel_task", task_id=3)
    with pytest.raises(Conflict, match="line 4: 'last' is cancelled; retry it before title can change"):
        await workbench.call("create_plan", text=TEXT.replace("title: Last", "title: Least"), update=True)
    extra = await workbench.call("create_plan", text=EXTRA, update=True)
    assert extra["tasks"] == {"extra": 4}
    assert (await workbench.call("list_plans"))["plans"] == [
        {
            "plan": "p",
            "tasks": 1,
            "completed": 0,
            "failed": 0,
            "cancelled": 0,
            "open": 1,
            "blocked": 0,
            "version": extra["version"],
        }
    ]
    assert (await workbench.call("create_plan", text=TEXT, update=True))["tasks"] == {
        "first": 5,
        "middle": 6,
        "last": 7,
    }


async def test_the_second_of_two_updates_of_one_version_is_refused(workbench: Workbench) -> None:
    version = (await workbench.call("create_plan", text=TEXT))["version"]
    assert (await workbench.call("export_plan", plan="p"))["version"] == version
    mine, yours = (TEXT.replace("title: Last", f"title: {title}") for title in ("Mine", "Yours"))
    updated = await workbench.call("create_plan", text=mine, update=True, based_on=version)
    refused = await given.refuses(
        "PLAN_CHANGED", workbench.call("create_plan", text=yours, update=True, based_on=version)
    )
    assert refused.details["diff"] == "~ last: title Mine → Yours"
    assert not (await workbench.call("create_plan", text=mine, update=True, based_on=version))["changed"]
    await workbench.call("create_plan", text=yours, update=True, based_on=updated["version"])


FAILING = """\
plan: p
tasks:
- {name: a, title: A, persona: implementer, run: "exit 1", max_retries: 0, worktree: lab}
- {name: b, title: B, persona: implementer, after: [a]}
"""
CORRECTED = FAILING.replace("exit 1", "exit 0").replace("lab", "lab2")


async def test_a_corrected_line_of_a_failed_task_retries_it(workbench: Workbench, settle: Admit) -> None:
    await workbench.call("create_plan", text=FAILING)
    ada = await settle("ada", "lab")
    await given.claim(workbench, ada, 1)
    await workbench.dispatch(ada.caller, "fail_task", {"task_id": 1, "error_message": "no"})
    await workbench.call("discard_worktree", worktree_name="lab", force=True)
    assert "~ a: " in (await workbench.call("create_plan", text=CORRECTED, dry_run=True))["diff"]["text"]
    assert (await workbench.call("get_task", task_id=1))["status"] == "failed"
    more = CORRECTED + "- {name: c, title: C, persona: implementer, after: [a], on_failure: cancel}\n"
    plan = await workbench.call("create_plan", text=more, update=True)
    assert (plan["diff"]["changed"].keys(), plan["diff"]["retried"]) == ({"a"}, ["a"])
    assert plan["diff"]["text"].splitlines() == ["+ c: C", "~ a: worktree lab → lab2; run exit 1 → exit 0; retried"]
    first, second, third = [await workbench.call("get_task", task_id=n) for n in (1, 2, 3)]
    assert (first["status"], first["run"], first["worktree"], first["retry_count"]) == ("pending", "exit 0", "lab2", 0)
    assert [second["blocked_by"], third["blocked_by"]] == [[1], [1]]
    assert not (await workbench.call("create_plan", text=more, update=True))["changed"]


async def test_a_corrected_task_waits_for_its_closed_worktree_to_be_created_anew(
    workbench: Workbench, settle: Admit
) -> None:
    await workbench.call("create_plan", text=FAILING)
    ada = await settle("ada", "lab")
    await given.claim(workbench, ada, 1)
    await workbench.dispatch(ada.caller, "fail_task", {"task_id": 1, "error_message": "no"})
    await workbench.call("discard_worktree", worktree_name="lab", force=True)
    plan = await workbench.call("create_plan", text=FAILING.replace("exit 1", "exit 0"), update=True)
    branch = (await workbench.call("list_closed_worktrees"))["worktrees"][0]["branch_name"]
    assert plan["warnings"] == [f"a: the worktree lab is discarded: create it anew to go on, from its branch {branch}."]
    assert (plan["diff"]["retried"], (await given.task_now(workbench, 1))["status"]) == (["a"], "pending")
    await workbench.call("create_worktree", name="lab", branch_name=branch)


async def test_removing_a_task_from_a_plan_cancels_it_for_its_dependants(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("create_subtask", parent_task_id=2, title="Part")
    await workbench.call("create_task", title="Other", persona_id="tester", dependencies=[2], on_failure="cancel")
    text = TEXT.replace("[first, middle, first]", "[first]").replace("name: middle", "name: centre")
    plan = await workbench.call("create_plan", text=text, update=True)
    assert plan["tasks"] == {"first": 1, "last": 3, "centre": 6}
    assert [t["status"] for t in await listed(workbench)] == [
        *("pending", "cancelled", "pending", "cancelled", "cancelled", "pending"),
    ]


async def test_an_update_cannot_have_tasks_wait_for_each_other_by_way_of_others(workbench: Workbench) -> None:
    free = TEXT.replace("[first, middle, first]", "[]").replace("after: [first]", "after: []")
    ids = (await workbench.call("create_plan", text=free))["tasks"]
    await workbench.call("create_task", title="Between", persona_id="tester", dependencies=[ids["last"]])
    await workbench.call("add_dependency", task_id=ids["first"], depends_on=4)
    described = free.replace("title: First", "title: Foremost")
    assert list((await workbench.call("create_plan", text=described, update=True))["diff"]["changed"]) == ["first"]
    assert (await workbench.call("get_task", task_id=ids["first"]))["dependencies"] == [4]
    before = await listed(workbench)
    with pytest.raises(Conflict, match="DEPENDENCY_CYCLE"):
        await workbench.call("create_plan", text=TEXT, update=True)
    assert await listed(workbench) == before


@settings_of_hypothesis(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis.given(one=documents(), other=documents(), form=st.sampled_from(["yaml", "markdown"]))
async def test_an_update_turns_any_plan_into_any_other(
    workbench: Workbench, one: dict[str, Any], other: dict[str, Any], form: Format
) -> None:
    old, new = (write(rules.parse(yaml_text.write(_here(said))), form) for said in (one, other))
    name = (await workbench.call("create_plan", text=old, number_if_taken=True))["plan"]
    plan = await workbench.call("create_plan", text=new, name=name, update=True)
    assert plan["tasks"].keys() == {task["name"] for task in other["tasks"]}
    text = (await workbench.call("export_plan", plan=name, format=form))["text"]
    for said in (new, text):
        assert (await workbench.call("create_plan", text=said, name=name, dry_run=True))["diff"] == UNCHANGED
    assert not (await workbench.call("create_plan", text=text, name=name))["changed"]
    ready = [task["name"] for task in await listed(workbench, plan=name) if not task["blocked"]]
    assert set(ready) == {task["name"] for task in other["tasks"] if not _waits(other["tasks"], task)}


def _waits(tasks: list[dict[str, Any]], task: dict[str, Any]) -> bool:
    """Whether a task, or one that it is a part of, comes after another. (None comes after its own part here.)"""
    above = [other for other in tasks if other["name"] == task.get("parent")]
    return bool(task.get("after")) or any(_waits(tasks, other) for other in above)


def _here(document: dict[str, Any]) -> dict[str, Any]:
    """A generated plan without sessions, which are not there, and with leases of whole seconds."""
    for task in document["tasks"]:
        task.pop("session", None)
        if "lease_seconds" in task:
            task["lease_seconds"] = math.ceil(task["lease_seconds"])
    return document


DOOMED = """plan: p
tasks:
  - {name: first, title: First, persona: implementer}
  - {name: second, title: Second, persona: implementer, AFTER}
MORE"""


@pytest.mark.parametrize(
    ("after", "more", "line"),
    [
        ("after: [first], on_failure: cancel", "", 4),
        ("on_failure: cancel, after: [first], title: Other", "", 4),
        ("", "  - {name: third, title: T, persona: tester, after: [second, first], on_failure: cancel}", 5),
    ],
)
async def test_an_update_that_makes_a_task_depend_on_a_dead_one_is_refused_whole(
    workbench: Workbench, after: str, more: str, line: int
) -> None:
    await workbench.call("create_plan", text=DOOMED.replace("AFTER", "").replace("MORE", ""))
    await workbench.call("cancel_task", task_id=1)
    text = DOOMED.replace("AFTER", after).replace("title: Second, ", "" if "title" in after else "title: Second, ")
    text = text.replace("MORE", more)
    before = await listed(workbench)
    for how in ({"update": True}, {"dry_run": True}):
        with pytest.raises(Conflict, match=r"^DEPENDENCY_DEAD") as refused:
            await workbench.call("create_plan", text=text, **how)
        (problem,) = refused.value.details["problems"]
        assert (problem["line"], problem["depends_on"], refused.value.details["dead"]) == (line, "first", [1])
        assert "Retry 1 (first) first" in refused.value.message
    assert await listed(workbench) == before
    for policy in ("block", "ignore"):
        calm = text.replace("on_failure: cancel", f"on_failure: {policy}")
        assert (await workbench.call("create_plan", text=calm, update=True))["changed"]
    await workbench.call("retry_task", task_id=1)
    assert (await workbench.call("create_plan", text=text, update=True))["changed"]


async def test_an_old_dependency_on_a_dead_task_does_not_block_other_changes(
    workbench: Workbench,
) -> None:
    """A project may hold one that waits for the dead for ever."""
    blocking = DOOMED.replace("AFTER", "after: [first]").replace("MORE", "")
    await workbench.call("create_plan", text=blocking)
    await workbench.call("cancel_task", task_id=1)
    await workbench.store.write(lambda tx: tx.run(SET_CANCEL))
    doomed = blocking.replace("after: [first]", "after: [first], on_failure: cancel")
    plan = await workbench.call("create_plan", text=doomed.replace("Second", "Other"), update=True)
    assert [change["field"] for change in plan["diff"]["changed"]["second"]] == ["title"]
