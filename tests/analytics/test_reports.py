"""Standard reports: the numbers, and a picture where it says more."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import pytest

from tests import given
from tests.conftest import Admit, Clock
from tests.small_disk import fill, small_disk
from workbench.analytics import reports
from workbench.analytics.live import Live, refresh
from workbench.analytics.reports import STANDARD, Report, charts, names, query_of, report
from workbench.analytics.reports.charts import MOST_MARKS, MOST_ROWS
from workbench.analytics.reports.report import ROWS
from workbench.analytics.reports.standard.gantt import GANTT, OUTCOMES
from workbench.analytics.reports.words import duration, enumerated
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Unavailable
from workbench.services.tasks import expiry

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n"
QUERIES = Path(reports.__file__).parent / "queries"


async def reported(workbench: Workbench) -> Callable[[str], Report]:
    """The reports of the project as it is, by name."""
    live = Live()
    news = await refresh(live, workbench.store)
    return partial(report, ask=lambda query, **options: live.answer(news, query, **options))


async def make_report(workbench: Workbench, name: str) -> Report:
    """A report of the project as it is."""
    return (await reported(workbench))(name)


async def live_through(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    """One task completed at the second attempt, one under way, one that waits."""
    do = partial(given.done_by, workbench, await admit("ada"))
    for title in ("first", "second", "third"):
        await given.task(workbench, title)
    clock.forward(2)
    await do("claim_task", 1)
    clock.forward(3)
    await do("fail_task", 1, error_message="no")
    await workbench.store.write(lambda tx: expiry.expire(tx, workbench.settings, lambda: 0.0))
    await do("claim_task", 1)
    await do("claim_task", 2)
    clock.forward(5.5)
    await do("complete_task", 1)


async def test_every_report_has_a_name_and_an_unknown_one_is_refused(workbench: Workbench) -> None:
    wanted = "approvals comparison critical_path failures gantt gates lead_times leases processes projects runs tasks "
    wanted += "throughput tokens tool_sources tools totals utilisation waits"
    assert names() == wanted.split()
    assert sorted(path.stem for path in QUERIES.glob("*.sql")) == names()
    assert [one.name for one in STANDARD.values() if not one.about or not one.empty.endswith(".")] == []
    reports = await reported(workbench)
    for name in ("nothing", "../views", "", "tasks.sql"):
        with pytest.raises(BadInput, match=r"UNKNOWN_REPORT.*Available: approvals, comparison, critical_path"):
            reports(name)
    with pytest.raises(BadInput, match=r"There is no report 'wait'\. Did you mean waits\? Available: approvals, "):
        reports("wait")


def test_only_groups_of_tasks_are_compared() -> None:
    assert "GROUP BY t.persona " in query_of(STANDARD["comparison"], "persona")
    for name, by in (("comparison", "persona; DROP TABLE x"), ("comparison", "claimed_at"), ("waits", "plan")):
        with pytest.raises(BadInput, match="NO_GROUPS"):
            query_of(STANDARD[name], by)


def test_sentences_use_readable_units_and_only_the_first_of_many_names() -> None:
    seconds = (0.0, 0.0304, 7.0, 7.25, 119.0, 210.0, 7_200.0, 172_800.0, float("nan"), None)
    said = ["0 s", "30 ms", "7 s", "7.2 s", "119 s", "3.5 min", "2 h", "2 days", *["an unknown time"] * 2]
    assert [duration(one) for one in seconds] == said
    said = ["none", "a", "a and b", "a, b and c", "a, b, c and 3 more"]
    assert [enumerated(list(names)) for names in ("", "a", "ab", "abc", "abcdef")] == said


async def test_a_report_on_an_empty_project_is_a_sentence(workbench: Workbench, tmp_path: Path) -> None:
    reports = await reported(workbench)
    for name in STANDARD:
        found = reports(name)
        expected = "0 of 0 tasks completed; 0 attempts by 0 of 0 agents; 0 worktrees merged."
        assert (found.sentence, found.chart) == (expected if name == "totals" else STANDARD[name].empty, None)
        assert repr(found).startswith(found.sentence)
        assert found.sentence in found.save(tmp_path / "report.html").read_text()
        assert found.data["rows"] == ([] if name != "totals" else found.data["rows"])
        bundle = found._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html"}
        assert bundle["text/html"].startswith(f"<p>{found.sentence}</p>")
        with pytest.raises(BadInput, match="NO_PICTURE"):
            found.save(tmp_path / "x.png")


async def test_reports_have_a_row_for_each_task_a_bar_for_each_attempt_and_totals(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    await live_through(workbench, admit, clock)
    await workbench.call("register", name="waits")
    reports = await reported(workbench)
    frame = reports("tasks").frame
    assert frame[["id", "title", "status", "attempts"]].to_numpy().tolist() == [
        [1, "first", "completed", 2],
        [2, "second", "claimed", 1],
        [3, "third", "pending", 0],
    ]
    assert frame["unclaimed_s"].tolist()[:2] == [2.0, 5.0]
    assert frame["duration_s"].tolist()[0] == 8.5
    assert frame["unclaimed_s"].isna().tolist() == [False, False, True]
    assert reports("gantt").frame.to_numpy().tolist() == [
        ["first", "ada", 1, 0.0, 3.0, "failed"],
        ["first", "ada", 2, 3.0, 8.5, "completed"],
        ["second", "ada", 1, 3.0, 8.5, "running"],
    ]
    events = (await workbench.call("list_events", limit=1000))["events"]
    tasks = {"tasks": 3, "completed": 1, "failed": 0, "cancelled": 0, "open": 2, "attempts": 3, "at_work": 1}
    assert reports("totals").frame.to_dict("records") == [
        {**tasks, "agents": 1, "worktrees_integrated": 0, "events": len(events)},
    ]


async def test_the_reports_of_tools_have_their_calls_and_how_long_they_took(workbench: Workbench) -> None:
    for name in ("list_tasks", "list_tasks", "get_task"):
        with suppress(NotFound):
            await workbench.call("call_tool", name=name, arguments={"task_id": 1} if name == "get_task" else {})
    tools = (await make_report(workbench, "tools")).frame
    assert tools[["source", "tool", "calls", "completed", "failed"]].to_numpy().tolist() == [
        *(["local", "get_task", 1, 0, 1], ["local", "list_tasks", 2, 2, 0]),
    ]
    sources = (await make_report(workbench, "tool_sources")).frame
    assert sources[["source", "tools", "calls", "failed"]].to_numpy().tolist() == [["local", 2, 3, 1]]
    assert (tools["median_ms"] <= tools["longest_ms"]).all()
    await given.refusal(workbench.call("call_tool", name="get_taks"))
    report = await make_report(workbench, "tools")
    assert report.frame[["source", "tool", "refused"]].to_numpy().tolist()[-1] == ["unknown", "get_taks", 1]
    said = "4 calls of 2 tools, 1 failed, 1 refused, 1 of names that no tool has; "
    assert report.sentence.startswith(said), report.sentence


async def test_the_gantt_is_a_picture_in_a_cell_in_the_colours_of_the_page(
    workbench: Workbench, admit: Admit, clock: Clock, tmp_path: Path
) -> None:
    await live_through(workbench, admit, clock)
    gantt = await make_report(workbench, "gantt")
    png, svg, page = (gantt.save(tmp_path / f"gantt{suffix}").read_bytes() for suffix in (".png", ".svg", ".html"))
    assert png.startswith(PNG)
    assert svg.lstrip().startswith(b"<svg ")
    assert page.startswith(b"<!DOCTYPE")
    assert all(word in svg.decode() for word in ("first", "second", "failed", OUTCOMES["running"]))
    assert OUTCOMES["expired"] not in svg.decode()
    shown = gantt._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html", "image/png"}
    assert shown["text/plain"].splitlines()[0].startswith("3 attempts at 2 tasks by 1 agent within 8.5 s; 1")
    assert shown["text/plain"].splitlines()[2].split()[:2] == ["task", "agent"]
    assert base64.b64decode(shown["image/png"]).startswith(PNG)
    picture = drawing(shown["text/html"])
    texts = re.findall(r"<text [^>]*>", picture)
    assert len(texts) > 5
    assert all('fill="currentColor"' in text for text in texts)
    assert 'fill="white"' not in picture


def drawing(page: str) -> str:
    """The SVG in the HTML of a cell."""
    [source] = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', page)
    return base64.b64decode(source).decode()


def drawn(name: str, frame: pandas.DataFrame) -> Any:
    """The picture of a report's frame."""
    picture = STANDARD[name].picture
    assert picture is not None
    return picture(frame)


def gantt_of(count: int) -> Report:
    """The report of so many tasks."""
    rows = [[f"task {n}", "ada", 1, float(n), n + 2.5, "completed"] for n in range(count)]
    frame = pandas.DataFrame(rows, columns=["task", "agent", "attempt", "start_s", "end_s", "outcome"])
    return Report("gantt", frame, GANTT.sentence(frame), drawn("gantt", frame))


@pytest.mark.long
def test_a_gantt_of_many_tasks_shows_the_last_and_says_so() -> None:
    assert "began last" not in gantt_of(MOST_ROWS).html()
    shown = gantt_of(2_000)._repr_mimebundle_()
    svg = drawing(shown["text/html"])
    assert f"The {MOST_ROWS} of 2,000 tasks that began last; the report" in svg
    assert ">task 1999<" in svg
    assert svg.count('roledescription="bar"') == MOST_ROWS
    assert shown["text/plain"].splitlines()[-1] == f"… and {2_000 - ROWS:,} more rows; `frame` has all"


@pytest.mark.long
def test_very_many_bars_intervals_and_samples_are_capped_with_a_word() -> None:
    many = pandas.DataFrame({"kind": "attempt", "class": [f"Error{n}" for n in range(5_000)], "failures": 1})
    page = Report("failures", many, "", drawn("failures", many)).html()
    assert f"The {MOST_ROWS} of 5,000 causes that are most frequent; the report" in page
    row = {"agent": "ada", "persona": "x", "here_s": 9.0, "share": 0.5}
    spans = pandas.DataFrame([{**row, "start_s": n, "end_s": n + 0.5, "busy_s": 0.5} for n in range(MOST_MARKS + 5)])
    note = drawn("utilisation", spans).to_dict()["title"]["text"]
    assert note == "The 2,000 of 2,005 intervals that were longest; the report's `frame` has all."
    row = {"kind": "agent", "name": "ada", "pid": 1, "cpu_seconds": 1.0, "cpu_percent": 5.0, "memory_mb": 9.0}
    samples = pandas.DataFrame([{**row, "from_s": float(n)} for n in range(MOST_MARKS + 1)])
    chart = drawn("processes", samples).to_dict()
    assert chart["title"]["text"] == "The 2,000 of 2,001 samples that are newest; the report's `frame` has all."
    assert all(pane["mark"]["point"] for pane in chart["vconcat"]), "single samples are seen, too"


def test_an_axis_has_the_unit_of_its_longest_duration_and_too_many_names_one_colour() -> None:
    frame = pandas.DataFrame({"persona": [f"p{n}" for n in range(9)]})
    found = list(dict.fromkeys(charts.grouped(frame, "persona")["persona"]))
    assert found == ["p0", "p1", "p2", "p3", "p4", "p5", "others"]
    assert charts.grouped(frame[:7], "persona")["persona"].tolist() == frame["persona"][:7].tolist()
    for longest, unit, last in ((90.0, "seconds", 90.0), (3_600.0, "minutes", 60.0), (864_000.0, "days", 10.0)):
        frame, name = charts.in_unit(pandas.DataFrame({"from_s": [0.0, 9.0], "to_s": [9.0, longest]}), "from_s", "to_s")
        assert (name, frame["to_s"].max()) == (unit, last)


def test_counts_have_an_axis_of_whole_numbers_and_outcomes_have_colours() -> None:
    gates = pandas.DataFrame([["make test", 2, 1]], columns=["command", "passed", "failed"])
    chart = drawn("gates", gates).to_dict()["encoding"]
    assert (chart["x"]["axis"]["tickMinStep"], chart["x"]["axis"]["format"]) == (1, ",d")
    assert chart["color"]["scale"] == {"domain": ["passed", "failed"], "range": [charts.GREEN, charts.RED]}
    runs = pandas.DataFrame({"compared": ["1 a", "2 b"], "seconds": [1.0, 2.0], "state": ["failed", "completed"]})
    scale = drawn("runs", runs).to_dict()["encoding"]["color"]["scale"]
    shades = dict(zip(scale["domain"], scale["range"], strict=True))
    assert shades == {"failed": charts.RED, "completed": charts.GREEN}


async def test_a_failed_run_is_a_failure_with_its_cause(workbench: Workbench) -> None:
    run = await workbench.call("start_run", name="trial")
    why = {"error_code": "OUT_OF_MEMORY", "error": "It was too large."}
    await workbench.call("end_run", run_id=run["id"], state="failed", **why)
    await workbench.call("start_run", name="another")
    frame = (await make_report(workbench, "failures")).frame[["kind", "class", "failures", "last_message"]]
    assert frame.to_numpy().tolist() == [["run", "OUT_OF_MEMORY", 1, "It was too large."]]


async def test_tasks_of_the_same_name_are_distinguished(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    for plan in ("penguins", "seals"):
        text = f"plan: {plan}\ntasks:\n- {{name: clean, title: Clean, persona: implementer}}\n"
        await workbench.call("create_plan", text=text)
    for title in ("Draw", "Draw", "Write"):
        await given.task(workbench, title)
    for task in range(1, 6):
        await given.done_by(workbench, ada, "claim_task", task)
    found = await make_report(workbench, "gantt")
    names = ["Draw (task 3)", "Draw (task 4)", "Write", "clean (penguins)", "clean (seals)"]
    assert sorted(found.frame["task"]) == names
    assert found.sentence.startswith("5 attempts at 5 tasks by 1 agent")


async def test_agents_that_did_nothing_are_in_the_report_on_utilisation(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    await admit("idle")
    assert (await make_report(workbench, "utilisation")).sentence == "No agent has held a task yet."
    await live_through(workbench, admit, clock)
    found = await make_report(workbench, "utilisation")
    assert found.frame[["agent", "busy_s", "share"]].to_numpy().tolist()[-1] == ["idle", 0.0, 0.0]
    assert found.sentence.endswith("idle least (0 %).")
    assert found.chart is not None
    assert found.chart.to_dict()["encoding"]["y"]["scale"]["domain"] == ["ada", "idle"]


async def test_a_report_that_cannot_be_saved_leaves_the_file_as_it_was(workbench: Workbench, tmp_path: Path) -> None:
    found = await make_report(workbench, "tasks")
    with small_disk(tmp_path / "disk", 1) as place:
        (place / "report.html").write_text("before")
        fill(place, 0)
        with pytest.raises(Unavailable, match=r"OUTPUT_UNWRITABLE.*No space left on device\."):
            found.save(place / "report.html")
        assert (place / "report.html").read_text() == "before"


def test_numbers_of_a_report_are_shown_with_the_digits_that_can_be_read() -> None:
    frame = pandas.DataFrame(
        {"seed": [1.0, None], "loss": [0.005611799660671071, 5.0], "bytes": [48_287_744.25, 1e300], "n": [7, 12_345]}
    )
    shown = Report("query", frame)
    assert shown.table().rows == [[1, 0.005612, 48_287_744, 7], [None, 5.0, 1e300, 12_345]]
    assert shown.frame is frame
