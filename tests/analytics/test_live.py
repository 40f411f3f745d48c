"""DuckDB over the live store: its views, and following events instead of loading everything again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pandas
import pytest
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests import given
from tests.analytics.conftest import content, rows
from tests.conftest import Admit, Clock, with_store
from tests.postgres import PostgresServer
from tests.services.tools.conftest import question
from workbench.analytics import reports
from workbench.analytics.changes import START, SUBJECT, read_update
from workbench.analytics.live import Live, ask, refresh
from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, NUMBERED
from workbench.analytics.questions import SqlQuestion
from workbench.analytics.reports.choice import ReportChoice
from workbench.analytics.results import as_frame
from workbench.analytics.views import VIEWS
from workbench.app import Workbench
from workbench.errors import BadInput, Refused, WorkbenchError
from workbench.model import SECOND
from workbench.ops import OPERATOR
from workbench.services import SERVICES
from workbench.services.access import personas
from workbench.services.tasks import expiry
from workbench.services.tools.calls import Finished, call
from workbench.services.tools.tool import ToolScope
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.store.opening import open_store
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio


# What the views say


async def test_waits_and_durations_match_the_history(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada = await admit("ada")
    began = clock.now
    first = await given.task(workbench, "first", target_worktree=None, priority=7)
    second = await given.task(workbench, "second", dependencies=[first])
    never = await given.task(workbench, "never", dependencies=[second])

    async def do(seconds: float, name: str, task: int, **more: Any) -> None:
        """Call an operation as ada after some time."""
        clock.forward(seconds)
        await workbench.store.write(lambda tx: expiry.expire(tx, workbench.settings, lambda: 0.0))
        await given.done_by(workbench, ada, name, task, **more)

    await do(5, "claim_task", first)
    await do(1, "start_task", first)
    await do(10, "complete_task", first, result_data={"n": 1}, artifacts=["a", "b"])
    await do(4, "claim_task", second)
    await do(3, "fail_task", second, error_message="no")
    await do(7, "claim_task", second)
    await do(10, "complete_task", second)
    live = Live()

    query = "SELECT title, status, agent, attempts, wait_seconds, duration_seconds FROM tasks ORDER BY title"
    assert await rows(live, workbench, query) == [
        ("first", "completed", "ada", 1, 5.0, 11.0),
        ("never", "pending", None, 0, None, None),
        ("second", "completed", "ada", 2, 4.0, 13.0),
    ]
    times = "SELECT epoch_us(created_at), epoch_us(ready_at), epoch_us(claimed_at), epoch_us(completed_at) FROM tasks"
    ready, claimed, done = [began + n * SECOND for n in (16, 20, 40)]
    assert await rows(live, workbench, f"{times} WHERE id = {second}") == [(began, ready, claimed, done)]
    found = "SELECT result->>'n', len(artifacts->'$[*]'), priority FROM tasks WHERE id = 1"
    assert await rows(live, workbench, found) == [("1", 2, 7)]

    attempts = "SELECT task_id, attempt, outcome, error, seconds, started_at IS NULL FROM attempts ORDER BY 1, 2"
    assert await rows(live, workbench, attempts) == [
        (first, 1, "completed", None, 11.0, False),
        (second, 1, "failed", "no", 3.0, True),
        (second, 2, "completed", None, 10.0, False),
    ]
    waits = await rows(live, workbench, "SELECT task_id, depends_on FROM dependencies ORDER BY ALL")
    assert waits == [(second, first), (never, second)]


async def test_subtasks_created_after_the_claim_do_not_count_as_a_wait(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    began = clock.now
    first = await given.task(workbench, "first")
    whole = await given.task(workbench, "whole", dependencies=[first])
    do = partial(given.done_by, workbench, ada)
    clock.forward(2)
    await do("claim_task", first)
    await do("complete_task", first)
    clock.forward(3)
    await do("claim_task", whole)
    part = {"parent_task_id": whole, "title": "part", "blocks_parent": True}
    subtask = await workbench.dispatch(ada.caller, "create_subtask", part)
    await do("release_task", whole)
    clock.forward(7)
    await do("claim_task", subtask["id"])
    await do("complete_task", subtask["id"])
    await do("claim_task", whole)
    found = await rows(Live(), workbench, f"SELECT wait_seconds, epoch_us(ready_at) FROM tasks WHERE id = {whole}")
    assert found == [(3.0, began + 2 * SECOND)]


WAITS = "SELECT attempt, waits_for, seconds, ended_at IS NULL FROM waits ORDER BY began_at"
"""The attempt that each wait was before, what it waited for, how long, and whether it goes on."""


async def test_a_wait_that_a_cancellation_ended_counts_also_after_the_task_was_revived(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = await admit("ada")
    await given.task(workbench, priority=1)
    clock.forward(20)
    await workbench.call("cancel_task", task_id=1)
    clock.forward(100)  # nobody waits for it
    await workbench.call("retry_task", task_id=1)
    clock.forward(5)
    await given.done_by(workbench, ada, "claim_task", 1)
    assert await rows(Live(), workbench, WAITS) == [(1, "agent", 20.0, False), (1, "agent", 5.0, False)]


async def test_each_of_several_cancellations_ends_a_wait(workbench: Workbench, clock: Clock) -> None:
    await given.task(workbench)
    await given.task(workbench, dependencies=[1])
    for seconds in (10, 30):
        clock.forward(seconds)
        await workbench.call("cancel_task", task_id=2)
        clock.forward(100)
        await workbench.call("retry_task", task_id=2)
    clock.forward(3)
    await given.task(workbench, "The time of the last event", "reviewer")
    found = await rows(Live(), workbench, WAITS)
    assert [one for one in found if one[1] == "dependency"] == [
        (1, "dependency", 10.0, False),
        (1, "dependency", 30.0, False),
        (1, "dependency", 3.0, True),
    ]


async def test_a_subtask_waits_for_what_its_parent_waits_for(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada = await admit("ada")
    first = await given.task(workbench, "first", max_retries=0)
    whole = await given.task(workbench, "whole", dependencies=[first])
    part = await given.task(workbench, "part", parent_task_id=whole)
    deep = await given.task(workbench, "deep", parent_task_id=part)
    goes_on = await given.task(workbench, "goes on", dependencies=[part], on_failure="ignore")
    live, blocked = Live(), "SELECT task_id, needs FROM blocked ORDER BY 1"
    clock.forward(5)
    await given.end(workbench, ada, first, "failed")
    assert await rows(live, workbench, blocked) == [(task, first) for task in (whole, part, deep, goes_on)]
    await workbench.call("retry_task", task_id=first)
    clock.forward(5)
    await given.end(workbench, ada, first)
    assert await rows(live, workbench, blocked) == []
    clock.forward(2)
    await given.done_by(workbench, ada, "claim_task", deep)
    waits = "SELECT waits_for, seconds FROM waits WHERE task_id = $id ORDER BY began_at"
    assert await rows(live, workbench, waits, values={"id": deep}) == [("dependency", 10.0), ("agent", 2.0)]
    ready = "SELECT wait_seconds FROM tasks WHERE id = $id"
    assert await rows(live, workbench, ready, values={"id": deep}) == [(2.0,)]


async def test_a_proposed_task_waits_for_the_person_until_it_is_approved(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    pam, ada, live = await admit("pam", role="planner"), await admit("ada"), Live()
    tasks = "".join(f"  - {{name: t{n}, title: T, persona: implementer}}\n" for n in range(21))
    made = await workbench.dispatch(pam.caller, "create_plan", {"text": f"plan: large\ntasks:\n{tasks}"})
    clock.forward(60)
    await given.task(workbench, "The time of the last event", "reviewer")
    waits = "SELECT waits_for, seconds, ended_at IS NULL, approval_id FROM waits WHERE task_id = $id ORDER BY began_at"
    waiting = [("person", 60.0, True, made["approval_id"])]
    assert await rows(live, workbench, waits, values={"id": made["tasks"]["t0"]}) == waiting
    await workbench.call("approve", approval_id=made["approval_id"], choices={"without": ["t20"]})
    clock.forward(5)
    await given.done_by(workbench, ada, "claim_task", made["tasks"]["t0"])
    assert await rows(live, workbench, waits, values={"id": made["tasks"]["t0"]}) == [
        ("person", 60.0, False, made["approval_id"]),
        ("agent", 5.0, False, None),
    ]
    assert await rows(live, workbench, waits, values={"id": made["tasks"]["t1"]}) == [
        ("person", 60.0, False, made["approval_id"]),
        ("agent", 5.0, True, None),
    ]
    assert await rows(live, workbench, waits, values={"id": made["tasks"]["t20"]}) == [
        ("person", 60.0, False, made["approval_id"])
    ]


async def test_agents_approvals_and_events_can_be_queried(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    registration = await workbench.call("register", name="ada", persona_id="tester")
    clock.forward(90)
    await workbench.call("approve", approval_id=registration["approval_id"])
    await workbench.call("register", name="bob")
    live = Live()
    agents = "SELECT agent[:8], name, status, persona, role, tool FROM agents ORDER BY name"
    assert await rows(live, workbench, agents) == [
        ("ada", "ada", "assigned", "tester", "worker", "write"),
        ("pending_", "bob", "pending", None, "worker", "write"),
    ]
    approvals = await rows(live, workbench, "SELECT kind, status, decided_by, wait_seconds FROM approvals ORDER BY id")
    assert approvals == [("registration", "approved", "operator", 90.0), ("registration", "pending", None, None)]
    events = "SELECT kind, actor, data->>'name' FROM events WHERE kind LIKE 'agent.%' ORDER BY id"
    assert await rows(live, workbench, events) == [
        ("agent.registered", "operator", "ada"),
        ("agent.assigned", "operator", None),
        ("agent.registered", "operator", "bob"),
    ]


async def test_calls_of_tools_are_followed_to_their_end(workbench: Workbench, clock: Clock) -> None:
    live = Live()
    query = (
        "SELECT tool_name, state, error_code, wait_seconds, seconds, arguments->>'title' FROM tool_calls ORDER BY id"
    )
    assert await rows(live, workbench, query) == []
    asking = asyncio.create_task(model_calls(workbench, "create_task", title="One", persona_id="tester"))
    approval = await question(workbench)
    assert await rows(live, workbench, query) == [("create_task", "waiting", None, None, None, "One")]
    clock.forward(7)
    await workbench.call("reject", approval_id=approval["id"])
    await asyncio.gather(asking, return_exceptions=True)
    await model_calls(workbench, "list_tasks")
    assert await rows(live, workbench, query) == [
        ("create_task", "failed", "TOOL_DENIED", 7.0, None, "One"),
        ("list_tasks", "completed", None, 0.0, 0.0, None),
    ]


MERGED = Query("merged", "UPDATE worktrees SET integrated_commit = 'abc' WHERE name = 'fix'")


async def test_a_call_is_joined_to_the_task_and_the_worktree_of_its_caller(workbench: Workbench, admit: Admit) -> None:
    live = Live()
    worktrees = "SELECT name, status, branch, target, closed_at IS NULL FROM worktrees ORDER BY name"
    assert await rows(live, workbench, worktrees) == []
    for name in ("a", "fix"):
        await given.worktree(workbench, name)
    assert len(await rows(live, workbench, worktrees)) == 2
    await workbench.call("discard_worktree", worktree_name="a")
    assert await rows(live, workbench, worktrees) == [
        ("a", "discarded", "wb/a/main", "main", False),
        ("fix", "active", "wb/fix/main", "main", True),
    ]
    ada = await admit("ada", worktree="fix")
    task = await given.task(workbench, target_worktree="fix")
    await given.done_by(workbench, ada, "claim_task", task)
    await call(workbench._ctx, ToolScope(await workbench.renewed(ada.caller)), "list_tasks", {})
    query = "SELECT agent, task_id, attempt, worktree, commit_id, origin_node FROM tool_calls"
    assert await rows(live, workbench, query) == [("ada", task, 1, "fix", None, None)]
    await workbench.store.write(lambda tx: (tx.run(MERGED), tx.emit("worktree.integrated", "worktree:fix")))
    assert await rows(live, workbench, query) == [("ada", task, 1, "fix", "abc", None)]


def model_calls(workbench: Workbench, name: str, **arguments: Any) -> Coroutine[Any, Any, Finished]:
    """A call by the model of a conversation."""
    return call(workbench._ctx, ToolScope(OPERATOR, conversation_id="c"), name, arguments)


async def test_any_stored_text_can_be_queried(workbench: Workbench) -> None:
    texts = ["é\U0001f427", "a'b\"c\\d", '{"x": [1]}', "\x01\x7f\n\t", "NULL"]
    live = Live()
    for text in texts:
        await given.task(workbench, text, metadata={"x": text}, run=text)
        await workbench.call("register", name=text.translate({ord(c): "?" for c in "\x01\x7f\n\t"}))
        assert await rows(live, workbench, "SELECT title FROM tasks ORDER BY id DESC LIMIT 1") == [(text,)]
    names = {name for (name,) in await rows(live, workbench, "SELECT name FROM agents")}
    assert names == {*texts, "????"} - {"\x01\x7f\n\t"}


# Asking


UNANSWERED = [
    "SELEC 1",
    "SELECT * FROM nowhere",
    "SELECT CAST(kind AS INTEGER) FROM events",
    "SELECT error('x') FROM events",
    "",
    "-- nothing",
    "DELETE FROM raw_events",
    "DROP VIEW tasks",
    "SELECT 1; DELETE FROM raw_events",
    "EXPLAIN ANALYZE DELETE FROM raw_events",
    "COMMIT; DELETE FROM raw_events",
    "BEGIN; DELETE FROM raw_events; COMMIT",
]


async def test_a_failing_query_gives_the_reason_and_changes_nothing(workbench: Workbench, tmp_path: Path) -> None:
    live = Live()
    before = await rows(live, workbench, "SELECT count(*) FROM raw_events")
    for query in UNANSWERED:
        with pytest.raises(WorkbenchError, match=r"^SQL_FAILED: "):
            await rows(live, workbench, query)
        assert (query, await rows(live, workbench, "SELECT count(*) FROM raw_events")) == (query, before)
        assert await rows(live, workbench, "SELECT * FROM tasks") == []
    for query in SETTING:
        with pytest.raises(WorkbenchError, match="configuration"):
            await rows(live, workbench, query.format(out=tmp_path / "out.json"))
        assert list(tmp_path.glob("*.json")) == []


SETTING = [
    "SET enable_external_access = true",
    "PRAGMA enable_profiling = 'json'",
    "SET profiling_output = '{out}'",
    "SET file_search_path = '/'",
    "SET log_query_path = '{out}'",
]
OUTSIDE = [
    "ATTACH '.aiswarm/coordination.db' (TYPE sqlite)",
    "COPY tasks TO '{out}'",
    "SELECT * FROM '{source}'",
    "SELECT * FROM read_text('{source}')",
    "SELECT * FROM glob('{source}')",
    "EXPORT DATABASE '{out}'",
    "LOAD sqlite",
    "INSTALL httpfs",
    "SELECT 1; COPY tasks TO '{out}'",
]


async def test_a_query_reaches_files_only_if_that_is_allowed_and_never_an_extension(
    workbench: Workbench, tmp_path: Path
) -> None:
    await given.task(workbench, "Count")
    source, out = tmp_path / "given.csv", tmp_path / "out.csv"
    source.write_text("a,b\n1,2\n")
    live = Live()
    for query in OUTSIDE:
        with pytest.raises(Refused, match=r"(?s)FILES_NOT_ALLOWED.*--files"):
            await rows(live, workbench, query.format(source=source, out=out))
        assert (query, out.exists()) == (query, False)
    live = Live(files=True)
    assert await rows(live, workbench, f"SELECT a + b FROM '{source}'") == [(3,)]
    await rows(live, workbench, f"COPY (SELECT title FROM tasks) TO '{out}'")
    assert out.read_text() == "title\nCount\n"
    with pytest.raises(BadInput, match="cannot change the project"):
        await rows(live, workbench, "DELETE FROM raw_events")


async def test_dataframes_are_tables_and_one_that_a_view_would_hide_is_named(workbench: Workbench) -> None:
    await given.task(workbench, title="Count")
    frames = {
        "Weights": pandas.DataFrame({"title": ["Count", "Weigh"], "kilograms": [3, 4]}),
        "tasks": pandas.DataFrame({"title": ["forged"]}),
        "title": "not a table",
    }
    live = Live()
    query = "SELECT title, kilograms FROM {} JOIN weights USING (title)"
    assert await rows(live, workbench, query.format("main.tasks"), frames=frames) == [("Count", 3)]
    for hidden in (query.format("Tasks"), "CREATE TEMP TABLE t AS SELECT * FROM tasks", "PIVOT tasks ON title"):
        with pytest.raises(BadInput, match="asks is a view of the project and your DataFrame tasks"):
            await rows(live, workbench, hidden, frames=frames)
    for clear in ("SELECT 'from tasks' AS tasks", "WITH tasks AS (SELECT 1) FROM tasks"):
        assert await rows(live, workbench, clear, frames=frames)
    assert await rows(live, workbench, "SELECT title FROM tasks") == [("Count",)]
    with pytest.raises(BadInput, match="SQL_FAILED"):
        await rows(live, workbench, query.format("main.tasks"))


async def test_dataframes_that_differ_by_upper_case_are_told_apart_or_named(workbench: Workbench) -> None:
    frames = {name: pandas.DataFrame({"a": [name]}) for name in ("df", "Df", "DF")}
    live = Live()
    for name in frames:
        assert await rows(live, workbench, f'SELECT * FROM "{name}"', frames=frames) == [(name,)]
        assert await rows(live, workbench, f"FROM {name}", frames=frames) == [(name,)]
    for unclear in ("FROM dF", "FROM df, Df"):
        with pytest.raises(BadInput, match="may be any of your DataFrames DF, Df, df: SQL does not tell"):
            await rows(live, workbench, unclear, frames=frames)
    await rows(live, workbench, "CREATE TEMP VIEW v AS FROM Df; SELECT 1", frames=frames)
    assert await rows(live, workbench, "FROM v", frames=frames) == [("Df",)]


async def test_a_past_answer_does_not_change_and_several_threads_may_query(workbench: Workbench) -> None:
    live = Live()
    await given.task(workbench)
    answer = live.answer(await refresh(live, workbench.store), "SELECT count(*) AS n FROM tasks")
    await given.task(workbench)
    news = await refresh(live, workbench.store)
    query = "SELECT count(*) FROM tasks"
    answers = await asyncio.gather(*(asyncio.to_thread(live.answer, news, query) for _ in range(8)))
    assert [found.fetchall() for found in answers] == [[(2,)]] * 8
    assert (answer.columns, answer.fetchall()) == (["n"], [(1,)])
    assert answer.df()["n"].tolist() == [1]


def test_a_process_that_does_not_serve_may_query_too(settings: Settings) -> None:
    found = ask(settings, SqlQuestion("SELECT count(*) AS n, 'x' AS x FROM tasks"))
    assert found is not None
    assert (found.columns, found.fetchall()) == (["n", "x"], [(0, "x")])
    with pytest.raises(BadInput, match="SQL_FAILED"):
        ask(settings, SqlQuestion("SELECT * FROM nowhere"))


@pytest.mark.long
async def test_no_name_of_a_view_or_column_needs_quotes(workbench: Workbench) -> None:
    live = Live()
    names = "SELECT table_name, column_name FROM information_schema.columns ORDER BY ALL"
    views = [found for found in await rows(live, workbench, names) if not found[0].startswith("raw_")]
    assert {view for view, _ in views} == set(VIEWS)
    for view, column in views:
        query = f"SELECT {column}, {view}.{column} AS {column} FROM {view} WHERE {column} IS NOT NULL ORDER BY {column}"
        await rows(live, workbench, query)
        await rows(live, workbench, f"WITH {column} AS (SELECT 1) SELECT * FROM {column}")
    for name in reports.names():
        choice = ReportChoice.of(reports.STANDARD[name], None, ())
        made = live.answer(await refresh(live, workbench.store), choice.query, values=choice.values)
        for column in made.columns:
            await rows(live, workbench, f"SELECT {column} FROM (SELECT 1 AS {column})")


async def test_times_are_in_the_zone_of_the_computer(workbench: Workbench, clock: Clock) -> None:
    await given.task(workbench)
    live = Live()
    query = "SELECT created_at, occurred_at FROM tasks JOIN events ON subject = 'task:1' LIMIT 1"
    frame = as_frame(live.answer(await refresh(live, workbench.store), query))
    for column in ("created_at", "occurred_at"):
        assert frame[column].dt.tz is not None
        assert frame[column][0].timestamp() == clock.now / SECOND


# Following


async def test_late_changes_are_ignored_and_concurrent_first_queries_load_once(
    workbench: Workbench,
) -> None:
    live = Live()
    await given.task(workbench)
    first = await refresh(live, workbench.store)
    await given.task(workbench)
    second = await refresh(live, workbench.store)
    live.answer(first, "SELECT 1")
    assert content(live, second) == content(Live(), second)
    late = await refresh(live, workbench.store)
    await given.task(workbench)
    whole = content(live, await refresh(live, workbench.store))
    assert content(live, late) == whole


def test_changed_and_new_rows_are_found_without_a_full_scan(empty_store: Path) -> None:
    with closing(sqlite3.connect(empty_store)) as db:
        for mirror in MIRRORS:
            plan = db.execute(f"EXPLAIN QUERY PLAN {mirror.changed_rows.sqlite}", {"keys": '["1"]'}).fetchall()
            found = [step for *_, step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
            assert (mirror.table, found) == (mirror.table, [])
        for mirror in NUMBERED:
            values = {"after": 5, "keys": json.dumps(["1"])}
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {mirror.rows.sqlite}", values)]
            assert f"SCAN {mirror.table.removeprefix('raw_')}" not in plan


async def test_only_changed_rows_are_read_again(workbench: Workbench, admit: Admit) -> None:
    live = Live()
    ada = await admit("ada")
    for _ in range(3):
        await given.task(workbench)
    await workbench.dispatch(ada.caller, "whoami", {})
    content(live, await refresh(live, workbench.store))
    await given.done_by(workbench, ada, "claim_task", 2)
    news = await refresh(live, workbench.store)
    assert [event[SUBJECT] for event in news.events] == ["task:2"]
    assert {table: len(found) for table, found in news.rows.items() if found} == {"raw_tasks": 1, "raw_attempts": 1}
    content(live, news)
    assert list((await refresh(live, workbench.store)).events) == []


CALLS: list[Callable[[int], tuple[str, dict[str, Any]]]] = [
    lambda n: ("create_task", {"title": "t", "persona_id": "implementer", "dependencies": [n] if n else []}),
    lambda n: ("create_task", {"title": "t", "persona_id": "implementer", "parent_task_id": n or None}),
    lambda n: ("create_plan", {"text": PLAN, "number_if_taken": True}),
    lambda n: ("cancel_task", {"task_id": n}),
    lambda n: ("register", {"name": f"a{n}", "persona_id": "implementer"}),
    lambda n: ("approve", {"approval_id": n}),
    lambda n: ("reject", {"approval_id": n, "reason": "no"}),
    lambda n: ("revoke_agent", {"agent_id": f"a{n}"}),
    lambda n: ("claim_task", {}),
    lambda n: ("claim_task", {"task_id": n}),
    lambda n: ("start_task", {"task_id": n}),
    lambda n: ("report_task_progress", {"task_id": n, "percent_complete": 50}),
    lambda n: ("complete_task", {"task_id": n, "result_data": {"n": n}, "artifacts": ["x"]}),
    lambda n: ("fail_task", {"task_id": n, "error_message": "no"}),
    lambda n: ("release_task", {"task_id": n}),
    lambda n: ("heartbeat_and_get_tasks", {}),
    lambda n: ("call_tool", {"name": "get_task", "arguments": {"task_id": n}}),
]
PLAN = "tasks:\n- {name: b, title: B, persona: implementer, after: [a]}\n- {name: a, title: A, persona: implementer}\n"
STEPS = st.tuples(st.sampled_from(CALLS), st.integers(0, 6), st.booleans())


@pytest.mark.long
@limits(max_examples=8, deadline=None)
@hypothesis.given(steps=st.lists(STEPS, min_size=20, max_size=60))
def test_following_events_gives_the_same_tables_as_a_full_load(empty_store: Path, steps: list[Any]) -> None:
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        runner.run(follow(with_store(Settings(project=Path(folder), retry_base_seconds=1), empty_store), steps))


@pytest.mark.postgres
@limits(max_examples=8, deadline=None)
@hypothesis.given(steps=st.lists(STEPS, min_size=20, max_size=60))
def test_following_events_on_postgresql_gives_the_same_tables_as_a_full_load(
    postgres_server: PostgresServer, postgres_template: str, steps: list[Any]
) -> None:
    with TemporaryDirectory() as folder, postgres_server.new_database(postgres_template) as name:
        url = DatabaseUrl(postgres_server.url(name))
        asyncio.run(follow(Settings(project=Path(folder), retry_base_seconds=1, database_url=url), steps))


async def follow(project: Settings, steps: list[Any]) -> None:
    """Do the steps, asking after some, and compare at the end."""
    clock = Clock()
    store = open_store(project.database_url.conninfo if project.database_url else project.database, clock)
    try:
        workbench = Workbench(project, store, SERVICES)
        await personas.sync(store, project)
        registration = await workbench.call("register", name="ada", persona_id="implementer")
        await workbench.call("approve", approval_id=registration["approval_id"])
        agent = await workbench.identify(registration["token"])
        live = Live()
        for call, number, look in steps:
            name, arguments = call(number)
            mine = "task" in name and not name.startswith(("create", "cancel"))
            with suppress(WorkbenchError):
                await workbench.dispatch(agent if mine else OPERATOR, name, arguments)
            clock.forward(40)
            await store.write(lambda tx: expiry.expire(tx, project, lambda: 0.5))
            if look:
                live.answer(await refresh(live, store), "SELECT 1")
        news = await store.read(lambda tx: read_update(tx, START))
        assert content(live, await refresh(live, store)) == content(Live(), news)
        assert len(news.events) == news.position.cursor
        assert len(news.events[0]) == len(EVENT_COLUMNS)
    finally:
        store.close()
