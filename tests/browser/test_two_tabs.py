"""Two tabs of a browser on one project: of one notebook, of two notebooks, and of two people who decide at once."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.bare_desk import LASTING_UNDO, BareDesk
from tests.browser.conftest import sound_page
from tests.browser.desk_lab import Lab, OpenDesk, Project, card, command, open_notebook, shot, show_desk, view

LONG_UNDO = "undo.UNDO_SECONDS = 3600\n"


def search(desk: Locator) -> Locator:
    return desk.get_by_role("searchbox", name=re.compile("^Filter tasks"))


def titles(desk: Locator) -> Locator:
    """The titles of the tasks that are shown."""
    return desk.locator(".wb-row:not([hidden]) .wb-title")


def test_an_action_in_one_tab_is_seen_in_the_others(
    lab: Lab, project: Project, open_desk: OpenDesk, page: Page, second_page: Page, context: BrowserContext
) -> None:
    page.add_init_script(LASTING_UNDO)
    first = open_desk(before=LONG_UNDO)
    command(page, "docmanager:save")
    second_page.add_init_script(LASTING_UNDO)
    open_notebook(second_page, lab, project.path / "desk.ipynb")
    second = second_page.locator(".wb-desk")
    second.and_(second_page.locator("[data-link='live']")).wait_for()
    with sound_page(context) as third_page:
        third_page.add_init_script(LASTING_UNDO)
        third = show_desk(third_page, lab, project, before=LONG_UNDO + "assert host.attached\n", name="other.ipynb")
        see_in_others(project, first, {"same-notebook": second, "other-notebook": third})


def see_in_others(project: Project, first: Locator, others: dict[str, Locator]) -> None:
    """Decide in the first tab, then cancel a task and undo it in each of the others."""
    for name in ("ada", "bob"):
        project.call("register", name=name, persona_id="implementer")
    for title in ("Count penguins", "Write the report"):
        project.operate("create_task", title=title, persona_id="implementer")

    for desk in others.values():
        card(desk, "bob").get_by_role("button", name="Details…").click()
    card(first, "ada").get_by_role("button", name="Admit").click()
    expect(card(first, "ada")).to_contain_text("Admitted as ada.")
    for desk in others.values():
        expect(card(desk, "ada")).to_be_hidden()
    card(first, "bob").get_by_role("button", name="Admit").click()
    for name, desk in others.items():
        expect(card(desk, "bob")).to_contain_text("It was decided elsewhere.")
        expect(card(desk, "bob").get_by_role("button", name="Admit")).to_be_hidden()
        shot(desk, f"two-tabs-{name}")
    assert {agent["agent_id"] for agent in project.operate("list_agents")["agents"]} == {"ada", "bob"}

    view(first, "Tasks")
    search(first).fill("penguins")
    row = first.get_by_role("row").filter(has_text="Count penguins")
    for desk in others.values():
        view(desk, "Tasks")
        expect(titles(desk)).to_have_text(["Count penguins", "Write the report"])
        titles(desk).first.click()
        desk.get_by_role("button", name=re.compile("^Cancel… task")).click()
        desk.get_by_role("button", name="Cancel task 1").click()
        expect(row).to_contain_text("Cancelled")
        expect(first.get_by_role("group", name="Undo")).to_be_hidden()
        desk.get_by_role("group", name="Undo").get_by_role("button", name="Undo").click()
        expect(row).to_contain_text("Pending")
        expect(titles(first)).to_have_text(["Count penguins"])
        expect(search(desk)).to_have_value("")


def test_the_second_of_two_concurrent_decisions_changes_nothing(
    open_bare_desk: Callable[..., BareDesk], second_page: Page
) -> None:
    first = open_bare_desk()
    second = BareDesk(first.host, second_page)
    for desk in (first, second):
        view(desk.element, "Inbox")
    for name in ("ada", "bob"):
        first.host.call("register", name=name, persona_id="implementer")
        expect(card(second.element, name)).to_be_visible()
    second.hold_rows()
    card(first.element, "ada").get_by_role("button", name="Admit").click()
    card(first.element, "bob").get_by_role("button", name="Reject… bob").click()
    card(first.element, "bob").get_by_role("button", name="Reject", exact=True).click()
    expect(card(first.element, "bob")).to_contain_text("Rejected.")
    for name in ("ada", "bob"):
        card(second.element, name).get_by_role("button", name="Admit").click()
        expect(card(second.element, name)).to_contain_text("It was decided elsewhere; nothing was changed.")
    shot(second.element, "two-people")
    events = first.host.call("list_events", after=0, limit=1_000)["events"]
    decisions = [event["kind"] for event in events if event["kind"] in ("approval.approved", "approval.rejected")]
    assert decisions == ["approval.approved", "approval.rejected"]
    second.close()
