"""Saved views of tables, what was decided, and undo: the same in all panels, with the mouse and the keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.bare_desk import LASTING_UNDO, BareDesk
from tests.browser.desk_lab import shot, view
from tests.browser.scenes import admitted

pytestmark = pytest.mark.usefixtures("lasting_undo")


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    """A project with a few tasks."""
    for title in ("Count penguins", "Count islands", "Write the report"):
        desk.host.call("create_task", title=title, persona_id="implementer")
    view(desk.element, "Tasks")
    return desk


@pytest.fixture
def other(page: Page, desk: BareDesk) -> Iterator[BareDesk]:
    """Another panel of the project, in a page of its own."""
    (beside := page.context.new_page()).add_init_script(LASTING_UNDO)
    another = BareDesk(desk.host, beside)
    view(another.element, "Tasks")
    yield another
    another.close()
    another.page.close()


def views(desk: BareDesk) -> Locator:
    """The button that opens the saved views of the tasks."""
    return desk.element.get_by_role("tabpanel", name="Tasks").get_by_role("button", name=re.compile("^View"))


def titles(desk: BareDesk) -> Locator:
    """The titles of the tasks."""
    return desk.element.locator(".wb-row:not([hidden]) .wb-title")


def save(desk: BareDesk, name: str) -> None:
    """Save the present view of the tasks."""
    views(desk).click()
    desk.element.get_by_role("textbox", name=re.compile("^Name under which")).fill(name)
    desk.element.get_by_role("group", name="Saved views").get_by_role("button", name=re.compile("Save|Replace")).click()


def test_a_view_is_saved_replaced_picked_in_another_panel_renamed_and_deleted(desk: BareDesk, other: BareDesk) -> None:
    desk.element.get_by_role("searchbox", name=re.compile("^Filter tasks")).fill("count")
    desk.element.get_by_role("columnheader", name="Task").get_by_role("button").click()
    expect(titles(desk)).to_have_text(["Count islands", "Count penguins"])
    save(desk, "Counting")
    expect(views(desk)).to_have_text("View: Counting")
    shot(desk.element, "saved-views")
    expect(titles(other)).to_have_count(3)
    views(other).click()
    other.element.get_by_role("button", name="Counting", exact=True).click()
    expect(titles(other)).to_have_text(["Count islands", "Count penguins"])
    expect(other.element.get_by_role("searchbox", name=re.compile("^Filter tasks"))).to_have_value("count")
    views(other).click()
    other.element.get_by_role("button", name="Rename Counting").click()
    other.element.get_by_role("textbox", name="New name of Counting").fill("Counts")
    other.page.keyboard.press("Enter")
    expect(views(desk)).to_have_text("View: Counts")
    other.element.get_by_role("button", name="Delete Counts").click()
    expect(views(desk)).to_have_text("Views")
    other.element.get_by_role("button", name="Undo", exact=True).click()
    expect(views(desk)).to_have_text("View: Counts")
    desk.element.get_by_role("searchbox", name=re.compile("^Filter tasks")).fill("report")
    expect(views(desk)).to_have_text("Views")
    save(desk, "Counts")
    expect(views(desk)).to_have_text("View: Counts")
    (saved,) = desk.host.call("list_saved_views", area="tasks")["views"]
    assert saved["state"]["text"] == "report"
    desk.page.keyboard.press("Escape")
    expect(views(desk)).to_be_focused()
    expect(views(desk)).to_have_attribute("aria-expanded", "false")


def test_a_cancellation_is_undone_by_keyboard_and_a_refused_undo_gives_a_reason(desk: BareDesk, page: Page) -> None:
    titles(desk).filter(has_text="penguins").click()
    desk.element.get_by_role("button", name=re.compile("^Cancel… task")).click()
    desk.element.get_by_role("button", name="Cancel task 1").click()
    toast = desk.element.get_by_role("group", name="Undo")
    expect(toast).to_contain_text("Task 1: cancelled.")
    expect(desk.element.get_by_role("status").first).to_contain_text("You can undo it for ten seconds.")
    shot(desk.element, "undo")
    desk.element.get_by_role("tab", name="Tasks").focus()
    page.keyboard.press("Control+z")
    expect(toast).to_be_hidden()
    assert desk.host.call("get_task", task_id=1)["status"] == "pending"
    desk.element.get_by_role("spinbutton", name=re.compile("^Priority of task 1")).fill("900")
    desk.element.get_by_role("button", name="Set", exact=True).click()
    expect(toast).to_be_visible()
    desk.host.call("cancel_task", task_id=1)
    toast.get_by_role("button", name="Undo").click()
    expect(toast).to_contain_text("task.cancelled has happened to task:1 since.")
    assert desk.host.call("get_task", task_id=1)["status"] == "cancelled"


def test_agents_that_were_moved_together_are_moved_back_together(desk: BareDesk) -> None:
    project = desk.host.call("create_project", name="Penguins")["id"]
    session = desk.host.call("create_session", project_id=project, name="Field season")["id"]
    for name in ("ada", "bob"):
        admitted(desk.project, name)
    view(desk.element, "Agents")
    desk.element.get_by_role("checkbox", name="Select ada").check()
    desk.element.get_by_role("checkbox", name="Select bob").check()
    desk.element.get_by_role("combobox", name="Session for the selected agents").select_option(session)
    desk.element.get_by_role("button", name="Assign", exact=True).click()
    toast = desk.element.get_by_role("group", name="Undo")
    expect(toast).to_contain_text("2 agents assigned.")
    assert sessions(desk) == {session}
    toast.get_by_role("button", name="Undo").click()
    expect(toast).to_be_hidden()
    assert sessions(desk) == {None}


def sessions(desk: BareDesk) -> set[str | None]:
    """The sessions in which the agents are."""
    return {agent["session_id"] for agent in desk.host.call("list_agents")["agents"]}


def test_a_view_of_the_calls_of_tools_is_saved_and_picked(desk: BareDesk) -> None:
    desk.host.call("call_tool", name="get_personas", arguments={})
    view(desk.element, "Tools")
    desk.element.get_by_role("button", name="Calls", exact=True).click()
    calls = desk.element.locator(".wb-calls tbody").get_by_role("button", name="get_personas")
    expect(calls).to_be_visible()
    state = desk.element.get_by_role("combobox", name="Filter calls by state")
    state.select_option("failed")
    expect(calls).to_be_hidden()
    opener = desk.element.get_by_role("tabpanel", name="Tools").get_by_role("button", name=re.compile("^View"))
    opener.click()
    desk.element.get_by_role("textbox", name=re.compile("^Name under which")).filter(visible=True).fill("Failures")
    desk.element.get_by_role("button", name="Save", exact=True).filter(visible=True).click()
    expect(opener).to_have_text("View: Failures")
    desk.page.keyboard.press("Escape")
    state.select_option("")
    expect(calls).to_be_visible()
    opener.click()
    desk.element.get_by_role("button", name="Failures", exact=True).click()
    expect(state).to_have_value("failed")
    expect(calls).to_be_hidden()


def test_decisions_are_listed_searched_and_live(desk: BareDesk) -> None:
    def decide(name: str, op: str, **how: object) -> None:
        approval_id = desk.host.call("register", name=name, persona_id="implementer")["approval_id"]
        desk.host.call(op, approval_id=approval_id, **how)

    decide("Ada", "approve", choices={"agent_id": "ada"})
    decide("Bob", "reject", reason="Not today.")
    view(desk.element, "Inbox")
    desk.element.get_by_text("Decided", exact=True).click()
    lines = desk.element.get_by_role("list", name="Decided").get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("Bob")
    expect(lines.first).to_contain_text("Not today.")
    expect(lines.last).to_contain_text("as ada, worker, implementer, read and write")
    expect(lines.last).to_contain_text(re.compile(r"Approved by .+ · after \d"))
    decide("Eve", "reject")
    expect(lines).to_have_count(3)
    desk.element.get_by_role("combobox", name="Filter by decision").select_option("rejected")
    expect(lines).to_have_count(2)
    shot(desk.element, "decided")
    desk.element.get_by_role("searchbox", name=re.compile("^Search decisions")).fill("today")
    expect(lines).to_have_count(1)
    desk.element.get_by_role("searchbox", name=re.compile("^Search decisions")).fill("nobody")
    expect(desk.element.get_by_text("No decision matches.")).to_be_visible()
