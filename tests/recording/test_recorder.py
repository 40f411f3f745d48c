"""Recording from a notebook or script: into a block's run, a given one, or one that begins by itself."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import numpy
import pandas
import pytest

from tests.conftest import Child, Served
from workbench.app import Workbench
from workbench.cli.client import ProjectClient
from workbench.errors import BadInput, Conflict, NotFound, WorkbenchError
from workbench.recording import Recorder, connection, values
from workbench.recording.connection import RecorderConnection
from workbench.shells.serve import Servers
from workbench.state.settings import Settings


@pytest.fixture
def client(migrated: Settings) -> Iterator[ProjectClient]:
    """The command line's way to the project."""
    with ProjectClient(migrated.project) as client:
        client.create_project()
        yield client


@pytest.fixture
def recorder(client: ProjectClient) -> Recorder:
    """A recorder of the project, which nobody serves."""
    return Recorder(client.call, lambda: client.settings.project)


def runs_of(client: ProjectClient) -> list[dict[str, Any]]:
    """The runs, oldest first."""
    return list(client.call("list_runs")["runs"])[::-1]


@dataclass
class Optimizer:
    rate: float
    name: str = "adam"


PARAMETERS = [
    ({1: (numpy.float64(2), {3}), "z": None}, {"1": [2.0, [3]], "z": None}),
    (math.nan, "NaN"),
    ([math.inf], ["Infinity"]),
    (Path("c"), "c"),
    (Decimal("0.10"), 0.1),
    (Decimal("98765432109876543.21"), "98765432109876543.21"),
    (date(2026, 1, 2), "2026-01-02"),
    (numpy.datetime64("2026-01-02", "ns"), "2026-01-02T00:00:00"),
    (numpy.arange(3), [0, 1, 2]),
    (Optimizer(numpy.float32(0.5)), {"rate": 0.5, "name": "adam"}),  # type: ignore[arg-type]
    (Namespace(seed=1), {"seed": 1}),
    (numpy.mean, "numpy.mean"),
    (Optimizer, f"{__name__}.Optimizer"),
]


@pytest.mark.parametrize(("given", "recorded"), PARAMETERS)
def test_a_parameter_is_recorded_as_what_it_is(given: Any, recorded: Any) -> None:
    assert values.parameters({"a": given}) == {"a": recorded}


@pytest.mark.parametrize("given", [object(), [object()], b"x", pandas.DataFrame({"a": range(1_000)})])
def test_a_value_that_is_no_parameter_is_refused_and_begins_no_run(recorder: Recorder, given: Any) -> None:
    with (
        pytest.raises(BadInput, match=r"NOT_A_PARAMETER: lr(\[0\])? is [\w.]+: a parameter is"),
        recorder.run("x", lr=given),
    ):
        pass
    assert recorder._open_runs == []


def test_a_block_is_a_run(recorder: Recorder, client: ProjectClient) -> None:
    with recorder.run("first", tags=["a"], lr=0.1, path=Path("x")) as run:
        recorder.record(loss=0.5)
        run.record({"val/loss": [0.4, math.nan]}, step=3)
        with recorder.run("inner"):
            recorder.record(loss=9)
        recorder.record(loss=0.3)
    outer, inner = runs_of(client)
    assert (outer["name"], outer["state"], outer["tags"]) == ("first", "completed", ["a"])
    assert outer["parameters"] == {"lr": 0.1, "path": "x"}
    assert outer["metrics"] == {"loss": 0.3, "val/loss": "NaN"}
    assert (inner["state"], inner["metrics"]) == ("completed", {"loss": 9.0})
    whole = client.call("get_run", run_id=outer["id"])
    assert (outer["parent_id"], inner["parent_id"]) == (None, outer["id"])
    assert whole["inner"] == [{"id": inner["id"], "name": "inner", "state": "completed"}]
    assert {"python", "platform", "packages"} <= whole["environment"].keys()
    assert "pytest" in whole["environment"]["packages"]


def test_a_run_of_another_thread_is_not_within_this_one(recorder: Recorder, client: ProjectClient) -> None:
    def elsewhere() -> None:
        with recorder.run("elsewhere"), recorder.run("inner"):
            pass

    with recorder.run("here"), ThreadPoolExecutor(1) as pool:
        pool.submit(elsewhere).result()
    with recorder.run("after"):
        pass
    _, other, inner, after = runs_of(client)
    assert (other["parent_id"], inner["parent_id"], after["parent_id"]) == (None, other["id"], None)


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (ZeroDivisionError("no"), "failed", "ZeroDivisionError"),
        (ExceptionGroup("g", [ExceptionGroup("h", [ValueError("deep")])]), "failed", "ExceptionGroup"),
        (NotFound("TASK_NOT_FOUND", "no"), "failed", "TASK_NOT_FOUND"),
        (KeyboardInterrupt(), "cancelled", "INTERRUPTED"),
    ],
)
def test_a_block_that_fails_is_a_run_that_failed(
    recorder: Recorder, client: ProjectClient, error: BaseException, state: str, code: str
) -> None:
    with pytest.raises(type(error)), recorder.run("fails"):
        raise error
    [run] = runs_of(client)
    assert (run["state"], run["error_code"]) == (state, code)
    if isinstance(error, ExceptionGroup):
        assert run["error"] == "g (1 sub-exception): ValueError: deep"


def test_the_first_value_that_is_not_refused_begins_a_run_and_it_ends_when_it_is_ended(
    recorder: Recorder, client: ProjectClient, tmp_path: Path
) -> None:
    outside = tmp_path.parent / "outside.txt"
    outside.write_text("text")
    refused: list[tuple[str, Callable[[], object]]] = [
        ("INVALID_ARGUMENTS", lambda: recorder.record(loss=0.5, step="a")),  # type: ignore[arg-type]
        ("NOT_A_METRIC", lambda: recorder.record(loss=object())),
        ("INVALID_ARGUMENTS", lambda: recorder.record({"": 1})),
        ("ARTIFACT_NOT_FOUND", lambda: recorder.artifact("missing.png")),
        ("ARTIFACT_OUTSIDE_PROJECT", lambda: recorder.artifact(outside)),
    ]
    for code, record in refused:
        with pytest.raises(WorkbenchError, match=code):
            record()
    assert runs_of(client) == []
    recorder.end_run()
    recorder.record(loss=1)
    recorder.record(loss=2)
    recorder.end_run()
    recorder.record(loss=3)
    first, second = runs_of(client)
    assert (first["state"], first["metrics"], second["state"]) == ("completed", {"loss": 2.0}, "running")
    recorder.close()
    assert runs_of(client)[1]["state"] == "completed"


def test_a_process_that_was_started_for_a_run_records_into_it(
    recorder: Recorder, client: ProjectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = client.call("start_run", name="of a sweep", key="k")
    monkeypatch.setenv("WORKBENCH_RUN", str(given["id"]))
    recorder.record(loss=1)
    with recorder.run("ignored", lr=1) as run:
        run.record(loss=2)
    recorder.close()
    [found] = runs_of(client)
    assert (found["state"], found["metrics"], found["name"]) == ("running", {"loss": 2.0}, "of a sweep")
    client.call("end_run", run_id=given["id"], state="lost")
    client.call("start_run", name="again", key="k")
    monkeypatch.setenv("WORKBENCH_RUN", f"{given['id']}:1")
    with pytest.raises(Conflict, match="RUN_RESTARTED"):
        recorder.record(loss=3)
    for wrong in ("x", "1:", ":1", "1:2:3", "-1", "²"):
        monkeypatch.setenv("WORKBENCH_RUN", wrong)
        with pytest.raises(BadInput, match="BAD_RUN_VARIABLE"):
            recorder.record(loss=3)


def test_numbers_and_steps_of_other_libraries_are_numbers(recorder: Recorder, client: ProjectClient) -> None:
    assert values.metric("a", numpy.float32(0.5)) == 0.5
    assert values.metric("a", numpy.array([1, 2])) == [1.0, 2.0]
    assert values.metric("a", [numpy.int64(1), math.inf]) == [1.0, "Infinity"]
    assert values.metric("a", True) == 1.0
    assert values.metric("a", "text") == "text"
    assert values.metric("a", "x" * 1_000) == "x" * 1_000
    with pytest.raises(BadInput, match="NOT_A_METRIC: a is a text of 1,001 characters: record a number, a text of"):
        values.metric("a", "x" * 1_001)
    for wrong in (None, object(), {"a": 1}, [[1]], 10**400):
        with pytest.raises(BadInput, match="NOT_A_METRIC"):
            values.metric("a", wrong)
    with recorder.run("steps") as run:
        for step in numpy.arange(3):
            recorder.record(loss=1 / (step + 1), step=step)
    [series] = client.call("get_run_series", run_id=run.id)["series"]
    assert [at for at, _ in series["points"]] == [0, 1, 2]


@dataclass
class Openings:
    """The count of openings of the store, and whether it is closed."""

    count: int = 0
    closed: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Openings:
    """Counts how often a store is opened."""
    made, opened = Openings(), Workbench.open

    @asynccontextmanager
    async def counted(settings: Settings, **options: Any) -> AsyncIterator[Workbench]:
        made.count += 1
        made.closed.clear()
        async with opened(settings, **options) as workbench:
            yield workbench
        made.closed.set()

    monkeypatch.setattr(Workbench, "open", counted)
    return made


def test_the_store_is_opened_once_for_calls_that_follow_each_other(
    tmp_path: Path, openings: Openings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 3_600.0)
    made = RecorderConnection(tmp_path)
    run = made.call("start_run", name="trial")["id"]  # there was no project before
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda n: made.call("record_metrics", run_id=run, metrics={"n": n}), range(20))
        assert sorted(each["total"] for each in found) == list(range(1, 21))
    assert (openings.count, openings.closed.is_set()) == (1, False)
    made.close()
    assert openings.closed.is_set()
    assert made.call("list_runs")["runs"][0]["metrics"]
    made.close()
    assert (openings.count, openings.closed.is_set()) == (2, True)


def test_the_store_is_closed_when_no_call_follows(
    tmp_path: Path, openings: Openings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.0)
    made = RecorderConnection(tmp_path)
    made.call("start_run", name="trial")
    openings.closed.wait()
    assert made.call("list_runs")["runs"][0]["name"] == "trial"
    made.close()
    assert openings.closed.is_set()


@pytest.mark.anyio
async def test_the_store_is_closed_once_there_is_a_server(
    workbench: Workbench, openings: Openings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 3_600.0)
    made = RecorderConnection(workbench.settings.project)
    await asyncio.to_thread(made.call, "start_run", name="before")
    async with Servers(workbench) as servers:
        await servers.start(0)
        assert not openings.closed.is_set()
        assert (await asyncio.to_thread(made.call, "start_run", name="after"))["id"] == 2
        assert (openings.count, openings.closed.is_set()) == (1, True)
        await asyncio.to_thread(made.close)


@pytest.mark.anyio
async def test_a_connection_finds_the_server_and_does_without_it_once_it_has_gone(
    served: Served, openings: Openings
) -> None:
    connection = RecorderConnection(served.workbench.settings.project)
    try:
        made = await asyncio.to_thread(lambda: connection.call("start_run", name="trial"))
        assert openings.count == 0
        await served.servers.stop()
        await asyncio.to_thread(lambda: connection.call("record_metrics", run_id=made["id"], metrics={"a": 1}))
        assert openings.count == 1
    finally:
        await asyncio.to_thread(connection.close)
    assert (await served.workbench.call("get_run", run_id=made["id"]))["metrics"] == {"a": 1.0}


FORKS = """
import multiprocessing
from workbench import Recorder
from workbench.recording import connection
connection.IDLE_SECONDS = 3600.0
recorder = Recorder()
def record(value):
    try:
        recorder.record(x=value)
    except Exception as error:
        print(error.code, flush=True)
record(0)
child = multiprocessing.get_context("fork").Process(target=record, args=[1])
child.start()
child.join()
record(2)
"""


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("is_served", "said", "values"), [(True, b"", [0.0, 1.0, 2.0]), (False, b"FORKED\n", [0.0, 2.0])]
)
async def test_a_forked_process_ends_and_records_into_the_run_if_there_is_a_server(
    served: Served, monkeypatch: pytest.MonkeyPatch, is_served: bool, said: bytes, values: list[float]
) -> None:
    monkeypatch.setenv("WORKBENCH_PROJECT", str(served.workbench.settings.project))
    if not is_served:
        await served.servers.stop()
    ran = await anyio.run_process([sys.executable, "-c", FORKS], env=os.environ)
    assert (ran.stdout, ran.stderr) == (said, b"")
    [run] = (await served.workbench.call("list_runs"))["runs"]
    [series] = (await served.workbench.call("get_run_series", run_id=run["id"]))["series"]
    assert (run["state"], sorted(value for _, value in series["points"])) == ("completed", values)


RECORDS = """
import sys
from workbench import Recorder
recorder = Recorder()
recorder.record(x=0)
print(recorder.current.id, flush=True)
for line in sys.stdin:
    recorder.record(x=float(line))
    print("recorded", flush=True)
"""


@pytest.mark.long
def test_a_killed_script_leaves_a_lost_run_with_its_values(
    client: ProjectClient, child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_PROJECT", str(client.settings.project))
    (script := tmp_path / "records.py").write_text(RECORDS)
    killed, ended = child(str(script)), child(str(script))
    for process in (killed, ended):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().strip() in "12"
        process.stdin.write("1\n2\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == ["recorded\n"] * 2
    killed.kill()
    killed.wait()
    ended.communicate()
    assert ended.returncode == 0
    runs = runs_of(client)
    assert {(run["state"], run["error_code"], run["name"]) for run in runs} == {
        ("lost", "RUN_LOST", "records"),
        ("completed", None, "records"),
    }
    for run in runs:
        [series] = client.call("get_run_series", run_id=run["id"])["series"]
        assert series["points"] == [[0, 0.0], [1, 1.0], [2, 2.0]]
