"""Runs and what they recorded can be queried with SQL, while they go on."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.services.runs.conftest import Lab
from workbench.analytics.live import Live, refresh

pytestmark = pytest.mark.anyio


async def test_runs_and_their_values_are_followed(lab: Lab) -> None:
    live = Live()

    async def rows(query: str) -> list[Any]:
        return live.answer(await refresh(live, lab.workbench.store), query).fetchall()

    made = "SELECT id, name, state, parameters->>'lr', git_dirty, tags, archived FROM runs ORDER BY id"
    values = "SELECT run_id, run, name, step, value, text, is_last FROM run_metrics ORDER BY name, step"
    assert await rows(made) == await rows(values) == []
    run = (await lab.start(parameters={"lr": 0.1}, tags=["b", "a"]))["id"]
    await lab.record(run, {"loss": [1, 0.5], "note": "warm"})
    [row] = await rows(made)
    assert (*row[:5], sorted(row[5]), row[6]) == (run, "trial", "running", "0.1", False, ["a", "b"], False)
    assert await rows(values) == [
        (run, "trial", "loss", 0, 1.0, None, False),
        (run, "trial", "loss", 1, 0.5, None, True),
        (run, "trial", "note", 0, None, "warm", True),
    ]
    await lab.record(run, {"loss": ["NaN", "-Infinity"]})
    await lab.call("end_run", run_id=run, state="failed")
    assert (await rows(made))[0][2] == "failed"
    last = await rows("SELECT value, text FROM run_metrics WHERE name = 'loss' AND step > 1 ORDER BY step")
    assert math.isnan(last[0][0])
    assert last[1] == (-math.inf, None)
