"""Plans are created whole or not at all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from tests.conftest import Admit
from tests.rules.tasks.test_plan import documents
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import Format, write
from workbench.services.tasks.plans import apply
from workbench.settings import Settings, shipped
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio


@pytest.fixture
async def workbench(settings: Settings) -> AsyncIterator[Workbench]:
    """An open project with a session, `night`."""
    async with Workbench.open(settings) as opened:
        await opened.call("create_project", name="house")
        await opened.call("create_session", project_id="house", name="night")
        yield opened


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


SET_CANCEL = Query("set_cancel", "UPDATE tasks SET on_failure = 'cancel' WHERE name = 'second'")
UNCHANGED = {"added": [], "removed": [], "changed": {}, "text": ""}


async def listed(workbench: Workbench, **wanted: str) -> list[dict[str, Any]]:
    """All tasks, by id."""
    tasks: list[dict[str, Any]] = (await workbench.call("list_tasks", limit=500, **wanted))["tasks"]
    return tasks


async def test_a_plan_becomes_tasks_in_an_order_they_can_be_done_in(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("paula", role="planner")
    made = await workbench.dispatch(planner.caller, "create_plan", {"text": TEXT})
    assert made == {
        **{"plan": "p", "tasks": {"first": 1, "middle": 2, "last": 3}, "worktrees": ["lab", "other"]},
        **{"changed": True, "diff": UNCHANGED},
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
    assert events[-1]["data"] == {"tasks": made["tasks"]}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [1]),
        (TEXT.replace("title: First", "titel: First"), [10, 10]),
        (TEXT.replace("persona: tester", "persona: wizard"), [8]),
        (TEXT.replace("other", "../other"), [10]),
        (TEXT.replace("[echo, hi]", '["\\ud800"]'), [8]),
        (TEXT.replace("{b: [1]}", '{b: "\\ud800"}'), [8]),
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


async def test_the_same_plan_again_changes_nothing_whatever_its_form(workbench: Workbench) -> None:
    made = await workbench.call("create_plan", text=TEXT)
    await workbench.call("set_priority", task_id=2, priority=8)
    last = (await workbench.call("list_events", after=None))["next_after"]
    form = f"# A comment\n{TEXT.replace('[first, middle, first]', '[middle, first]').replace('Reviewer', 'reviewer')}"
    for text in (TEXT, form):
        for how in ({}, {"update": True}, {"dry_run": True}):
            again = await workbench.call("create_plan", text=text, **how)
            assert again == made | {"changed": False}
    assert (await workbench.call("list_events", after=last))["events"] == []
    assert len(await listed(workbench)) == 3


async def test_a_plan_that_is_sent_many_times_at_once_is_created_once(workbench: Workbench) -> None:
    made = await asyncio.gather(*(workbench.call("create_plan", text=TEXT) for _ in range(8)))
    assert [one["changed"] for one in made].count(True) == 1
    assert {str(sorted(one["tasks"].items())) for one in made} == {"[('first', 1), ('last', 3), ('middle', 2)]"}
    assert len(await listed(workbench)) == 3


async def test_a_plan_whose_text_nobody_kept_in_mind_is_known_by_its_tasks(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.store.write(lambda tx: tx.run(apply.SQL.remember, name="p", sha256="", now=tx.now))
    with pytest.raises(Conflict, match="PLAN_EXISTS"):
        await workbench.call("create_plan", text=CHANGED)
    assert not (await workbench.call("create_plan", text=TEXT))["changed"]
    await workbench.call("set_priority", task_id=2, priority=8)
    assert not (await workbench.call("create_plan", text=TEXT))["changed"]


async def test_the_format_can_be_told(workbench: Workbench) -> None:
    assert (await workbench.call("create_plan", text=CHECKLIST, format="markdown"))["plan"] == "p"
    with pytest.raises(BadInput, match="PLAN_INVALID"):
        await workbench.call("create_plan", text=CHECKLIST, format="yaml")


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


CHANGED = """
plan: p
tasks:
  - name: first
    title: Foremost
    persona: tester
    description: text
    priority: 900
    worktree: lab
    run: ls
    max_retries: 9
    no_retry: [ValueError]
    lease_seconds: 7
    context_ref: doc
    metadata: {x: 1}
    on_failure: ignore
    after: [last, extra]
    parent: extra
  - {name: last, title: Last, persona: reviewer, parent: extra}
  - {name: extra, title: Extra, persona: implementer}
"""
"""The plan with `middle` gone, `extra` added, and `first` and `last` the other way round."""


async def test_an_update_adds_changes_and_removes_in_one_go_and_tells(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    before, last = await listed(workbench), (await workbench.call("list_events", after=None))["next_after"]
    trial = await workbench.call("create_plan", text=CHANGED, dry_run=True)
    assert (await listed(workbench), trial["tasks"]) == (before, {"first": 1, "middle": 2, "last": 3})
    made = await workbench.call("create_plan", text=CHANGED, update=True)
    assert made["tasks"] == {"first": 1, "last": 3, "extra": 4}
    assert (made["changed"], made["worktrees"], made["diff"]) == (True, ["lab"], trial["diff"])
    assert made["diff"]["text"].splitlines()[:2] == ["+ extra: Extra", "- middle: Middle"]
    first, middle, last_one, extra = [await workbench.call("get_task", task_id=n) for n in (1, 2, 3, 4)]
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
        **{"added": ["extra"], "changed": ["first", "last"], "removed": ["middle"]},
        "tasks": {"extra": 4, "first": 1, "last": 3, "middle": 2},
    }
    assert [e["data"]["fields"] for e in events if e["kind"] == "task.changed"][1] == ["parent", "after"]


async def test_after_an_update_the_new_text_is_the_plan_and_the_old_one_another(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("create_plan", text=CHANGED, update=True)
    assert not (await workbench.call("create_plan", text=CHANGED))["changed"]
    with pytest.raises(Conflict, match="PLAN_EXISTS"):
        await workbench.call("create_plan", text=TEXT)
    back = await workbench.call("create_plan", text=TEXT, update=True)
    assert back["tasks"] == {"first": 1, "last": 3, "middle": 5}
    fresh = await workbench.call("create_plan", text=TEXT, name="q")
    told = [(await workbench.call("export_plan", plan=plan))["text"] for plan in ("p", "q")]
    assert len({text.partition("tasks:")[2].count("\n") for text in told}) == len(fresh["diff"]["added"]) + 1


async def test_an_update_of_what_is_not_there_creates_it(workbench: Workbench) -> None:
    trial = await workbench.call("create_plan", text=TEXT, dry_run=True)
    assert (trial["tasks"], trial["changed"], trial["diff"]["added"]) == ({}, True, ["last", "middle", "first"])
    assert (await workbench.call("list_plans"))["plans"] == []
    assert (await workbench.call("create_plan", text=TEXT, update=True))["tasks"].keys() == {"first", "middle", "last"}


async def test_what_has_begun_cannot_be_changed_and_the_update_is_refused_whole(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    await workbench.call("create_plan", text=TEXT.replace("worktree: other", "worktree:"))
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
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


EXTRA = "plan: p\ntasks:\n- {name: extra, title: Extra, persona: implementer}\n"


async def test_a_priority_set_by_hand_does_not_keep_a_plan_from_growing(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    text = "plan: p\ntasks:\n- {name: a, title: A, persona: implementer}"
    task = (await workbench.call("create_plan", text=text))["tasks"]["a"]
    await workbench.call("set_priority", task_id=task, priority=900)
    await workbench.dispatch(ada.caller, "claim_task", {})
    more = text + "\n- {name: b, title: B, persona: implementer}"
    made = await workbench.call("create_plan", text=more, update=True)
    assert (made["diff"]["added"], made["diff"]["changed"]) == (["b"], {})
    assert (await workbench.call("get_task", task_id=task))["priority"] == 900


async def test_what_ended_without_a_result_may_go_and_its_name_is_free_again(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("cancel_task", task_id=3)
    with pytest.raises(Conflict, match="line 4: 'last' is cancelled; retry it before title can change"):
        await workbench.call("create_plan", text=TEXT.replace("title: Last", "title: Least"), update=True)
    assert (await workbench.call("create_plan", text=EXTRA, update=True))["tasks"] == {"extra": 4}
    assert (await workbench.call("list_plans"))["plans"] == [{"plan": "p", "tasks": 1, "completed": 0, "open": 1}]
    assert (await workbench.call("create_plan", text=TEXT, update=True))["tasks"] == {
        "first": 5,
        "middle": 6,
        "last": 7,
    }


async def test_removing_a_task_means_for_others_what_cancelling_it_does(workbench: Workbench) -> None:
    await workbench.call("create_plan", text=TEXT)
    await workbench.call("create_subtask", parent_task_id=2, title="Part")
    await workbench.call("create_task", title="Other", persona_id="tester", dependencies=[2], on_failure="cancel")
    text = TEXT.replace("[first, middle, first]", "[first]").replace("name: middle", "name: centre")
    made = await workbench.call("create_plan", text=text, update=True)
    assert made["tasks"] == {"first": 1, "last": 3, "centre": 6}
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


CHECKLIST = """
# P
- [ ] First {persona=implementer}
- [ ] Middle {persona=tester}
  - [ ] Part {after=first}
- [ ] Last {persona=reviewer after=first,middle}
"""


async def test_a_ticked_item_is_no_task_and_nobody_waits_for_it(workbench: Workbench) -> None:
    made = await workbench.call("create_plan", text=CHECKLIST.replace("[ ] First", "[x] First"))
    assert made["tasks"] == {"middle": 1, "part": 2, "last": 3}
    part, last = [await workbench.call("get_task", task_id=n) for n in (2, 3)]
    assert (part["dependencies"], part["parent_task_id"], last["dependencies"]) == ([], 1, [1])


async def test_an_item_is_ticked_when_its_task_is_completed_or_no_longer_needed(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    await workbench.call("create_plan", text=CHECKLIST)
    ticked = CHECKLIST.replace("[ ] First", "[x] First")
    trial = await workbench.call("create_plan", text=ticked, dry_run=True)
    assert (
        trial["diff"]["text"]
        == '- first: First\n~ part: after ["first"] → []\n~ last: after ["first", "middle"] → ["middle"]'
    )
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
    with pytest.raises(Conflict, match="line 3: 'first' is claimed; cancel it before it is removed"):
        await workbench.call("create_plan", text=ticked, update=True)
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": 1})
    made = await workbench.call("create_plan", text=ticked)
    assert (made["changed"], made["tasks"]) == (False, {"first": 1, "middle": 2, "part": 3, "last": 4})
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


EVERYTHING = """
plan: all
tasks:
  - {name: a, title: A, persona: implementer, session: night, max_retries: 3, priority: 500}
  - {name: b, title: "B {b}", persona: Reviewer, parent: a, after: [a], on_failure: cancel, no_retry: [x.Y, "a, b"]}
  - name: c
    title: C
    persona: tester
    parent: b
    worktree: lab
    run: [python, "x y.py"]
    max_retries: 0
    lease_seconds: 0.5
    context_ref: doc
    metadata: {due: "2027-01-01", deep: [{x: 1.5e300}]}
    description: |
      Some lines.

        - [ ] not a task
"""


@pytest.mark.parametrize("form", ["yaml", "markdown"])
async def test_a_plan_is_exported_as_text_that_makes_an_equal_one(workbench: Workbench, form: str) -> None:
    (night,) = (await workbench.call("list_sessions"))["sessions"]
    await workbench.call("create_plan", text=EVERYTHING)
    exported = await workbench.call("export_plan", plan="all", format=form)
    assert (exported["plan"], exported["format"]) == ("all", form)
    assert f"session{'=' if form == 'markdown' else ': '}{night['id']}" in exported["text"]
    assert not (await workbench.call("create_plan", text=exported["text"]))["changed"]
    copy = await workbench.call("create_plan", text=exported["text"], name="copy")
    again = await workbench.call("export_plan", plan="copy", format=form)
    assert again["text"] == exported["text"].replace('"all"', '"copy"').replace("# all", "# copy").replace(
        "plan: all", "plan: copy"
    )
    ids = dict(zip((1, 2, 3), copy["tasks"].values(), strict=True))
    for old, new in ids.items():
        one, other = [await workbench.call("get_task", task_id=n) for n in (old, new)]
        assert other == one | {
            **{"id": new, "plan": "copy", "created_at": other["created_at"]},
            "description": other["description"],
            "parent_task_id": ids.get(one["parent_task_id"]),
            "dependencies": [ids[n] for n in one["dependencies"]],
            "blocked_by": [ids[n] for n in one["blocked_by"]],
        }
        assert other["description"].strip() == one["description"].strip()


@settings_of_hypothesis(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=documents(), other=documents(), form=st.sampled_from(["yaml", "markdown"]))
async def test_an_update_makes_any_plan_any_other_and_the_export_says_so(
    workbench: Workbench, one: dict[str, Any], other: dict[str, Any], form: Format
) -> None:
    old, new = (write(rules.parse(yaml.safe_dump(_here(said))), form) for said in (one, other))
    name = (await workbench.call("create_plan", text=old, number_if_taken=True))["plan"]
    made = await workbench.call("create_plan", text=new, name=name, update=True)
    assert made["tasks"].keys() == {task["name"] for task in other["tasks"]}
    text = (await workbench.call("export_plan", plan=name, format=form))["text"]
    for said in (new, text):
        assert (await workbench.call("create_plan", text=said, name=name, dry_run=True))["diff"] == UNCHANGED
    assert not (await workbench.call("create_plan", text=text, name=name))["changed"]
    ready = [task["name"] for task in await listed(workbench, plan=name) if not task["blocked"]]
    assert set(ready) == {task["name"] for task in other["tasks"] if not task.get("after")}


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
async def test_an_update_that_links_a_task_to_a_dead_one_it_is_to_be_cancelled_with_is_refused_as_a_whole(
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


async def test_a_link_that_was_there_before_it_could_be_refused_keeps_nothing_else_from_being_changed(
    workbench: Workbench,
) -> None:
    """A project may hold one that waits for the dead for ever."""
    blocking = DOOMED.replace("AFTER", "after: [first]").replace("MORE", "")
    await workbench.call("create_plan", text=blocking)
    await workbench.call("cancel_task", task_id=1)
    await workbench.store.write(lambda tx: tx.run(SET_CANCEL))
    doomed = blocking.replace("after: [first]", "after: [first], on_failure: cancel")
    made = await workbench.call("create_plan", text=doomed.replace("Second", "Other"), update=True)
    assert [change["field"] for change in made["diff"]["changed"]["second"]] == ["title"]


async def test_a_plan_of_another_session_is_out_of_sight(workbench: Workbench, admit: Admit) -> None:
    await workbench.call("create_plan", text=TEXT.replace("title: First", "title: First, session: night"))
    await workbench.call("create_plan", text=CHECKLIST, name="common")
    paula = (await admit("paula", role="planner")).caller
    assert [p["plan"] for p in (await workbench.dispatch(paula, "list_plans", {}))["plans"]] == ["common"]
    with pytest.raises(NotFound, match="PLAN_NOT_FOUND"):
        await workbench.dispatch(paula, "export_plan", {"plan": "p"})
    for how in ({}, {"update": True}, {"dry_run": True}):
        with pytest.raises(Conflict, match=r"PLAN_EXISTS.*give this one another name") as refused:
            await workbench.dispatch(paula, "create_plan", {"text": TEXT, **how})
        assert refused.value.details == {}
    text = CHECKLIST.replace("persona=reviewer", "persona=reviewer session=night")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(paula, "create_plan", {"text": text, "name": "common", "update": True})
    moved = await workbench.call("create_plan", text=text, name="common", update=True)
    assert list(moved["diff"]["changed"]) == ["last"]
    again = await workbench.call("create_plan", text=CHECKLIST.replace("Part", "Parts"), name="common", update=True)
    assert again["diff"]["text"] == "+ parts: Parts\n- part: Part"
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await workbench.call("create_plan", text=text.replace("night", "day"), name="day")


async def test_a_planners_plan_is_its_sessions_and_says_so_to_others_only(workbench: Workbench, admit: Admit) -> None:
    (night,) = (await workbench.call("list_sessions"))["sessions"]
    token = (await admit("paula", role="planner")).token
    await workbench.call("update_agent", agent_id="paula", changes={"session_id": night["id"]})
    paula = await workbench.identify(token)
    await workbench.dispatch(paula, "create_plan", {"text": TEXT})
    (made,) = (await workbench.call("list_events", kinds=["plan.created"]))["events"]
    assert made["session"] == night["id"]
    own = (await workbench.dispatch(paula, "export_plan", {"plan": "p"}))["text"]
    assert ("session" in own, "session" in (await workbench.call("export_plan", plan="p"))["text"]) == (False, True)


async def test_a_task_that_goes_to_another_session_is_reserved_for_nobody_there(
    workbench: Workbench, admit: Admit
) -> None:
    await admit("ada")
    text = "plan: p\ntasks:\n- {name: a, title: A, persona: implementer}"
    task = (await workbench.call("create_plan", text=text))["tasks"]["a"]
    await workbench.call("reassign_task", task_id=task, assigned_agent_id="ada")
    await workbench.call("create_plan", text=text.replace("title: A", "title: B"), update=True)
    assert (await workbench.call("get_task", task_id=task))["reserved_for"] == "ada"
    await workbench.call("create_plan", text=text.replace("title: A", "title: B, session: night"), update=True)
    assert (await workbench.call("get_task", task_id=task))["reserved_for"] is None


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
