"""Runs are filtered, sorted by metrics, paged, compared, annotated and archived."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.runs.conftest import Lab, pages
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused

pytestmark = pytest.mark.anyio


async def test_runs_are_filtered_by_their_fields(lab: Lab) -> None:
    about = {"notebook": "a.ipynb", "notebook_sha256": "0" * 64, "specification": {}}
    row = await lab.call("start_sweep", name="grid", **about)
    swept = (await lab.start("of a sweep", sweep_id=row["id"], key="s1", notebook="deep/train.ipynb"))["id"]
    tagged = (await lab.start("Tagged", tags=["baseline"]))["id"]
    failed = await lab.run(state="failed")
    assert await lab.list() == [failed, tagged, swept]
    assert await lab.list(sweep="grid") == await lab.list(sweep=str(row["id"])) == [swept]
    assert (await lab.call("get_run", run_id=swept))["sweep"] == "grid"
    assert await lab.list(tag="baseline") == await lab.list(search="tagg") == [tagged]
    assert await lab.list(search="train.ip") == [swept]
    assert await lab.list(state="failed") == [failed]
    assert await lab.list(sweep="grid", state="failed") == await lab.list(search="%") == []


async def test_conditions_select_by_last_values(lab: Lab) -> None:
    low = await lab.run(loss=[0.9, 0.05], outcome="ok")
    high = await lab.run(loss=[0.05, 0.9], outcome="bad")
    broken = await lab.run(loss=["NaN"])
    silent = await lab.run()
    assert await lab.list(where=["loss<0.1"]) == [low]
    assert await lab.list(where=["loss >= 0.05", "loss <= 0.9"]) == [high, low]
    assert await lab.list(where=["loss<0.1", "outcome=bad"]) == []
    assert await lab.list(where=["outcome!=ok"]) == [high]
    assert await lab.list(where=["loss!=0.9"]) == [broken, low]
    assert await lab.list(where=["loss=nan"]) == [broken]
    assert silent not in await lab.list(where=["loss!=7"])
    with pytest.raises(BadInput, match="BAD_CONDITION"):
        await lab.list(where=["loss"])


async def test_runs_are_sorted_by_a_metric_over_all_pages(lab: Lab) -> None:
    runs = {loss: await lab.run(loss=loss) for loss in (0.3, -1.5, 0.1, 1e300, "NaN")}
    same = await lab.run(loss=0.3)
    silent = await lab.run()
    without = [silent, runs["NaN"]]
    found = [runs[-1.5], runs[0.1], runs[0.3], same, runs[1e300], *without]
    down = [runs[1e300], same, runs[0.3], runs[0.1], runs[-1.5], *without]
    for limit in (1, 2, 500):
        assert await pages(lab, sort="loss", limit=limit) == found
        assert await pages(lab, sort="-loss", limit=limit) == down
        assert await pages(lab, limit=limit) == sorted(found, reverse=True)
    words = await lab.run(remark="words")
    for limit in (1, 2, 500):
        assert await pages(lab, sort="remark", limit=limit) == [words, *sorted(found, reverse=True)]
    cursor = (await lab.call("list_runs", sort="loss", limit=1))["next_cursor"]
    for other in ({"cursor": cursor}, {"cursor": "x"}, {"cursor": "x", "sort": "loss"}):
        with pytest.raises(BadInput, match="BAD_CURSOR"):
            await lab.call("list_runs", **other)


async def test_an_unknown_metric_is_refused_with_a_suggestion(lab: Lab) -> None:
    assert await lab.list(where=["loss<0.1"], sort="-loss") == [], "nothing is recorded yet"
    await lab.run(loss=0.5, outcome="ok")
    meant = r"UNKNOWN_METRIC: No run has a metric or parameter 'los'\. Did you mean loss\?"
    for misspelt in ({"where": ["loss<1", "los<0.1"]}, {"sort": "los"}, {"sort": "-metric:los"}):
        with pytest.raises(BadInput, match=meant):
            await lab.list(**misspelt)
    with pytest.raises(BadInput, match=r"'colour'\. Recorded are: loss, outcome\."):
        await lab.list(where=["colour=red"])


async def test_runs_are_compared_where_they_differ(lab: Lab) -> None:
    one = await lab.start("one", parameters={"lr": 0.1, "seed": 1}, environment={"python": "3.11"})
    two = await lab.start("two", parameters={"lr": 0.2, "seed": 1}, environment={"python": "3.12"})
    await lab.record(two["id"], {"loss": [0.5, 0.4]})
    compared = await lab.call("compare_runs", run_ids=[two["id"], one["id"]])
    assert [run["name"] for run in compared["runs"]] == ["two", "one"]
    rows = {(row["section"], row["name"]): row["values"] for row in compared["rows"]}
    assert rows == {
        ("parameters", "lr"): [0.2, 0.1],
        ("metrics", "loss"): [0.4, None],
        ("environment", "python"): ["3.12", "3.11"],
    }
    whole = await lab.call("compare_runs", run_ids=[one["id"], two["id"]], all_rows=True)
    same = {(row["section"], row["name"]) for row in whole["rows"] if not row["differs"]}
    assert {("parameters", "seed"), ("git", "commit"), ("run", "state")} <= same
    with pytest.raises(BadInput):
        await lab.call("compare_runs", run_ids=[one["id"], one["id"]])
    with pytest.raises(NotFound, match="RUN_NOT_FOUND"):
        await lab.call("compare_runs", run_ids=[one["id"], 99])


async def test_names_notes_and_tags_are_changed_one_by_one(lab: Lab) -> None:
    run = (await lab.start("old", tags=["a", "b"]))["id"]
    await lab.call("update_run", run_id=run, name="new", add_tags=["c", "a"], remove_tags=["b", "none"])
    await lab.call("update_run", run_id=run, notes="It **worked**.")
    changed = await lab.call("update_run", run_id=run)
    assert (changed["name"], changed["tags"], changed["notes"]) == ("new", ["a", "c"], "It **worked**.")
    assert (await lab.call("update_run", run_id=run, notes=""))["notes"] == ""
    changes = [event["data"]["changes"] for event in await lab.events("run.changed")]
    assert changes == [["name", "tags"], ["notes"], ["notes"]]
    for tag in ("two words", "a,b", ""):
        with pytest.raises(BadInput):
            await lab.call("update_run", run_id=run, add_tags=[tag])


async def test_archived_runs_are_listed_apart_and_yield_their_name_to_others(lab: Lab) -> None:
    running, ended = (await lab.start())["id"], await lab.run()
    with pytest.raises(Conflict, match="RUN_RUNNING"):
        await lab.call("archive_run", run_id=running)
    for _ in range(2):
        assert (await lab.call("archive_run", run_id=ended))["archived_at"] is not None
    assert (await lab.list(), await lab.list(archived=True)) == ([running], [ended])
    for _ in range(2):
        assert (await lab.call("restore_run", run_id=ended))["archived_at"] is None
    assert await lab.list() == [ended, running]
    assert len(await lab.events("run.archived")) == len(await lab.events("run.restored")) == 1
    first, second = [(await lab.start("twice"))["id"] for _ in range(2)]
    with pytest.raises(BadInput, match=rf"AMBIGUOUS_NAME.*Choose by id: {second}, {first}\."):
        await lab.call("get_run", run_id="twice")
    await lab.call("end_run", run_id=second)
    await lab.call("archive_run", run_id=second)
    assert (await lab.call("get_run", run_id="twice"))["id"] == first


async def test_planners_read_the_runs_of_their_session_and_change_none(workbench: Workbench, admit: Admit) -> None:
    lab = Lab(workbench)
    project = await given.project(workbench)
    one, other = [await given.session(workbench, name, project["id"]) for name in ("one", "other")]
    shared = await lab.start()
    own, hidden = [await lab.start(session_id=session["id"]) for session in (one, other)]
    planner = await admit("ada", role="planner", session_id=one["id"])
    worker = await admit("bob")
    listed = await workbench.dispatch(planner.caller, "list_runs", {})
    assert [run["id"] for run in listed["runs"]] == [own["id"], shared["id"]]
    for name in ("get_run", "get_run_series"):
        assert await workbench.dispatch(planner.caller, name, {"run_id": own["id"]})
        with pytest.raises(NotFound):
            await workbench.dispatch(planner.caller, name, {"run_id": hidden["id"]})
    with pytest.raises(NotFound):
        await workbench.dispatch(planner.caller, "compare_runs", {"run_ids": [hidden["id"]]})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(planner.caller, "record_metrics", {"run_id": own["id"], "metrics": {"a": 1}})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(worker.caller, "list_runs", {})
