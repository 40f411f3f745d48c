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


async def test_what_is_given_to_be_done_is_named_and_kept_as_it_is_and_masked_where_it_is_shown(
    workbench: Workbench, admit: Admit
) -> None:
    ada, run, words = await admit("ada"), f"curl -H 'X-Api-Key: {SECRET}' /x", ["curl", "--password", "swordfish"]
    given_task = {"title": f"Use sk-{SECRET}", "description": EVERY, "metadata": {"password": "swordfish"}}
    made = await given.whole_task(workbench, run=run, **given_task)
    assert [warning.split(" ")[0] for warning in made["warnings"]] == ["title", "description", "run", "metadata"]
    assert "`spawn --env X_API_KEY=…`" in made["warnings"][2]
    listed = {"title": "t", "persona_id": made["persona_id"], "run": words}
    more = await workbench.call("create_tasks", tasks=[listed])
    assert more["warnings"][0].startswith(f"{more['task_ids'][0]}: run contains a secret")
    out = [
        made,
        *[await given.task_now(workbench, task_id) for task_id in (made["id"], *more["task_ids"])],
        await workbench.call("list_tasks"),
        await workbench.call("get_task_tree"),
        await workbench.call("list_events", limit=1_000),
        await workbench.dispatch(ada.caller, "get_task", {"task_id": made["id"]}),
    ]
    text = json.dumps(out, ensure_ascii=False)
    assert [secret for secret in (SECRET, "swordfish") if secret in text] == []
    claimed = (await workbench.dispatch(ada.caller, "claim_task", {"task_id": made["id"]}))["task"]
    assert {name: claimed[name] for name in ("run", *given_task)} == {"run": run, **given_task}


async def test_a_plan_with_secrets_is_exported_with_masks_that_stand_for_them(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    text = f"plan: p\ntasks:\n- {{name: a, title: A, persona: implementer, run: 'curl --token {SECRET}'}}\n"
    dry = await workbench.call("create_plan", text=text, dry_run=True)
    made = await workbench.call("create_plan", text=text)
    assert made["warnings"][0].startswith("a: run contains a secret")
    exported = (await workbench.call("export_plan", plan="p"))["text"]
    assert (SECRET in exported, MASK in exported) == (False, True)
    assert (await workbench.call("create_plan", text=exported))["changed"] is False
    changed = await workbench.call("create_plan", text=exported.replace("title: A", "title: B"), update=True)
    assert list(changed["diff"]["changed"]) == ["a"]
    again = await workbench.call("create_plan", text=text.replace(SECRET, f"{SECRET}2"), update=True, dry_run=True)
    assert SECRET not in json.dumps([dry, made, changed, again])
    claimed = (await workbench.dispatch(ada.caller, "claim_task", {"task_id": made["tasks"]["a"]}))["task"]
    assert (claimed["title"], claimed["run"]) == ("B", f"curl --token {SECRET}")


async def test_a_persona_with_a_secret_is_saved_with_a_warning(workbench: Workbench) -> None:
    saved = await workbench.call("save_persona", persona_id="caller", text=f"Call it with API_KEY={SECRET}.")
    assert saved["warnings"][0].startswith("definition contains a secret")
    assert "$API_KEY" in saved["warnings"][0]


async def test_what_people_say_stays_as_they_said_it(workbench: Workbench) -> None:
    task = await given.whole_task(workbench)
    assert (await workbench.call("cancel_task", task_id=task["id"], reason=SOME))["status"] == "cancelled"
    assert json.dumps(SOME) in json.dumps(await workbench.call("list_events", limit=1_000))
