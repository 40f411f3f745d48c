"""The processes of agents in the panel: opened, ended and closed from the keyboard."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_fitting, expect_readable, resize, shot, view, wearing


def test_a_process_is_opened_ended_and_closed_from_the_keyboard(desk: BareDesk) -> None:
    ada, walt = (desk.host.call("spawn_agent", persona_id="tester", name=name)["agent_id"] for name in ("ada", "walt"))
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name=re.compile("^Processes")).press("Enter")
    press, table = desk.page.keyboard.press, desk.element.get_by_role("table", name="Processes")
    first, second = (table.get_by_role("button", name=name, exact=True) for name in (ada, walt))
    for key, direction in (("Enter", "ascending"), ("Enter", "descending")):
        table.get_by_role("button", name="Agent", exact=True).press(key)
        expect(table.get_by_role("columnheader").first).to_have_attribute("aria-sort", direction)
    expect(table.get_by_role("row").nth(1)).to_contain_text(walt)
    second.press("ArrowDown")
    expect(first).to_be_focused()
    press("Enter")
    pane = desk.element.get_by_role("region", name=ada)
    expect(pane.get_by_role("heading", name=ada)).to_be_focused()
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(first).to_have_attribute("data-lm-suppress-shortcuts", "true")
    terminate = pane.get_by_role("button", name=f"Terminate… {ada}")
    terminate.press("Enter")
    reason = pane.get_by_role("textbox", name="Reason")
    expect(reason).to_be_focused()
    press("Escape")
    expect(reason).to_be_hidden()
    expect(terminate).to_be_focused()
    press("Enter")
    desk.page.keyboard.insert_text("Enough\u202e.")
    press("Enter")
    expect(pane).to_contain_text("Enough\\u202e.")  # made harmless
    expect(pane.get_by_role("heading", name=ada)).to_be_focused()
    expect(terminate).to_be_hidden()
    press("Escape")
    expect(pane).to_be_hidden()
    expect(first).to_be_focused()


def test_the_panel_says_what_confines_commands_on_this_machine(desk: BareDesk) -> None:
    support = desk.host.call("get_confinement")
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name=re.compile("^Processes")).press("Enter")
    walls = desk.element.locator(".wb-walls")
    walls.locator("summary").press("Enter")
    expect(walls).to_contain_text(support["summary"])
    for sentence in (*support["enforced"], *support["missing"]):
        expect(walls).to_contain_text(sentence)
    for width in (1280, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        expect_readable(desk.page)
        shot(desk.element, f"walls-{width}")
        with wearing(desk.page, "dark"):
            expect_readable(desk.page)
            shot(desk.element, f"walls-{width}-dark")


def test_the_agents_tab_says_who_holds_what_is_scarce_and_which_task_waits_for_it(desk: BareDesk) -> None:
    machine = desk.project.operate("add_machine", name="lab-gpu")["token"]
    enlisted = desk.project.call("enlist_elsewhere", machine, key="k" * 43, persona_id="implementer", name="far")
    far = enlisted["agent_id"]
    view(desk.element, "Agents")
    table = desk.element.get_by_role("table", name="Scarce things")
    expect(table).to_be_hidden()
    task = desk.host.call("create_task", title="Solve", persona_id="tester", needs={"license": "matlab"})
    row = table.get_by_role("row", name="license:matlab")
    expect(row).to_contain_text(f"0–task {task['id']}there is none, and tasks need it")
    says = desk.element.get_by_text(f"Task {task['id']} waits for the licence matlab (0 there).")
    expect(says).to_be_visible()
    waiting = row.get_by_role("cell", name=f"task {task['id']}", exact=True)
    assert waiting.evaluate("e => e.scrollWidth <= e.clientWidth"), "the task that waits is not cut off"
    expect(desk.element.get_by_role("cell", name=f"{far} on lab-gpu", exact=True)).to_be_visible()
    for width in (1280, 420, 360):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        expect_readable(desk.page)
        shot(desk.element, f"agents-{width}")
    desk.host.call("cancel_task", task_id=task["id"])
    expect(table).to_be_hidden()
