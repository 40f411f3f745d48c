"""Undo: the former state comes back if nothing has happened since; else it is refused with a code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock
from tests.services.worktrees.lab import ask, commit
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.services.undo import UNDO_SECONDS
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def undo(workbench: Workbench, subject: str, kind: str) -> dict[str, Any]:
    """Undo the newest change of something; the event of that names the one it undoes."""
    before = (await workbench.call("list_newest_events", limit=1))["events"]
    undone = await workbench.call("undo", subject=subject, kind=kind)
    after = (await workbench.call("list_events", after=before[0]["id"]))["events"]
    assert undone["event_id"] in [event["data"].get("undoes") for event in after]
    assert (undone["kind"], undone["subject"].partition(":")[0]) == (kind, subject.partition(":")[0])
    return undone


async def is_refused(workbench: Workbench, subject: str, kind: str, why: str = "") -> None:
    """A change of something is not undone."""
    with pytest.raises(Conflict, match=rf"^UNDO_REFUSED.*{why}"):
        await workbench.call("undo", subject=subject, kind=kind)


async def as_agent(workbench: Workbench, agent: Admitted, op: str, **arguments: Any) -> dict[str, Any]:
    """Run an operation as an agent."""
    return await workbench.dispatch(agent.caller, op, arguments)


async def test_an_undo_restores_the_former_priority_and_reservation(workbench: Workbench, admit: Admit) -> None:
    await admit("ada")
    await admit("bob")
    one = await given.task(workbench, priority=300, assigned_agent_id="ada")
    await workbench.call("set_priority", task_id=one, priority=900)
    await undo(workbench, f"task:{one}", "task.prioritised")
    await workbench.call("reassign_task", task_id=one, assigned_agent_id="bob")
    await undo(workbench, f"task:{one}", "task.reassigned")
    task = await given.task_now(workbench, one)
    assert (task["priority"], task["reserved_for"]) == (300, "ada")


async def test_agents_that_were_moved_are_moved_back_unless_they_have_done_something(
    workbench: Workbench, admit: Admit
) -> None:
    ada, _ = await admit("ada"), await admit("bob")
    await given.task(workbench)
    await as_agent(workbench, ada, "get_available_tasks")
    await given.project(workbench)
    session = (await given.session(workbench, "s"))["id"]
    team = (await given.team(workbench, "t", session))["id"]
    before = [(await workbench.call("get_agent", agent_id=name))["session_id"] for name in ("ada", "bob")]
    place = {"session_id": session, "team_id": team}
    await workbench.call("assign_agents", agent_ids=["ada", "bob"], changes=place)
    await given.claim(workbench, ada)
    await undo(workbench, "agent:bob", "agent.updated")
    await is_refused(workbench, "agent:ada", "agent.updated", ".* ada has done something since")
    moved = [await workbench.call("get_agent", agent_id=name) for name in ("ada", "bob")]
    assert [(one["session_id"], one["team_id"]) for one in moved] == [(session, team), (before[1], None)]
    await is_refused(workbench, "agent:bob", "agent.updated")
    await workbench.call("update_agent", agent_id="bob", changes={"tool": "read"})
    await is_refused(workbench, "agent:bob", "agent.updated", "counts from its next message on")


async def test_undoing_a_cancelled_tree_restores_only_the_tasks_it_cancelled(workbench: Workbench) -> None:
    root = await given.task(workbench)
    done, open_one = [await given.task(workbench, parent_task_id=root) for _ in range(2)]
    waits = await given.task(workbench, dependencies=[open_one], on_failure="cancel")
    await workbench.call("cancel_task", task_id=done)
    before = [await given.task_now(workbench, one) for one in (root, done, open_one, waits)]
    await workbench.call("cancel_task", task_id=root, reason="a slip")
    assert (await given.task_now(workbench, waits))["status"] == "cancelled"
    why = rf"Task {waits} was cancelled with task {root}\. Undo that"
    await is_refused(workbench, f"task:{waits}", "task.cancelled", why)
    undone = await undo(workbench, f"task:{root}", "task.cancelled")
    assert [await given.task_now(workbench, one) for one in (root, done, open_one, waits)] == before
    events = (await workbench.call("list_events", kinds=["task.*"], subject=f"task:{root}"))["events"]
    assert [event["kind"] for event in events] == ["task.created", "task.cancelled", "task.revived"]
    assert events[-1]["data"]["undoes"] == undone["event_id"] == events[-2]["id"]


async def test_a_change_that_an_agent_acted_on_or_lost_a_task_by_is_not_undone(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    await admit("bob")
    one, other = [await given.task(workbench) for _ in range(2)]
    await workbench.call("set_priority", task_id=one, priority=900)
    for task_id in (one, other):
        await given.claim(workbench, ada, task_id)
    for kind in ("task.prioritised", "task.cancelled"):
        await is_refused(workbench, f"task:{one}", kind, rf"task\.claimed has happened to task:{one} since\.")
    await workbench.call("cancel_task", task_id=one)
    await workbench.call("reassign_task", task_id=other, assigned_agent_id="bob")
    for task_id, kind in ((one, "task.cancelled"), (other, "task.reassigned")):
        await is_refused(workbench, f"task:{task_id}", kind, "lost it")
    root = await given.task(workbench)
    below = await given.task(workbench, parent_task_id=root)
    await workbench.call("cancel_task", task_id=root)
    await workbench.call("retry_task", task_id=below)
    await is_refused(workbench, f"task:{root}", "task.cancelled", r"task\.revived")
    assert [(await given.task_now(workbench, task))["status"] for task in (one, root)] == ["cancelled"] * 2


async def test_a_change_by_another_caller_is_not_undone(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("planner", persona_id="planner", role="planner")
    task = await given.task(workbench, by=planner)
    await given.done_by(workbench, planner, "set_priority", task, priority=900)
    await is_refused(workbench, f"task:{task}", "task.prioritised", r"task\.prioritised")
    assert (await given.task_now(workbench, task))["priority"] == 900


async def test_an_undo_is_not_undone(workbench: Workbench) -> None:
    one = await given.task(workbench)
    for kind, name, more in (
        ("task.cancelled", "cancel_task", {}),
        ("task.prioritised", "set_priority", {"priority": 1}),
    ):
        await workbench.call(name, task_id=one, **more)
        await undo(workbench, f"task:{one}", kind)
        await is_refused(workbench, f"task:{one}", kind)
    with pytest.raises(NotFound, match="NOTHING_TO_UNDO"):
        await undo(workbench, "task:99", "task.cancelled")
    with pytest.raises(BadInput, match="CANNOT_BE_UNDONE"):
        await undo(workbench, f"task:{one}", "task.created")


async def test_an_undo_is_refused_after_its_time_limit(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        one = await given.task(workbench)
        for seconds in (UNDO_SECONDS, UNDO_SECONDS + 1):
            await workbench.call("set_priority", task_id=one, priority=1)
            clock.forward(seconds)
            if seconds == UNDO_SECONDS:
                await undo(workbench, f"task:{one}", "task.prioritised")
        with pytest.raises(Conflict, match="UNDO_TOO_LATE"):
            await undo(workbench, f"task:{one}", "task.prioritised")


@pytest.mark.long
async def test_a_rejected_integration_is_asked_again(workbench: Workbench) -> None:
    commit(await given.worktree(workbench))
    asked = await ask(workbench)
    before = await workbench.call("get_approval", approval_id=asked)
    await workbench.call("reject", approval_id=asked, reason="a slip")
    await undo(workbench, f"approval:{asked}", "approval.rejected")
    assert await workbench.call("get_approval", approval_id=asked) == before
    assert (await workbench.call("approve", approval_id=asked))["outcome"]["state"] == "integrated"


@pytest.mark.long
async def test_a_rejection_that_its_requester_knows_of_is_not_undone(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("planner", persona_id="planner")
    place = await as_agent(workbench, planner, "create_worktree", name="lab")
    commit(Path(place["path"]))
    asked = await as_agent(workbench, planner, "integrate_worktree", worktree_name="lab")
    await workbench.call("reject", approval_id=asked["approval_id"])
    await given.task(workbench, by=planner)
    await is_refused(workbench, f"approval:{asked['approval_id']}", "approval.rejected", "planner")
    asked = await workbench.call("register", name="Ada")
    await workbench.call("reject", approval_id=asked["approval_id"])
    await is_refused(workbench, f"approval:{asked['approval_id']}", "approval.rejected", "told")


@pytest.mark.long
async def test_a_rejection_is_not_undone_once_its_worktree_changed_or_was_asked_again(
    workbench: Workbench, repository: Path
) -> None:
    commit(await given.worktree(workbench))
    asked = await ask(workbench)
    await workbench.call("reject", approval_id=asked)
    again = await ask(workbench)
    await is_refused(workbench, f"approval:{asked}", "approval.rejected", "lab was requested again")
    await workbench.call("reject", approval_id=again)
    commit(repository, "mine.txt")
    await workbench.call("update_worktree", worktree_name="lab")
    await is_refused(workbench, f"approval:{again}", "approval.rejected", r"worktree\.updated has happened to lab")
    assert (await workbench.call("list_approvals"))["approvals"] == []


async def test_a_deleted_view_and_an_archived_run_come_back(workbench: Workbench) -> None:
    view = await workbench.call("save_view", area="tasks", name="Mine", state={"text": "x"})
    await workbench.call("delete_saved_view", view_id=view["id"])
    await undo(workbench, f"saved_view:{view['id']}", "saved_view.deleted")
    (found,) = (await workbench.call("list_saved_views"))["views"]
    assert (found["name"], found["state"]) == ("Mine", {"text": "x"})
    run = (await workbench.call("start_run", name="first"))["id"]
    await workbench.call("end_run", run_id=run, state="completed")
    await workbench.call("archive_run", run_id=run)
    await undo(workbench, f"run:{run}", "run.archived")
    assert (await workbench.call("get_run", run_id=run))["archived_at"] is None
