"""Forms of secrets × ways in × ways out: what agents give to be read by others is recorded without secrets."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.rules.secrets.test_forms import FORMS, SECRET
from workbench.app import Workbench
from workbench.rules.secrets.forms import MASK

pytestmark = pytest.mark.anyio

EVERY = "\n".join(FORMS)
SOME = "\n".join(FORMS[:10])
"""As many as a reason may have."""
ENDS = {
    "complete_task": {"result_data": {"said": EVERY, EVERY: [EVERY]}},
    "fail_task": {"error_message": EVERY, "retryable": False},
    "release_task": {"reason": SOME},
}


async def test_no_form_of_a_secret_comes_out_by_any_way_of_what_agents_put_in(
    workbench: Workbench, admit: Admit
) -> None:
    call = workbench.call
    await given.project(workbench)
    session = await given.session(workbench, "s")
    ada, paula = await admit("ada", session_id=session["id"]), await admit("paula", "planner", session_id=session["id"])

    async def say(by: Any, op: str, **arguments: Any) -> dict[str, Any]:
        return await workbench.dispatch((await workbench.renewed(by.caller)), op, arguments)

    tasks = [await given.task(workbench) for _ in ENDS]
    tasks += [int((await given.whole_task(workbench, by=paula))["id"]) for _ in range(3)]
    for task_id, (end, said) in zip(tasks, ENDS.items(), strict=False):
        await say(ada, "claim_task", task_id=task_id)
        await say(ada, "report_task_progress", task_id=task_id, progress_note=EVERY)
        await say(ada, end, task_id=task_id, **said)
    await say(paula, "reassign_task", task_id=tasks[-2], assigned_agent_id="ada", reason=SOME)
    await say(paula, "cancel_task", task_id=tasks[-3], reason=SOME)
    await say(paula, "retry_task", task_id=tasks[-3], reason=SOME)
    await say(paula, "cancel_task", task_id=tasks[-1], reason=SOME)
    made = await say(ada, "write", content={"title": SOME[:450], "content": EVERY, "metadata": {"said": [EVERY]}})
    await say(ada, "update_context", context_id=made["context_id"], content=EVERY, metadata={EVERY: EVERY})
    await say(paula, "create_worktree", name="lab")
    await say(paula, "discard_worktree", worktree_name="lab", reason=SOME)
    await workbench.dispatch(ada.caller, "register", {"name": "eva", "capabilities": {"said": EVERY}})

    out = {
        "tasks": [await given.task_now(workbench, task_id) for task_id in tasks],
        "events": await call("list_events", limit=1_000),
        "context": await call("get_context", context_id=made["context_id"]),
        "read": await say(ada, "read"),
        "approvals": await call("list_approvals"),
        "export": [await call("export", resource=resource) for resource in ("contexts", "agents", "events")],
    }
    shown = {way: json.dumps(found, ensure_ascii=False) for way, found in out.items()}
    assert {way for way, text in shown.items() if SECRET in text} == set()
    assert {way for way, text in shown.items() if MASK in text} == set(out)
    with sqlite3.connect(workbench.settings.database) as store:
        assert [line[:200] for line in store.iterdump() if SECRET in line] == []


async def test_what_people_give_stays_as_they_gave_it(workbench: Workbench, admit: Admit) -> None:
    paula = await admit("paula", "planner")
    task = await given.whole_task(workbench, description=EVERY, by=paula, run=f"curl -H 'X-Api-Key: {SECRET}' /x")
    assert (task["description"], SECRET in task["run"]) == (EVERY, True)
    cancelled = await workbench.call("cancel_task", task_id=task["id"], reason=SOME)
    assert cancelled["status"] == "cancelled"
    assert json.dumps(SOME) in json.dumps(await workbench.call("list_events", limit=1_000))
