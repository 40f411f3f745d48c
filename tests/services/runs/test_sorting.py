"""Lists of runs are sorted on the server, over all pages, along indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from tests import given
from tests.conftest import Clock
from tests.services.runs.conftest import Lab, pages
from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.services.runs.run import SQL
from workbench.services.runs.sorting import MEASURED, ORDERS
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

QUERIES: list[Query] = [SQL.newest, SQL.named]
for order in (*ORDERS.values(), MEASURED):
    QUERIES += [order.ascending, order.descending]


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time only the test moves."""
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


@pytest.fixture
async def runs(lab: Lab, clock: Clock) -> dict[str, int]:
    """Runs by name: one that still runs, and others of several durations and states."""
    made = {}
    ended = ("b", 5.0, "failed"), ("Ä", 1.0, "completed"), ("a", 30.0, "completed"), ("B", 1.0, "cancelled")
    for name, seconds, state in ended:
        made[name] = (await lab.start(name))["id"]
        clock.forward(seconds)
        await lab.call("end_run", run_id=made[name], state=state)
        clock.forward(1.0)
    made["z"] = (await lab.start("z"))["id"]
    return made


SORTED = {
    "newest": "zBaÄb",
    "name": "BabzÄ",
    "-name": "ÄzbaB",
    "state": "BÄabz",
    "-state": "zbaÄB",
    "started": "bÄaBz",
    "-started": "zBaÄb",
    "duration": "ÄBbaz",
    "-duration": "abBÄz",
}


async def test_runs_are_sorted_by_their_fields_over_all_pages(lab: Lab, runs: dict[str, int]) -> None:
    names = {run_id: name for name, run_id in runs.items()}
    for limit in (1, 2, 500):
        found = {sort: "".join(names[run] for run in await pages(lab, sort=sort, limit=limit)) for sort in SORTED}
        assert found == SORTED, f"pages of {limit}"
    assert await pages(lab, sort="-name", state="completed", limit=1) == [runs["Ä"], runs["a"]]
    assert await pages(lab, sort="duration", search="b", limit=1) == [runs["B"], runs["b"]]
    cursor = (await lab.call("list_runs", sort="-duration", limit=1))["next_cursor"]
    for sort in ("name", "-name", "state", "started", "duration", "metric:duration", "newest"):
        error = await given.refusal(lab.call("list_runs", sort=sort, cursor=cursor))
        assert (type(error), error.code, sort) == (BadInput, "BAD_CURSOR", sort)
    slow, fast = await lab.run("slow", duration=9), await lab.run("fast", duration=1)  # a metric of that name
    assert (await pages(lab, sort="metric:duration", limit=1))[:2] == [fast, slow]
    assert (await pages(lab, sort="-metric:duration", limit=1))[:2] == [slow, fast]


async def test_runs_are_sorted_and_chosen_by_their_parameters(lab: Lab) -> None:
    made = {}
    for name, parameters in {
        "a": {"lr": 0.1},
        "b": {"lr": 1},
        "c": {"lr": 0.01, "flag": True},
        "d": {"m": "x"},
    }.items():
        made[(await lab.start(name, parameters=parameters))["id"]] = name
    for limit in (1, 500):
        found = {sort: "".join(made[run] for run in await pages(lab, sort=sort, limit=limit)) for sort in ("lr", "-lr")}
        assert found == {"lr": "cabd", "-lr": "bacd"}
    chosen = {"lr=0.1": "a", "lr>=0.1": "ba", "m=x": "d", "flag=true": "c", "lr!=1": "ca", "parameter:lr<0.1": "c"}
    for condition, names in chosen.items():
        assert "".join(made[run] for run in await pages(lab, where=[condition])) == names, condition
    with pytest.raises(BadInput, match=r"UNKNOWN_METRIC.*Did you mean flag"):
        await pages(lab, where=["flg=true"])


async def test_a_run_that_is_started_again_is_sorted_by_its_last_start(lab: Lab, clock: Clock) -> None:
    first, second = [(await lab.start(key=key))["id"] for key in ("one", "two")]
    await lab.call("end_run", run_id=first, state="failed")
    clock.forward(1)
    await lab.start(key="one")
    assert await pages(lab, sort="started") == [second, first]


@pytest.mark.sqlite("SQLite says how it finds the rows")
async def test_a_page_is_read_along_an_index(lab: Lab, settings: Settings) -> None:
    await lab.run(loss=1)
    with closing(sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True)) as db:
        for query in QUERIES:
            rows = db.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", dict.fromkeys(query.parameters))
            plan = [query.name, *(row[3] for row in rows)]
            assert [step for step in plan if step.startswith(("SEARCH r ", "SEARCH s "))], plan
            assert not [step for step in plan if step.startswith(("SCAN r", "SCAN s ", "SCAN s\n"))], plan
            assert query is SQL.named or not [step for step in plan if "TEMP B-TREE" in step], plan
