"""Charts, runs, saved views, decisions, reviews and undo in all themes, at the widths of `test_states`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.desk_lab import CONTRAST, OpenDesk, Project, view, wearing
from tests.browser.scenes import busy, measured, repository, reviewed
from tests.browser.test_states import check, press


def empty_states(desk: Locator) -> Iterator[str]:
    """Before anything was decided or run."""
    view(desk, "Inbox")
    decided = desk.locator(".wb-decided")
    decided.locator("summary").click()
    expect(decided.get_by_text("Nothing has been decided yet.")).to_be_visible()
    yield "decided-empty"
    view(desk, "Runs")
    press(desk, "Sweeps")
    yield "sweeps-empty"
    press(desk, "Runs")


def activity_states(desk: Locator) -> Iterator[str]:
    view(desk, "Analytics")
    stream = desk.get_by_role("figure", name="Task stream")
    expect(stream.get_by_role("button", name=re.compile("Drop rows"))).to_be_visible()
    yield "analytics"
    press(stream, "Task stream as a table")
    press(desk, "Throughput as a table")
    stream.locator(".wb-chart-mark[tabindex='0']").focus()
    yield "analytics-tables"
    press(stream, "Task stream as a table")
    press(desk, "Throughput as a table")


def run_states(desk: Locator) -> Iterator[str]:
    view(desk, "Runs")
    expect(desk.get_by_role("button", name="1 baseline")).to_be_visible()
    yield "runs"
    press(desk, "1 baseline")
    details = desk.locator(".wb-table-details:visible")
    expect(details.get_by_role("figure", name="loss")).to_contain_text("40 values")
    press(details, "Open masses.csv")
    expect(details.get_by_role("row", name="Gentoo")).to_be_visible()
    press(details, "Edit notes and tags")
    yield "run"
    press(details, "Cancel")
    press(desk, "1 baseline")
    press(desk, "3 deep")
    expect(desk.locator(".wb-table-details:visible")).to_contain_text("CELL_FAILED")
    yield "run-failed"
    press(desk, "3 deep")
    for run in (1, 2, 3):
        desk.get_by_role("checkbox", name=f"Select run {run}").check()
    press(desk, "Compare 3")
    expect(desk.get_by_role("region", name="Comparison").get_by_role("row", name="parameter lr")).to_be_visible()
    yield "runs-compared"
    press(desk.get_by_role("region", name="Comparison"), "Close")


def saved_view_states(desk: Locator) -> Iterator[str]:
    for area in ("Tasks", "Agents", "Worktrees"):
        view(desk, area)
        panel = desk.get_by_role("tabpanel", name=area)
        press(panel, "View")
        if area == "Tasks":
            yield "views-empty"
        saved = panel.get_by_role("group", name="Saved views")
        saved.get_by_role("textbox", name=re.compile("^Name under which")).fill("Everything of the night")
        press(saved, "Save")
        press(saved, "Rename")
        yield f"views-{area.lower()}"
        desk.page.keyboard.press("Escape")
        press(saved, "Delete Everything")
        expect(desk.get_by_role("group", name="Undo")).to_be_visible()
        desk.page.keyboard.press("Escape")
    view(desk, "Inbox")
    decided = desk.locator(".wb-decided")
    expect(decided.get_by_role("listitem").filter(has_text="tess")).to_contain_text("tester")
    press(decided, "Views")
    yield "decided"
    decided.get_by_role("searchbox").fill("nobody at all")
    expect(decided.get_by_text("No decision matches.")).to_be_visible()
    yield "decided-none"
    press(decided, "Views")


def review_states(desk: Locator) -> Iterator[str]:
    view(desk, "Inbox")
    yield "inbox-requested"
    press(desk, "Review the changes of medians")
    page = desk.get_by_role("region", name="medians")
    page.locator(".wb-diff-line td:nth-child(2)[data-number='5']").click()
    comment = page.get_by_role("textbox", name="Comment on line 5 of stats.py")
    comment.fill("Say what it does with an even number of values.")
    yield "review-comment"
    press(page, "Add comment")
    expect(page.get_by_text("1 comment, not sent yet")).to_be_visible()
    yield "review-draft"
    press(page, "Discard comments")
    press(page, "Back to all")


def undo_states(desk: Locator) -> Iterator[str]:
    view(desk, "Tasks")
    desk.get_by_role("row").filter(has_text="Write the report").click()
    press(desk, "Cancel… task")
    desk.get_by_role("button", name=re.compile("^Cancel task")).click()
    expect(desk.get_by_role("group", name="Undo")).to_be_visible()
    for theme in ("dark", "dark-high-contrast"):
        with wearing(desk.page, theme):  # at once: what waits until all is readable may wait until it has gone
            faint = [text for _, text in desk.page.evaluate(CONTRAST)]
            assert not {"Undo", "the edge of Undo"} & {*faint}, theme
    yield "undo"


@pytest.mark.timeout(600)
def test_records_are_readable_and_reachable_at_every_width_and_in_every_theme(
    open_desk: OpenDesk, project: Project
) -> None:
    repository(project.path)
    desk = open_desk()
    check(desk, empty_states(desk))
    busy(project)
    measured(project)
    reviewed(project)
    for states in (activity_states, run_states, saved_view_states, review_states):
        check(desk, states(desk))
    check(desk, undo_states(desk), [700])  # it is there for ten seconds only
