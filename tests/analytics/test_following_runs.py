"""Values of runs are followed by their ids: only new ones are read, and the copy equals a full load."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.analytics.conftest import content, rows
from tests.conftest import with_store
from tests.services.runs.conftest import Lab
from workbench.analytics import changes
from workbench.analytics.changes import Update, read_update
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.state.settings import Settings
from workbench.store.migrate import migrate, scripts
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

METRICS = "raw_run_metrics"
VALUES = "SELECT run_id, name, step, value, text FROM run_metrics ORDER BY ALL"
SAMPLE = Query(
    "add_sample",
    "INSERT INTO process_samples (kind, owner, pid, at, cpu_seconds, memory_bytes, processes) "
    "SELECT 'agent', id, 1, 1, 1, 1, 1 FROM agents",
)

Step = tuple[str, dict[str, Any]]
CALLS: list[Callable[[int], Step]] = [
    lambda n: ("start_run", {"name": "r", "key": f"key {n % 3}"}),
    lambda n: ("record_metrics", {"run_id": n % 3 + 1, "metrics": {"loss": n, "note": [f"text {n}", "NaN"]}}),
    lambda n: ("record_metrics", {"run_id": n % 3 + 1, "metrics": {"loss": [n, -n]}, "step": n % 4}),
    lambda n: ("end_run", {"run_id": n % 3 + 1, "state": ("failed", "cancelled", "completed")[n // 3 % 3]}),
    lambda n: ("archive_run", {"run_id": n % 3 + 1}),
]
CALL = st.builds(lambda call, n: call(n), st.sampled_from(CALLS), st.integers(0, 8))
SAMPLED: Step = ("sample", {})
READ: Step = ("read", {})
"""An update is read, but not applied yet."""
APPLIED: Step = ("apply", {"number": 0})
APPLY = st.builds(lambda n: ("apply", {"number": n}), st.integers(0, 3))
"""One of the updates that were read last is applied, whichever is newer."""
STEPS = st.lists(st.one_of(CALL, CALL, st.just(READ), APPLY, st.just(SAMPLED)), min_size=15, max_size=50)
LATE: Step = ("apply", {"number": 1})
STARTED: Step = ("start_run", {"name": "r", "key": "key 0"})
FAILED: Step = ("end_run", {"run_id": 1, "state": "failed"})
RECORDED: Step = ("record_metrics", {"run_id": 1, "metrics": {"loss": [1, 2, 3]}})
REPLACED: Step = ("record_metrics", {"run_id": 1, "metrics": {"loss": 4}, "step": 1})


@pytest.fixture
def lab(workbench: Workbench) -> Lab:
    return Lab(workbench)


@pytest.mark.parametrize(
    "steps",
    [
        [STARTED, RECORDED, READ, APPLIED, FAILED, STARTED, RECORDED],
        [STARTED, RECORDED, READ, APPLIED, FAILED, STARTED],
        [STARTED, APPLIED, RECORDED, READ, REPLACED, READ, APPLIED, LATE],
        [STARTED, RECORDED, READ, FAILED, STARTED, READ, LATE, RECORDED, APPLIED],
    ],
)
async def test_following_values_finds_those_that_are_left(migrated: Settings, steps: Sequence[Step]) -> None:
    await follow(migrated, steps)


@pytest.mark.long
@limits(max_examples=20, deadline=None)
@given(steps=STEPS)
def test_following_values_gives_the_same_table_as_a_full_load(empty_store: Path, steps: Sequence[Step]) -> None:
    with TemporaryDirectory() as folder, asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "PAGE", 3)
        runner.run(follow(with_store(Settings(project=Path(folder)), empty_store), steps))


async def follow(project: Settings, steps: Sequence[Step]) -> None:
    """Do the steps, and compare at the end."""
    async with Workbench.open(project) as workbench:
        await workbench.call("register", name="ada")
        live, read = Live(), deque[Update](maxlen=4)
        for name, arguments in [("read", {}), *steps]:
            if name == "read":
                read.appendleft(await workbench.store.read(partial(read_update, position=live.replica.position)))
            elif name == "apply":
                live.replica.apply(read[arguments["number"] % len(read)])
            elif name == "sample":
                await workbench.store.write(lambda tx: tx.run(SAMPLE))
            else:
                with suppress(WorkbenchError):
                    await workbench.call(name, **arguments)
        anew = Live()
        everything = content(anew, await refresh(anew, workbench.store))
        assert content(live, await refresh(live, workbench.store)) == everything


async def test_runs_and_their_values_are_followed(lab: Lab) -> None:
    ask = partial(rows, Live(), lab.workbench)
    query = "SELECT id, name, state, parameters->>'lr', git_dirty, tags, archived FROM runs ORDER BY id"
    values = "SELECT run_id, run, name, step, value, text, is_last FROM run_metrics ORDER BY name, step"
    assert await ask(query) == await ask(values) == []
    run = (await lab.start(parameters={"lr": 0.1}, tags=["b", "a"]))["id"]
    await lab.record(run, {"loss": [1, 0.5], "note": "warm"})
    [row] = await ask(query)
    assert (*row[:5], sorted(row[5]), row[6]) == (run, "trial", "running", "0.1", False, ["a", "b"], False)
    assert await ask(values) == [
        (run, "trial", "loss", 0, 1.0, None, False),
        (run, "trial", "loss", 1, 0.5, None, True),
        (run, "trial", "note", 0, None, "warm", True),
    ]
    await lab.record(run, {"loss": ["NaN", "-Infinity"]})
    await lab.call("end_run", run_id=run, state="failed")
    assert (await ask(query))[0][2] == "failed"
    last = await ask("SELECT value, text FROM run_metrics WHERE name = 'loss' AND step > 1 ORDER BY step")
    assert math.isnan(last[0][0])
    assert last[1] == (-math.inf, None)


async def test_a_refresh_reads_only_the_values_that_were_recorded_since(lab: Lab) -> None:
    live = Live()
    run = (await lab.start())["id"]
    await lab.record(run, {"loss": [0.0] * 500})
    content(live, await refresh(live, lab.workbench.store))
    await lab.record(run, {"loss": [1.0, 2.0]})
    await lab.record(run, {"loss": 3.0}, step=7)
    news = await refresh(live, lab.workbench.store)
    assert [row[3] for row in news.rows[METRICS]] == [500, 501, 7]
    values = live.answer(news, VALUES).fetchall()
    assert len(values) == 502
    assert values[7] == (run, "loss", 7, 3.0, None)
    assert (await refresh(live, lab.workbench.store)).rows[METRICS] == []


def test_values_recorded_before_ids_existed_are_kept(tmp_path: Path) -> None:
    wanted = scripts()
    numbered = [script.name for script in wanted].index("026_numbered_metrics")
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        migrate(db, wanted[:numbered], 0)
        db.execute(
            "INSERT INTO runs (key, name, parameters, state, definitions, environment, created_by, created_at, "
            "started_at) VALUES ('k', 'r', '{}', 'running', '{}', '{}', 'operator', 0, 0)"
        )
        rows = [(1, "loss", 1, 7, 0.5, None), (1, "loss", 0, 8, 0.1, None), (1, "note", 0, 9, None, "warm")]
        db.executemany("INSERT INTO run_metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        migrate(db, wanted, 0)
        found = db.execute("SELECT run_id, name, step, at, value, text, id FROM run_metrics ORDER BY id").fetchall()
        assert [row[:6] for row in found] == sorted(rows, key=lambda row: row[:3])
        assert [row[6] for row in found] == [1, 2, 3]
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("INSERT INTO run_metrics (run_id, name, step, at) VALUES (1, 'loss', 1, 0)")
