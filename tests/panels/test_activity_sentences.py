"""The sentences of the live charts count all of the window, however little of it the charts draw."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Clock, admitted
from tests.panels.conftest import Ask
from workbench.app import Workbench
from workbench.ops import ANONYMOUS
from workbench.services.agents.register import add_pending
from workbench.services.insight import activity
from workbench.services.spawning.spawn import SPAWN
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio
SENTENCES = {
    "stream": "3 attempts at 3 tasks by 2 agents within the last hour; 2 completed theirs, 1 failed; the chart has the "
    "newest 1.",
    "utilisation": "2 agents (the chart has the 1 busiest) held tasks 33 % of the time (ada).",
    "approvals": "2 questions were decided by a person after 0 ms on average and 0 ms at most; 1 question was decided "
    "without one; 1 question still waits.",
    "tools": "1 call of 1 tool (of 2; these are the newest, of the tools called most), 0 failed; the slowest is "
    "list_tasks (0 ms on median).",
    "tokens": "No model answered within the last hour.",
    "throughput": "2 tasks were completed within the last hour; 1 attempt failed.",
    "queue": "0 tasks are worked on and 0 wait.",
}


async def lived(workbench: Workbench, clock: Clock) -> Any:
    """Three attempts of two agents; of four questions, a person has answered two and a start one."""
    ada, bob = [await admitted(workbench, name) for name in ("ada", "bob")]
    for agent, how in ((ada, "completed"), (bob, "completed"), (ada, "failed")):
        task = await given.task(workbench)
        clock.forward(10)
        await given.claim(workbench, agent, task)
        clock.forward(20)
        more = {"error_message": "no", "retryable": False} if how == "failed" else {}
        await given.done_by(workbench, agent, "fail_task" if more else "complete_task", task, **more)
    await workbench.dispatch(ANONYMOUS, "register", {"name": "Eve"})
    joe: dict[str, Any] = {"capabilities": {}, "persona_id": None, "admitted_by": SPAWN}
    await workbench.store.write(lambda tx: add_pending(tx, workbench._ctx, "Joe", "wba_joe", **joe))
    for _ in range(2):
        await workbench.call("call_tool", name="list_tasks", arguments={})
    return await workbench.call("get_activity")


async def test_a_sentence_counts_what_the_chart_leaves_out(
    settings: Settings, clock: Clock, call: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STREAMED", "LISTED", "CALLS"):
        monkeypatch.setattr(activity, name, 1)
    async with Workbench.open(settings, clock=clock) as workbench:
        found = await lived(workbench, clock)
    assert {name: call("analytics/sentences.js", name, found, "hour") for name in SENTENCES} == SENTENCES
