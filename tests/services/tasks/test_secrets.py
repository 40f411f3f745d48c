"""Reports of agents on their tasks are recorded without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from workbench.app import Workbench
from workbench.rules.secrets.forms import MASK

pytestmark = pytest.mark.anyio
KEY = "sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("report_task_progress", {"progress_note": f"I use {KEY}"}),
        ("complete_task", {"result_data": {"key": [KEY]}, "artifacts": [f"{KEY}.txt"]}),
        ("fail_task", {"error_message": f"{KEY} does not work", "error_class": f"No {KEY}", "retryable": False}),
        ("release_task", {"reason": f"{KEY} does not work"}),
    ],
)
async def test_a_secret_that_an_agent_says_is_in_no_record(
    workbench: Workbench, admit: Admit, name: str, said: dict[str, Any]
) -> None:
    ada, task_id = await admit("ada"), await given.task(workbench)
    await given.done_by(workbench, ada, "claim_task", task_id)
    await given.done_by(workbench, ada, name, task_id, **said)
    task, logs = await given.task_now(workbench, task_id), await workbench.call("get_task_logs", task_id=task_id)
    events = await workbench.call("list_events", limit=1000)
    shown = json.dumps([task, logs, events], ensure_ascii=False)
    assert KEY not in shown
    assert MASK in shown
