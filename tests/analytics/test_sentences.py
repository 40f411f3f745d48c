"""The sentences of reports on a project with failures: their numbers are those of the events, and none is left out.

Of the plan *whole* both tasks are completed. Of *half* one is completed, one failed for good, one needs that one, one
needs the one that needs it, and one was cancelled. Of four runs one failed, one goes on, one is archived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests import given
from tests.conftest import Admit, Clock, limited
from workbench.analytics.live import Live, refresh
from workbench.analytics.reports import STANDARD, Report, report
from workbench.app import Workbench
from workbench.ops import ANONYMOUS, OPERATOR
from workbench.services import approvals
from workbench.services.spawning.spawn import SPAWN

pytestmark = [pytest.mark.anyio, limited(person="Ann Lee")]

PLANS = (
    """
plan: whole
tasks:
- {name: first, title: First, persona: implementer}
- {name: second, title: Second, persona: implementer, after: [first]}
""",
    """
plan: half
tasks:
- {name: good, title: Good, persona: implementer}
- {name: bad, title: Bad, persona: implementer}
- {name: next, title: Next, persona: implementer, after: [bad]}
- {name: last, title: Last, persona: implementer, after: [next]}
- {name: idle, title: Idle, persona: implementer}
""",
)
FIRST, SECOND, GOOD, BAD, IDLE = range(1, 6)


@pytest.fixture
async def lived(workbench: Workbench, admit: Admit, clock: Clock) -> Workbench:
    """The project above: a second for each claim, ten for each attempt."""
    registration = await workbench.dispatch(ANONYMOUS, "register", {"name": "Eve"})
    ada = await admit("ada")
    clock.forward(4)
    await workbench.call("reject", approval_id=registration["approval_id"])
    admitted_itself = (await workbench.dispatch(ANONYMOUS, "register", {"name": "Bob"}))["approval_id"]
    await approvals.approve(workbench._ctx.of(replace(OPERATOR, name=SPAWN)), admitted_itself)
    for text in PLANS:
        await workbench.call("create_plan", text=text)
    for task, how in ((FIRST, "completed"), (SECOND, "completed"), (GOOD, "completed"), (BAD, "failed")):
        clock.forward(1)
        await given.claim(workbench, ada, task)
        clock.forward(10)
        more = {"error_message": "no", "retryable": False} if how == "failed" else {}
        await given.done_by(workbench, ada, "fail_task" if more else "complete_task", task, **more)
    await workbench.call("cancel_task", task_id=IDLE)
    for run, (seconds, state) in enumerate([(2, "completed"), (60, "failed"), (1, "completed"), (0, None)], 1):
        await workbench.call("start_run", name=f"r{run}")
        clock.forward(seconds)
        if state:
            await workbench.call("end_run", run_id=run, state=state)
    await workbench.call("archive_run", run_id=3)
    return workbench


async def said(workbench: Workbench) -> Callable[[str], Report]:
    """The reports, by name."""
    live = Live()
    return partial(report, ask=partial(live.answer, await refresh(live, workbench.store)))


LEFT = "1 failed, 1 cancelled, 2 open"
SENTENCES = {
    "approvals": "2 questions were decided by a person after 2 s on average and 4 s at most (registration, by Ann "
    "Lee); 1 question was decided without one (spawn); none waits.",
    "comparison": "2 groups (half and whole): a completed task took 16.5 s on median in whole and 33 s in half; "
    f"not counted: half ({LEFT}).",
    "critical_path": "1 task decided that the last of 1 completed tasks of half ended after 33 s; 23 s of it nobody "
    f"worked, and good took longest (33 s); it is not finished: {LEFT}.",
    "failures": "2 failures of 2 causes; the most frequent is unclassified (attempt, 1 time).",
    "gantt": "4 attempts at 4 tasks by 1 agent within 43 s; 3 completed theirs, 1 failed.",
    "lead_times": "From creation to completion 3 tasks took 22 s on median and 33 s at most (good); 45 % of it was "
    f"work; not counted: {LEFT}.",
    "leases": "0 leases were lost in 4 attempts; 0 attempts were not the first at their task.",
    "runs": "1 of 3 runs (and 1 archived) completed after 2 s on median, 1 failed, 1 running; 1 r1 took longest of "
    "them: 2 s.",
    "tasks": f"3 of 7 tasks completed after 10 s of work on median, {LEFT}.",
    "throughput": f"3 tasks were completed within 23 s, most by implementer (3); not counted: {LEFT}.",
    "totals": f"3 of 7 tasks completed, {LEFT}; 4 attempts by 1 of 2 agents; 0 worktrees merged.",
    # ada was there from 0 to 48 and held a task for 40 of them, Bob from 4 to 48.
    "utilisation": "2 agents held tasks 43 % of the time until the last work ended: ada most (83 %), Bob least (0 %).",
    # For an agent 1 + 1 + 23 + 34 + 44 (idle, until cancelled), for a dependency 11 + 44 + 44 (until bad failed).
    "waits": "7 tasks waited 28.9 s on average, most of it for an agent; the longest single wait was 44 s for an "
    "agent; 2 tasks cannot start any more.",
}


async def test_every_sentence_gives_the_figures_and_names_its_omissions(lived: Workbench) -> None:
    reports = await said(lived)
    for name in STANDARD:
        expected = SENTENCES.get(name, STANDARD[name].empty)
        assert name == "projects" or (name, reports(name).sentence) == (name, expected)


async def test_the_numbers_match_the_events(lived: Workbench) -> None:
    events = Counter(event["kind"] for event in (await lived.call("list_events", limit=1000))["events"])
    reports = await said(lived)
    [totals] = reports("totals").frame.to_dict("records")
    counted = {name: totals[name] for name in ("tasks", "completed", "failed", "cancelled", "attempts")}
    kinds = ("created", "completed", "failed", "cancelled", "claimed")
    assert counted == dict(zip(counted, (events[f"task.{kind}"] for kind in kinds), strict=True))
    groups = reports("comparison").frame
    over = groups[["completed", "failed", "cancelled", "open"]].sum()
    assert over.sum() == groups["created"].sum() == events["task.created"]
    frame = reports("approvals").frame
    assert frame["asked"].sum() == events["approval.requested"]
    assert frame.loc[frame["by_person"], "asked"].sum() == events["approval.requested"] - 1


@pytest.mark.long
async def test_reports_of_ended_work_do_not_change_with_time(lived: Workbench, clock: Clock) -> None:
    before = await said(lived)
    known = {name: before(name).frame.to_csv() for name in STANDARD if name != "totals"}
    clock.forward(3_600)
    await lived.call("create_project", name="later")  # an event, as those that opening a kernel makes
    after = await said(lived)
    assert {name: after(name).frame.to_csv() for name in known} == known
