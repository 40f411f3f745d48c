"""The recent activity of the project, as the panel's charts show it, and the figures of the server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.model import uuid7
from workbench.rules.models.prices import Prices
from workbench.rules.models.usage import ModelUsage
from workbench.services.insight.activity import SQL
from workbench.services.spending import ledger
from workbench.services.spending.ledger import ModelSpending
from workbench.state.settings import Settings
from workbench.store.base import Tx
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

GROWING = ("events", "tasks", "task_status", "task_attempts", "approvals", "tool_calls", "spending")


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time only the test moves."""
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


async def test_the_charts_of_a_new_project_are_empty(workbench: Workbench) -> None:
    activity = await workbench.call("get_activity")
    assert len(activity["intervals"]) == 60
    assert activity["interval_seconds"] == 60
    lists = ("agents", "attempts", "approvals", "tools")
    assert [activity[name] for name in lists] == [[], [], [], []]
    assert (activity["pending"], activity["cost_usd"], _total(activity, "completed")) == (0, None, 0)


async def test_attempts_are_counted_in_the_interval_in_which_they_ended(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = (await admit("ada")).caller
    await _work(workbench, ada, clock, "completed")
    clock.forward(600)
    await _work(workbench, ada, clock, "failed")
    intervals = (await workbench.call("get_activity"))["intervals"]
    completed = [place for place, one in enumerate(intervals) if one["completed"]]
    failed = [place for place, one in enumerate(intervals) if one["failed"]]
    assert failed[0] - completed[0] in (10, 11)  # ten minutes and a few seconds
    assert [len(completed), len(failed), failed[0]] == [1, 1, 59]
    clock.forward(7200)
    activity = await workbench.call("get_activity")
    assert (activity["attempts"], activity["approvals"], _total(activity, "completed")) == ([], [], 0)
    assert _total(await workbench.call("get_activity", minutes=180), "completed") == 1


async def test_the_length_of_the_queue_is_known_for_every_interval(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = (await admit("ada")).caller
    for _ in range(3):
        await given.task(workbench)
    clock.forward(120)
    task = (await workbench.dispatch(ada, "claim_task", {}))["task"]
    clock.forward(120)
    await workbench.dispatch(ada, "complete_task", {"task_id": task["id"]})
    clock.forward(120)
    intervals = (await workbench.call("get_activity"))["intervals"]
    queue = [(one["waiting"], one["running"]) for one in intervals]
    assert sorted(set(queue), key=queue.index) == [(0, 0), (3, 0), (2, 1), (2, 0)]
    assert queue[-1] == (2, 0)


async def test_the_utilisation_of_an_agent_is_the_time_it_held_tasks(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = (await admit("ada")).caller
    await admit("bob")
    clock.forward(300)
    await _work(workbench, ada, clock, "completed", seconds=100)
    agents = {agent["agent_id"]: agent for agent in (await workbench.call("get_activity"))["agents"]}
    assert (agents["ada"]["busy_seconds"], agents["ada"]["share"], agents["ada"]["attempts"]) == (100, 0.25, 1)
    [attempt] = (await workbench.call("get_activity"))["attempts"]
    assert (attempt["agent_id"], attempt["outcome"], attempt["task"]) == ("ada", "completed", "T")


async def test_an_approval_waits_until_it_is_decided(workbench: Workbench, clock: Clock) -> None:
    first = (await workbench.call("register", name="ada", persona_id="tester"))["approval_id"]
    await workbench.call("register", name="bob", persona_id="tester")
    clock.forward(90)
    await workbench.call("approve", approval_id=first)
    clock.forward(30)
    activity = await workbench.call("get_activity")
    waited = [(approval["status"], approval["waited_seconds"]) for approval in activity["approvals"]]
    assert waited == [("pending", 120), ("approved", 90)]
    assert activity["pending"] == 1


async def test_calls_of_tools_and_tokens_of_answers_are_summed(workbench: Workbench, clock: Clock) -> None:
    for spent, state in ((10, "completed"), (30, "completed"), (20, "failed")):
        await workbench.store.write(lambda tx, s=spent, to=state: _insert(tx, CALL, spent=s, state=to), actor="test")
    usage = ModelUsage(input=100, cached=600, output=30)
    for cost in (0.25, None):
        spent = ModelSpending(workbench.store.now(), "gateway", "test", "one", usage, cost_usd=cost)
        await workbench.store.write(lambda tx, spent=spent: ledger.add(tx, spent, Prices()), actor="test")
    activity = await workbench.call("get_activity")
    assert activity["tools"] == [{"tool": "say", "calls": 3, "failed": 1, "median_ms": 20.0, "p95_ms": 20.0}]
    assert (_total(activity, "input_tokens"), _total(activity, "output_tokens")) == (1_400, 60)
    assert (activity["cost_usd"], activity["unpriced"]) == (0.25, 1)


@pytest.mark.sqlite("SQLite says how it finds the rows")
async def test_no_query_of_the_charts_scans_a_growing_table(workbench: Workbench, settings: Settings) -> None:
    await given.task(workbench, "T")
    with closing(sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True)) as db:
        for query in SQL:
            plan = db.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", dict.fromkeys(query.parameters))
            scans = [row[3] for row in plan if row[3].startswith("SCAN ") and "approvals_pending" not in row[3]]
            assert [step for step in scans if step.split()[1] in GROWING] == [], query.name


async def test_the_figures_of_a_quiet_project_are_zero(workbench: Workbench) -> None:
    performance = await workbench.call("get_performance")
    assert (
        performance["queue_length"],
        performance["connections"],
        performance["pending_agents"],
        performance["tasks"],
    ) == (0, 0, 0, 0)
    place = str(workbench.settings.database_url or ".aiswarm/coordination.db")
    assert (performance["cache_hits"], performance["store"]) == (None, place)
    assert performance["database_bytes"] > 0


async def test_get_performance_counts_writes_connections_and_events(workbench: Workbench, admit: Admit) -> None:
    ada = (await admit("ada")).caller
    before = await workbench.call("get_performance")
    await asyncio.gather(*(given.task(workbench) for _ in range(50)))
    await workbench.call("register", name="waits")
    async with workbench.connected(ada, "websocket", "a"):
        performance = await workbench.call("get_performance")
    assert performance["writes_per_second"] >= before["writes_per_second"] + 5
    assert performance["writes_per_commit"] > 1, "changes that meet share a commit"
    assert 0 < performance["commit_ms"]["p50"] <= performance["commit_ms"]["p95"] <= performance["commit_ms"]["max"]
    assert (performance["connections"], performance["pending_agents"], performance["tasks"]) == (1, 1, 50)
    assert performance["events"] > before["events"]


async def test_readers_of_the_feed_are_served_from_memory_unless_they_come_late(workbench: Workbench) -> None:
    await given.task(workbench)
    async with workbench.feed.subscribe("task.*", after=0) as late:
        assert (await anext(late)).kind == "task.created"
        assert (await workbench.call("get_performance"))["cache_hits"] < 1
        before = (await workbench.call("get_performance"))["cache_hits"]
        await given.task(workbench)
        await anext(late)
        performance = await workbench.call("get_performance")
    assert (performance["feed_readers"], performance["cache_hits"] > before) == (1, True)


async def _work(workbench: Workbench, caller: Any, clock: Clock, outcome: str, seconds: float = 10) -> None:
    """One task, claimed and ended."""
    await given.task(workbench, "T", max_retries=0)
    task = (await workbench.dispatch(caller, "claim_task", {}))["task"]
    clock.forward(seconds)
    why = {"error_message": "no", "retryable": False}
    end, more = ("complete_task", {}) if outcome == "completed" else ("fail_task", why)
    await workbench.dispatch(caller, end, {"task_id": task["id"], **more})


CALL = Query(
    "call",
    "INSERT INTO tool_calls (id, tool_name, source, kind, caller, arguments, state, requested_at, started_at, "
    "ended_at) VALUES (:id, 'say', 'local', 'function', 'test', '{}', :state, :at, :at, :end)",
)


def _insert(tx: Tx, query: Query, **values: Any) -> None:
    """Insert a row that is made now, and ends after some milliseconds if it says how many."""
    if "spent" in values:
        values["end"] = tx.now + values.pop("spent") * 1_000
    tx.run(query, id=str(uuid7(tx.now)), at=tx.now, **values)


def _total(found: dict[str, Any], name: str) -> int:
    return sum(one[name] for one in found["intervals"])
