"""The Runs tab: a list to filter and sort, details with pictures and artifacts, and runs beside each other."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import resize, shot, view

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _run(desk: BareDesk, name: str, losses: list[float], state: str = "completed", **parameters: Any) -> int:
    run = desk.host.call("start_run", name=name, parameters=parameters)
    desk.host.call("record_metrics", run_id=run["id"], metrics={"loss": losses})
    desk.host.call("end_run", run_id=run["id"], state=state)
    return int(run["id"])


def _open(desk: BareDesk, run: int) -> Locator:
    desk.element.get_by_role("button", name=f"{run} ", exact=False).first.click()
    return desk.element.locator(".wb-table-details:visible")


def test_runs_come_as_they_are_recorded_and_are_sorted_and_filtered(desk: BareDesk) -> None:
    view(desk.element, "Runs")
    expect(desk.element.get_by_text("No runs yet.").locator("code")).to_contain_text("with wb.run(")
    for name, loss, state in (("slow", 0.5, "completed"), ("quick", 0.1, "completed"), ("broken", 0.9, "failed")):
        _run(desk, name, [1.0, loss], state, lr=loss)
    rows = desk.element.locator(".wb-runs .wb-opener")
    expect(rows).to_have_text(["3 broken", "2 quick", "1 slow"])
    tags = desk.element.get_by_role("columnheader", name="Tags")
    expect(tags).to_be_hidden()
    desk.host.call("update_run", run_id=1, add_tags=["paper"])
    expect(tags).to_be_visible()
    desk.element.get_by_role("button", name="loss", exact=True).click()
    expect(rows).to_have_text(["2 quick", "1 slow", "3 broken"])
    for heading in ("Run", "State", "Started", "Took"):
        column = desk.element.get_by_role("columnheader", name=heading, exact=True)
        expect(column).to_have_attribute("aria-sort", "none")
    desk.element.get_by_role("button", name="Run", exact=True).click()
    expect(rows).to_have_text(["3 broken", "2 quick", "1 slow"])
    desk.element.get_by_role("button", name="State", exact=True).click()
    expect(rows).to_have_text(["1 slow", "2 quick", "3 broken"])
    shot(desk.element, "runs-by-state")
    desk.element.get_by_role("button", name="loss", exact=True).click()
    expect(rows).to_have_text(["2 quick", "1 slow", "3 broken"])
    desk.element.get_by_role("button", name="lr", exact=True).press("Enter")
    expect(desk.element.get_by_role("columnheader", name="lr")).to_have_attribute("aria-sort", "ascending")
    desk.element.get_by_role("button", name="lr", exact=True).press("Enter")
    expect(rows).to_have_text(["3 broken", "1 slow", "2 quick"])
    for width in (700, 900, 1100, 1600):
        resize(desk.element, width)
        shot(desk.element, f"runs-{width}")
    desk.element.get_by_label("Conditions on metrics").fill("loss<0.6")
    expect(rows).to_have_text(["1 slow", "2 quick"])
    desk.element.get_by_label("Conditions on metrics").fill("")
    desk.element.get_by_label("Filter runs by state").select_option("failed")
    expect(rows).to_have_text(["3 broken"])


def test_filters_and_order_of_runs_are_saved_as_a_view(desk: BareDesk) -> None:
    view(desk.element, "Runs")
    for name, loss in (("slow", 0.5), ("quick", 0.1), ("broken", 0.9)):
        _run(desk, name, [1.0, loss])
    best = {"where": ["loss<0.6"], "sort": {"by": "loss", "direction": "ascending"}}
    desk.host.call("save_view", area="runs", name="Best", state=best)
    rows = desk.element.locator(".wb-runs .wb-opener")
    expect(rows).to_have_text(["3 broken", "2 quick", "1 slow"])
    views = desk.element.get_by_role("tabpanel", name="Runs").get_by_role("button", name=re.compile("^View"))
    views.click()
    desk.element.get_by_role("button", name="Best", exact=True).click()
    expect(rows).to_have_text(["2 quick", "1 slow"])
    expect(desk.element.get_by_label("Conditions on metrics")).to_have_value("loss<0.6")
    shot(desk.element, "runs-view")
    expect(desk.element.get_by_role("columnheader", name="loss")).to_have_attribute("aria-sort", "ascending")
    desk.element.get_by_label("Filter runs by tag").fill("paper")
    expect(desk.element.get_by_text("No run matches the filters.")).to_be_visible()
    views.click()
    desk.element.get_by_role("textbox", name=re.compile("^Name under which")).fill("Paper")
    desk.element.get_by_role("group", name="Saved views").get_by_role("button", name="Save").click()
    expect(views).to_have_text("View: Paper")


def test_a_run_shows_its_series_and_takes_notes_and_tags(desk: BareDesk) -> None:
    run = _run(desk, "trial", [1.0, 0.5, 0.25], lr=0.1)
    view(desk.element, "Runs")
    details = _open(desk, run)
    series = details.get_by_role("figure", name="loss")
    expect(series).to_contain_text("3 values, from 0.25 to 1; the last is 0.25.")
    series.get_by_role("button", name="loss as a table").click()
    expect(series.get_by_role("row")).to_have_text(["Steploss", "01", "10.5", "20.25"])
    details.get_by_role("button", name="Edit notes and tags").click()
    details.get_by_label("Notes, in Markdown").fill("The best so far.")
    details.get_by_label("Tags, with commas").fill("good, paper")
    details.get_by_role("button", name="Save").click()
    expect(details).to_contain_text("The best so far.")
    known = desk.host.call("get_run", run_id=run)
    assert (known["notes"], sorted(known["tags"])) == ("The best so far.", ["good", "paper"])
    details.get_by_role("button", name="Archive").click()
    expect(details.get_by_role("button", name="Restore")).to_be_visible()
    assert desk.host.call("get_run", run_id=run)["archived_at"] is not None


def test_artifacts_open_in_place_and_nothing_in_them_runs(desk: BareDesk, tmp_path: Path) -> None:
    run = _run(desk, "trial", [1.0])
    project = tmp_path / "project"
    for name, content in {
        "plot.png": PNG,
        "rows.csv": b"word,n\nhello,1\n",
        "page.html": b"<script>window.broken = true</script>",
    }.items():
        (project / name).write_bytes(content)
        desk.host.call("add_run_artifact", run_id=run, path=name)
    view(desk.element, "Runs")
    details = _open(desk, run)
    for name in ("plot.png", "rows.csv", "page.html"):
        details.get_by_role("button", name=f"Open {name}").click()
    picture = details.get_by_role("img", name="plot.png")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    expect(details.get_by_role("row", name="hello 1")).to_be_visible()
    expect(details.get_by_text("<script>window.broken = true</script>")).to_be_visible()
    assert desk.page.evaluate("() => window.broken") is None


def test_runs_are_compared_and_a_failed_sweep_shows_its_retry_command(desk: BareDesk) -> None:
    runs = [_run(desk, f"trial{n}", [1.0, 0.5 / n], lr=0.1 * n) for n in (1, 2, 3)]
    view(desk.element, "Runs")
    for run in runs:
        desk.element.get_by_role("checkbox", name=f"Select run {run}").check()
    desk.element.get_by_role("button", name="Compare 3").click()
    compared = desk.element.get_by_role("region", name="Comparison")
    expect(compared.get_by_role("row", name="parameter lr")).to_contain_text("0.1")
    compared.get_by_role("button", name=f"Run {runs[1]} trial2: lr").press("Enter")
    expect(desk.element.locator(".wb-table-details:visible")).to_contain_text("trial2")
    about = {"notebook": "train.ipynb", "notebook_sha256": "0" * 64, "specification": {"runs": 2}}
    sweep = desk.host.call("start_sweep", name="seeds", **about)["id"]
    for number, state in ((1, "completed"), (2, "failed")):
        run = desk.host.call("start_run", name=f"seeds {number}", sweep_id=sweep)["id"]
        desk.host.call("end_run", run_id=run, state=state)
    desk.element.get_by_role("button", name="Sweeps 1").click()
    expect(desk.element.get_by_text("%workbench sweep --name seeds --retry-failed")).to_be_visible()
    expect(desk.element.get_by_role("button", name="Copy the command that runs again what failed")).to_be_visible()
    shot(desk.element, "runs-sweeps")


def test_series_of_runs_are_drawn_over_each_other_or_as_means_and_the_best_run_is_marked(desk: BareDesk) -> None:
    losses = ((1.0, 0.1, 0.001), (1.0, 0.2, 0.01), (0.8, 0.4, 0.3))
    runs = [_run(desk, f"trial{n}", list(loss), lr=0.1 * (n // 2)) for n, loss in enumerate(losses, 1)]
    view(desk.element, "Runs")
    desk.element.get_by_role("button", name="loss", exact=True).click()
    best = desk.element.locator(".wb-runs .wb-table-row").first
    expect(best).to_contain_text("1 trial1")
    expect(best.get_by_role("img", name="Best")).to_be_visible()
    for run in runs:
        desk.element.get_by_role("checkbox", name=f"Select run {run}").check()
    desk.element.get_by_role("button", name="Compare 3").click()
    compared = desk.element.get_by_role("region", name="Comparison")
    series = compared.get_by_role("figure", name="loss")
    expect(series.get_by_role("button", name="Run 1 trial1, the best: loss is 0.001 at the end")).to_be_visible()
    expect(series.get_by_role("button", name=re.compile("^Run "))).to_have_count(3)
    expect(compared.get_by_label("Best run")).to_have_value("lowest loss")
    expect(compared.get_by_role("columnheader", name="★ 1 trial1")).to_be_visible()
    expect(series).to_contain_text("3 runs, which end from 0.001 to 0.3.")
    middle = series.locator("text").nth(1)
    expect(middle).to_have_text("0.501")
    compared.get_by_label("Log axis").check()
    expect(middle).to_have_text("0.032")
    shot(desk.element, "runs-overlay")
    compared.get_by_label("Lines").select_option("lr")
    expect(series.get_by_role("img", name="lr=0.1, 2 runs: loss is 0.155")).to_be_visible()
    compared.get_by_label("Log axis").uncheck()
    expect(series.locator(".wb-chart-band")).to_have_count(2)
    series.get_by_role("button", name="loss as a table").click()
    expect(series.get_by_role("columnheader")).to_have_text(["Step", "lr=0, 1 run", "lr=0.1, 2 runs"])
    desk.page.evaluate("document.body.dataset.jpThemeLight = false")
    shot(desk.element, "runs-means")


def test_a_run_within_another_one_is_linked_both_ways_and_compared_with_its_siblings(desk: BareDesk) -> None:
    outer = _run(desk, "search", [1.0])
    for name in ("first", "second"):
        inner = desk.host.call("start_run", name=name, parent_id=outer)["id"]
        desk.host.call("end_run", run_id=inner, state="completed")
    desk.host.call("archive_run", run_id=outer)
    view(desk.element, "Runs")
    _open(desk, inner).get_by_role("button", name=f"Open run {outer}").click()
    details = desk.element.locator(".wb-table-details:visible").filter(has_text="Runs within it")
    expect(details.get_by_role("listitem").filter(has_text="2 first")).to_contain_text("Completed")
    shot(desk.element, "runs-within")
    details.get_by_role("button", name="Compare these 2").click()
    expect(desk.element.get_by_role("region", name="Comparison")).to_contain_text("2 runs compared")
