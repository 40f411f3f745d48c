"""Secrets in what people give to be done: it stays as they gave it, is named when it is given, and shown masked."""

from __future__ import annotations

import json

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


async def test_secrets_in_a_task_are_warned_of_kept_and_masked_where_shown(workbench: Workbench, admit: Admit) -> None:
    ada, run, words = await admit("ada"), f"curl -H 'X-Api-Key: {SECRET}' /x", ["curl", "--password", "swordfish"]
    given_task = {"title": f"Use sk-{SECRET}", "description": EVERY, "metadata": {"password": "swordfish"}}
    task = await given.whole_task(workbench, run=run, **given_task)
    assert [warning.split(" ")[0] for warning in task["warnings"]] == ["title", "description", "run", "metadata"]
    assert "`spawn --env X_API_KEY=…`" in task["warnings"][2]
    listed = {"title": "t", "persona_id": task["persona_id"], "run": words}
    more = await workbench.call("create_tasks", tasks=[listed])
    assert more["warnings"][0].startswith(f"{more['task_ids'][0]}: run contains a secret")
    out = [
        task,
        *[await given.task_now(workbench, task_id) for task_id in (task["id"], *more["task_ids"])],
        await workbench.call("list_tasks"),
        await workbench.call("get_task_tree"),
        await workbench.call("list_events", limit=1_000),
        await workbench.dispatch(ada.caller, "get_task", {"task_id": task["id"]}),
    ]
    text = json.dumps(out, ensure_ascii=False)
    assert [secret for secret in (SECRET, "swordfish") if secret in text] == []
    claimed = (await workbench.dispatch(ada.caller, "claim_task", {"task_id": task["id"]}))["task"]
    assert {name: claimed[name] for name in ("run", *given_task)} == {"run": run, **given_task}


async def test_a_plan_with_secrets_is_exported_with_masks_that_stand_for_them(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    text = f"plan: p\ntasks:\n- {{name: a, title: A, persona: implementer, run: 'curl --token {SECRET}'}}\n"
    dry = await workbench.call("create_plan", text=text, dry_run=True)
    plan = await workbench.call("create_plan", text=text)
    assert plan["warnings"][0].startswith("a: run contains a secret")
    exported = (await workbench.call("export_plan", plan="p"))["text"]
    assert (SECRET in exported, MASK in exported) == (False, True)
    assert (await workbench.call("create_plan", text=exported))["changed"] is False
    changed = await workbench.call("create_plan", text=exported.replace("title: A", "title: B"), update=True)
    assert list(changed["diff"]["changed"]) == ["a"]
    again = await workbench.call("create_plan", text=text.replace(SECRET, f"{SECRET}2"), update=True, dry_run=True)
    assert SECRET not in json.dumps([dry, plan, changed, again])
    claimed = (await workbench.dispatch(ada.caller, "claim_task", {"task_id": plan["tasks"]["a"]}))["task"]
    assert (claimed["title"], claimed["run"]) == ("B", f"curl --token {SECRET}")


async def test_a_persona_with_a_secret_is_saved_with_a_warning(workbench: Workbench) -> None:
    saved = await workbench.call("save_persona", persona_id="caller", text=f"Call it with API_KEY={SECRET}.")
    assert saved["warnings"][0].startswith("definition contains a secret")
    assert "$API_KEY" in saved["warnings"][0]


async def test_secrets_in_a_reason_given_by_a_person_are_kept(workbench: Workbench) -> None:
    task = await given.whole_task(workbench)
    assert (await workbench.call("cancel_task", task_id=task["id"], reason=SOME))["status"] == "cancelled"
    assert json.dumps(SOME) in json.dumps(await workbench.call("list_events", limit=1_000))
