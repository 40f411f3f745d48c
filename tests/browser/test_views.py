"""How the desk lays out what it shows: columns, orders, groups, units, the graph; and the ways between its views."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import resize, shot, view, wait_until
from tests.browser.scenes import admitted, changed, worktree

Open = Callable[..., BareDesk]
TITLE = "Compare the bill shapes of the three species of penguins, with the years side by side, and draw them"


def task(desk: BareDesk, title: str, **more: Any) -> int:
    return int(desk.host.call("create_task", title=title, persona_id="implementer", **more)["id"])


TITLES = """rows => rows
  .sort((one, other) => one.ariaRowIndex - other.ariaRowIndex)
  .map((row) => row.querySelector(".wb-title").textContent)"""


def expect_titles(desk: BareDesk, *expected: str) -> None:
    """The titles of the tasks, from top to bottom."""
    rows = desk.element.locator(".wb-row:not([hidden])")
    wait_until(lambda: rows.evaluate_all(TITLES) == list(expected), f"the tasks are {', '.join(expected)}")


def widths(desk: BareDesk) -> dict[str, float]:
    """The width of each column of the tasks."""
    found: dict[str, float] = desk.element.locator(".wb-grid-columns").evaluate(
        "head => Object.fromEntries([...head.children].map((cell) => [cell.textContent, cell.offsetWidth]))"
    )
    return found


def test_the_title_column_grows_before_the_others(desk: BareDesk) -> None:
    view(desk.element, "Tasks")
    worktree(desk.project, "penguins", {"bills.py": "x = 1\n"})
    first = task(desk, TITLE, priority=900, target_worktree="penguins")
    task(desk, "Report", dependencies=[first])
    title = desk.element.locator(".wb-title", has_text=TITLE)
    expect(title).to_be_visible()
    found = {}
    for width in (700, 1100, 1500, 1600):
        resize(desk.element, width)
        found[width] = widths(desk)
        rows = desk.element.locator(".wb-row:not([hidden])")
        for column in ("task", "state", "progress"):
            edges = rows.locator(f".wb-col-{column}").evaluate_all("cells => cells.map((cell) => cell.offsetLeft)")
            assert len(set(edges)) == 1, (width, column)
    assert found[1600]["Task"] - found[1500]["Task"] == 100
    assert title.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert found[1100]["State"] < found[1600]["State"]
    resize(desk.element, 900)
    for persona in desk.element.locator(".wb-row:not([hidden]) .wb-col-persona").all():
        assert persona.evaluate("e => e.scrollWidth <= e.clientWidth")
    for width, share in ((700, 0.35), (1100, 0.35)):
        assert found[width]["Task"] > share * width, found[width]


def test_an_open_task_shows_the_day_by_which_it_is_due(desk: BareDesk) -> None:
    first = task(desk, "Submit the abstract", due="2026-01-20")
    task(desk, "Order callipers", due="2999-12-20", dependencies=[first])
    done = task(desk, "Count", due="2026-01-20")
    desk.host.call("cancel_task", task_id=done)
    view(desk.element, "Tasks")
    states = desk.element.locator(".wb-row:not([hidden]) .wb-col-state")
    expect(states).to_have_text(
        ["Pendingoverdue: 2026-01-20", f"Blockeddue 2999-12-20 · waits for #{first}", "Cancelled"]
    )


def test_the_bar_of_a_failed_task_is_not_that_of_one_at_work(desk: BareDesk) -> None:
    ada = admitted(desk.project, "ada", "implementer")
    for title in ("Bills", "Islands"):
        number = task(desk, title, max_retries=0)
        desk.project.call("claim_task", ada, task_id=number)
        desk.project.call("report_task_progress", ada, task_id=number, percent_complete=29)
        if title == "Bills":
            desk.project.call("fail_task", ada, task_id=number, error_message="No.", retryable=False)
    view(desk.element, "Tasks")
    bars = desk.element.locator(".wb-row:visible .wb-bar-fill")
    expect(bars).to_have_count(2)
    expect(desk.element).to_contain_text("In progress")
    failed, working = bars.evaluate_all("bars => bars.map((bar) => getComputedStyle(bar).backgroundColor)")
    assert failed != working


def test_tasks_are_sorted_by_a_column_with_the_keyboard(desk: BareDesk) -> None:
    view(desk.element, "Tasks")
    parent = task(desk, "Bills", priority=100)
    task(desk, "Adelie", priority=900)
    task(desk, "Years", parent_task_id=parent)
    task(desk, "Islands", parent_task_id=parent)
    expect(desk.element.locator(".wb-row:visible")).to_have_count(4)
    expect_titles(desk, "Bills", "Years", "Islands", "Adelie")
    heading = desk.element.get_by_role("columnheader", name="Task")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect_titles(desk, "Adelie", "Bills", "Islands", "Years")
    expect(desk.element.get_by_role("region", name="Adelie")).to_be_hidden()  # Enter sorted; it opened nothing
    heading.get_by_role("button").press("Space")
    expect_titles(desk, "Bills", "Years", "Islands", "Adelie")
    heading.get_by_role("button").press("Space")
    expect(heading).to_have_attribute("aria-sort", "none")
    desk.element.get_by_role("columnheader", name="Priority").get_by_role("button").click()
    expect_titles(desk, "Bills", "Years", "Islands", "Adelie")


def test_agents_are_sorted_by_a_column(desk: BareDesk) -> None:
    for name, persona in (("ada", "tester"), ("bert", "implementer"), ("eve", "reviewer")):
        admitted(desk.project, name, persona)
    view(desk.element, "Agents")
    rows = desk.element.locator(".wb-agents .wb-table-row")
    expect(rows).to_have_text([re.compile(name) for name in ("^ada", "^bert", "^eve")])
    desk.element.get_by_role("columnheader", name="Persona").get_by_role("button").click()
    expect(rows).to_have_text([re.compile(name) for name in ("^bert", "^eve", "^ada")])
    desk.element.get_by_role("columnheader", name="Agent").get_by_role("button").click()
    desk.element.get_by_role("columnheader", name="Agent").get_by_role("button").click()
    expect(rows).to_have_text([re.compile(name) for name in ("^eve", "^bert", "^ada")])


def test_columns_are_as_wide_as_what_is_in_them_and_names_have_the_rest(desk: BareDesk) -> None:
    long = "claude-code-implementer-of-the-night-shift"
    for name in (long, "ada"):
        admitted(desk.project, name)
    view(desk.element, "Agents")
    agents = desk.element.locator(".wb-agents")
    rows = agents.locator(".wb-table-row")
    expect(rows).to_have_count(2)
    headings = agents.get_by_role("columnheader")
    expect(headings).to_have_text(["", "Agent", "State", "Persona", "Permission", "Last active"])
    for width in (700, 900, 1100, 1600):
        resize(desk.element, width)
        assert rows.get_by_role("button", name=long).evaluate("e => e.scrollWidth <= e.clientWidth"), width
    before = headings.evaluate_all("cells => cells.map((cell) => cell.offsetWidth)")
    rows.get_by_role("button", name="ada").click()
    expect(desk.element.get_by_role("button", name="Save changes")).to_be_visible()
    assert headings.evaluate_all("cells => cells.map((cell) => cell.offsetWidth)") == before


def test_conflicts_are_grouped_by_file(desk: BareDesk) -> None:
    for number, name in enumerate(("bills", "islands", "mass"), 40):
        worktree(desk.project, name, {"model.py": changed(3, number)})
    view(desk.element, "Worktrees")
    desk.element.get_by_role("button", name=re.compile("^Conflicts")).click()
    files = desk.element.get_by_role("table", name="Conflicts by file")
    row = files.get_by_role("row", name=re.compile("^model.py"))
    expect(row).to_contain_text("3 pairs", timeout=40_000)
    expect(row.get_by_role("button")).to_have_text(["bills", "islands", "mass"])
    row.get_by_role("button", name="Open mass (model.py)").press("Enter")
    page = desk.element.get_by_role("region", name="mass")
    expect(page).to_contain_text("Conflicts with bills, islands in model.py")


def test_a_card_with_failed_gates_has_no_primary_button(open_bare_desk: Open) -> None:
    desk = open_bare_desk(integration_gates=["exit 3"])
    worktree(desk.project, "robust", {"stats.py": "x = 1\n"})
    desk.host.call("integrate_worktree", worktree_name="robust")
    view(desk.element, "Worktrees")
    card = desk.element.get_by_role("listitem", name="robust", exact=True)
    expect(card).to_contain_text("Gates failed")
    expect(card.locator(".wb-primary:visible")).to_have_count(0)
    card.get_by_role("button", name="Review robust", exact=True).click()
    expect(desk.element.get_by_role("button", name="Approve despite failed gates…").last).to_be_visible()
    expect(desk.element.locator(".wb-primary:visible")).to_have_count(0)


LINES = """elements => {
  const lines = [];
  for (const { offsetTop, offsetHeight } of elements) {
    const middle = offsetTop + offsetHeight / 2;
    const line = lines.find((one) => Math.abs(one.middle - middle) < 10);
    if (line) line.count += 1;
    else lines.push({ middle, count: 1 });
  }
  return lines.map(({ count }) => count);
}"""
"""How many elements stand in each line."""


def test_no_tab_or_control_wraps_alone_onto_another_line(desk: BareDesk) -> None:
    task(desk, "Count")
    admitted(desk.project, "ada", "tester")
    desk.host.call("start_run", name="baseline")
    for name in ("Tasks", "Agents", "Runs"):
        view(desk.element, name)
        bar = desk.element.locator(".wb-toolbar:visible")
        expect(bar.get_by_role("button", name="Views")).to_be_visible()
        for width in (700, 900, 1200, 1600):
            resize(desk.element, width)
            tabs = desk.element.get_by_role("tab").evaluate_all(LINES)
            assert min(tabs) > 4, (width, tabs)
            controls = bar.locator("> :visible").evaluate_all(LINES)
            assert min(controls) > 1, (name, width, controls)


@pytest.mark.parametrize("count", [5, 120])
def test_zoom_to_fit_shows_the_whole_graph(desk: BareDesk, count: int) -> None:
    lines = [f"- {{name: t{n}, title: Task {n}, persona: tester, after: [t{(n - 1) // 2}]}}" for n in range(1, count)]
    plan = "\n".join(["plan: many", "tasks:", "- {name: t0, title: Task 0, persona: tester}", *lines])
    desk.host.call("create_plan", text=plan)
    view(desk.element, "Tasks")
    desk.element.get_by_role("button", name="Graph").click()
    expect(desk.element.locator(".wb-node")).to_have_count(count)
    desk.element.get_by_role("button", name="Zoom to fit").press("Enter")
    graph = desk.element.get_by_role("listbox")
    for width in (1100, 700, 1600):
        resize(desk.element, width)
        assert graph.evaluate(
            "async (e) => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);"
            " return e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight; }"
        ), width


def test_the_graph_of_many_tasks_opens_where_they_depend_on_each_other(desk: BareDesk) -> None:
    lone = [f"- {{name: t{n}, title: Task {n}, persona: tester}}" for n in range(400)]
    pair = ["- {name: a, title: Measure, persona: tester}", "- {name: b, title: Report, persona: tester, after: [a]}"]
    desk.host.call("create_plan", text="\n".join(["plan: many", "tasks:", *lone, *pair]))
    view(desk.element, "Tasks")
    desk.element.locator(".wb-row", has_text="Task 0").first.click()
    desk.element.get_by_role("button", name="Graph").click()
    expect(desk.element.locator(".wb-node")).to_have_count(2)
    expect(desk.element.get_by_text("402 tasks · 400 without dependencies are not drawn")).to_be_visible()


def test_what_failed_for_good_is_in_the_header_and_the_inbox_and_opens(desk: BareDesk) -> None:
    failed = [task(desk, f"Fetch {n}", max_retries=0) for n in range(6)]
    token = admitted(desk.project, "ada")
    view(desk.element, "Inbox")
    summary = desk.element.get_by_role("button", name="tasks failed", exact=False)
    expect(summary).to_have_count(0)
    for number in failed:
        desk.project.call("claim_task", token, task_id=number)
        gone = "The station is gone.\nTraceback"
        desk.project.call("fail_task", token, task_id=number, error_message=gone, retryable=False)
    expect(summary).to_have_text("6 tasks failed")
    lines = desk.element.get_by_role("listitem").filter(has_text="The station is gone.")
    expect(lines).to_have_count(5)
    expect(lines.first).to_contain_text(f"#{failed[-1]} Fetch 5")
    for width in (700, 1100, 1600):
        resize(desk.element, width)
        shot(desk.element, f"inbox-failed-{width}")
    desk.element.get_by_role("button", name=f"#{failed[-1]} Fetch 5").click()
    expect(desk.element.get_by_role("region", name="Fetch 5")).to_contain_text("Traceback")
    task(desk, "Other")
    summary.click()
    expect(desk.element.locator(".wb-row:not([hidden])")).to_have_count(6)


def test_cards_keep_their_lines_and_those_of_a_merge_have_most_of_their_width(desk: BareDesk) -> None:
    long = "compare-bill-shapes-by-year"
    worktree(desk.project, long, {"model.py": changed(3, 33)})
    worktree(desk.project, "bills", {"model.py": changed(3, 34)})
    desk.host.call("integrate_worktree", worktree_name=long)
    view(desk.element, "Worktrees")
    cards = desk.element.locator(".wb-worktree")
    expect(cards.filter(has_text="Awaits approval")).to_have_count(1, timeout=40_000)
    expect(cards.filter(has_text="Conflicts with")).to_have_count(2, timeout=40_000)
    for width in (700, 1100, 1600):
        resize(desk.element, width)
        for card in cards.all():
            lines = card.locator(".wb-worktree-head, .wb-worktree-head ~ div, .wb-worktree-buttons")
            heights = lines.evaluate_all("lines => lines.map((line) => line.offsetHeight)")
            assert max(heights) <= 30, (width, heights)
        for name in desk.element.locator(".wb-worktree .wb-opener").all():
            assert name.evaluate("e => e.scrollWidth <= e.clientWidth"), width
    view(desk.element, "Inbox")
    merge = desk.element.get_by_role("listitem", name=long, exact=True)
    expect(merge.get_by_role("button", name="Approve and integrate")).to_be_visible()
    for width in (700, 900, 1000, 1280, 1600):
        resize(desk.element, width)
        body = merge.locator(".wb-card-body").evaluate("e => e.offsetWidth")
        assert body > min(0.5 * width, 600), (width, body)
    resize(desk.element, 900)
    shot(desk.element, "merge-card")


def test_the_empty_inbox_leads_to_the_ways_to_connect_an_agent_and_figures_have_units(desk: BareDesk) -> None:
    view(desk.element, "Inbox")
    link = desk.element.get_by_role("button", name="Connect an agent")
    link.press("Enter")
    expect(desk.element.get_by_role("tab", name="Admin")).to_have_attribute("aria-selected", "true")
    expect(desk.element.get_by_role("heading", name="Connect an agent")).to_be_focused()
    expect(desk.element.get_by_text("Claude Code").first).to_be_in_viewport()
    task(desk, "Count")
    figures = desk.element.locator(".wb-numbers")
    expect(figures).to_contain_text("1 task")
    expect(figures).to_contain_text(re.compile(r"[\d.]+ [KM]B\s*database"))
    values = figures.locator(".wb-number-value").all_inner_texts()
    assert [value for value in values if not re.fullmatch(r"–|[\d.,]+ \S.*", value)] == []
    expect(desk.element.get_by_text("The store is .aiswarm/coordination.db.")).to_be_visible()
