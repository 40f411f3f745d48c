"""Recorded values of runs: series, numbers that JSON lacks, limits, bundled events, and concurrent recording."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served
from tests.services.runs.conftest import Lab
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.services.runs import recording
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_value_without_a_step_continues_its_series_and_one_with_a_step_replaces(lab: Lab) -> None:
    run = (await lab.start())["id"]
    await lab.record(run, {"loss": 0.5, "note": "warm"})
    await lab.record(run, {"loss": [0.4, 0.3]})
    await lab.record(run, {"loss": 0.1}, step=10)
    await lab.record(run, {"loss": 0.05})
    assert await lab.series(run) == {
        "loss": [[0, 0.5], [1, 0.4], [2, 0.3], [10, 0.1], [11, 0.05]],
        "note": [[0, "warm"]],
    }
    [loss, note] = (await lab.call("get_run", run_id=run))["series"]
    assert loss == {"name": "loss", "count": 5, "step": 11, "last": 0.05, "low": 0.05, "high": 0.5}
    assert note == {"name": "note", "count": 1, "step": 0, "last": "warm", "low": None, "high": None}
    for step, value in ((5, 1.0), (3, 2.0), (5, 3.0), (4, 4.0)):
        await lab.record(run, {"x": value}, step=step)
    assert await lab.series(run, names=["x"]) == {"x": [[3, 2.0], [4, 4.0], [5, 3.0]]}
    assert (await lab.call("get_run", run_id=run))["metrics"] == {"loss": 0.05, "note": "warm", "x": 3.0}
    await lab.record(run, {"y": ["NaN", "Infinity", "-Infinity", 1]})
    assert await lab.series(run, names=["y"]) == {"y": [[0, "NaN"], [1, "Infinity"], [2, "-Infinity"], [3, 1.0]]}


NO_METRICS: list[Any] = [
    {},
    {"": 1},
    {"a<b": 1},
    {"a": None},
    {"a": float("nan")},
    {"a": {"b": 1}},
    {"a": "x" * 1_001},
    {"a": [[1]]},
    {"a\n": 1},
    {"a": 10**400},
    {f"m{n}": n for n in range(1_001)},
    {"a": [0.0] * 10_001},
]


async def test_an_invalid_metric_is_refused(lab: Lab) -> None:
    run = (await lab.start())["id"]
    for metrics in NO_METRICS:
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await lab.record(run, metrics)
        assert (await lab.call("get_run", run_id=run))["series"] == []


async def test_a_run_has_no_more_values_and_artifacts_than_its_limits(settings: Settings) -> None:
    limited = settings.model_copy(update={"max_run_metrics": 3, "max_run_artifacts": 1})
    async with Workbench.open(limited) as workbench:
        lab = Lab(workbench)
        run = (await lab.start())["id"]
        assert await lab.record(run, {"a": [1, 2]}) == {"values": 2, "total": 2}
        with pytest.raises(Conflict, match="TOO_MANY_METRICS"):
            await lab.record(run, {"a": [3, 4]})
        assert await lab.series(run) == {"a": [[0, 1.0], [1, 2.0]]}
        for _ in range(2):
            await lab.call("add_run_artifact", run_id=run, path="README.md")
        with pytest.raises(Conflict, match="TOO_MANY_ARTIFACTS"):
            await lab.call("add_run_artifact", run_id=run, path="README.md", name="another")
        assert (await lab.call("get_run", run_id=run))["artifacts"] == 1


async def test_a_long_series_is_thinned_to_its_shape_with_its_end(lab: Lab) -> None:
    run = (await lab.start())["id"]
    await lab.record(run, {"x": list(range(5_000)), "y": [1, 2]})
    x, y = (await lab.call("get_run_series", run_id=run, max_points=100))["series"]
    assert (x["thinned"], len(x["points"]) <= 101) == (True, True)
    assert (x["points"][0], x["points"][-1]) == ([0, 0.0], [4_999, 4_999.0])
    assert (y["thinned"], y["points"]) == (False, [[0, 1.0], [1, 2.0]])
    assert list(await lab.series(run, names=["y", "nothing"])) == ["y"]


async def test_while_the_servers_run_values_are_announced_together(served: Served) -> None:
    lab = Lab(served.workbench)
    run = (await lab.start())["id"]
    for n in range(50):
        await lab.record(run, {"x": n})
    await recording.announce(served.workbench._ctx)
    announced = await lab.events("run.recorded")
    assert announced[-1]["data"]["values"] == 50
    assert len(announced) < 25
    await lab.call("end_run", run_id=run)
    assert (await lab.events("run.ended"))[0]["data"]["metrics"] == {"x": 49.0}


async def test_two_processes_that_record_at_once_lose_nothing(settings: Settings, lab: Lab) -> None:
    run = (await lab.start())["id"]
    async with Workbench.open(settings) as other:
        await asyncio.gather(
            *(
                each.call("record_metrics", run_id=run, metrics={"shared": n, f"own {number}": n})
                for n in range(50)
                for number, each in enumerate((lab.workbench, other))
            )
        )
    series = await lab.series(run)
    assert [step for step, _ in series["shared"]] == list(range(100))
    assert sorted(value for _, value in series["shared"]) == sorted([float(n) for n in range(50)] * 2)
    assert [len(series[f"own {number}"]) for number in (0, 1)] == [50, 50]


async def test_an_artifact_is_a_file_of_the_project_with_its_digest(
    lab: Lab, settings: Settings, tmp_path: Path
) -> None:
    run = (await lab.start())["id"]
    (settings.project / "out").mkdir()
    (settings.project / "out" / "plot.png").write_bytes(b"abc")
    run_artifact = await lab.call("add_run_artifact", run_id=run, path="out/plot.png")
    assert (run_artifact["name"], run_artifact["path"]) == ("plot.png", "out/plot.png")
    assert (run_artifact["media_type"], run_artifact["bytes"]) == ("image/png", 3)
    (settings.project / "out" / "plot.png").write_bytes(b"abcd")
    again = await lab.call("add_run_artifact", run_id=run, path=str(settings.project / "out" / "plot.png"))
    assert again["sha256"] != run_artifact["sha256"]
    named = await lab.call("add_run_artifact", run_id=run, path="out/plot.png", name="Plot", media_type="image/x-own")
    assert (await lab.call("get_run", run_id=run))["files"] == [named, again]
    outside = tmp_path / "secret.txt"
    outside.write_text("x")
    (settings.project / "link.txt").symlink_to(outside)
    for path, error, code in (
        ("nowhere.txt", NotFound, "ARTIFACT_NOT_FOUND"),
        ("out", NotFound, "ARTIFACT_NOT_FOUND"),
        ("a\0b", BadInput, "INVALID_ARGUMENTS"),
        (str(outside), BadInput, "ARTIFACT_OUTSIDE_PROJECT"),
        ("../secret.txt", BadInput, "ARTIFACT_OUTSIDE_PROJECT"),
        ("link.txt", BadInput, "ARTIFACT_OUTSIDE_PROJECT"),
    ):
        with pytest.raises(error, match=code):
            await lab.call("add_run_artifact", run_id=run, path=path)
