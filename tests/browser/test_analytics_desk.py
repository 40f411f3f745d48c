"""The Analytics tab: live charts, read only while they are visible."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import view
from tests.browser.scenes import admitted


def _asked(desk: BareDesk) -> int:
    return sum(message.get("op") == "get_activity" for message in desk.asked)


def test_charts_follow_the_work_and_open_what_they_show(desk: BareDesk) -> None:
    view(desk.element, "Analytics")
    stream = desk.element.get_by_role("figure", name="Task stream")
    expect(stream).to_contain_text("No task was worked on within the last hour.")
    expect(desk.element.get_by_role("figure", name="Approvals")).to_contain_text("within the last hour; none waits.")
    token = admitted(desk.project, "ada")
    task = desk.host.call("create_task", title="Sew it up", persona_id="implementer")["id"]
    desk.project.call("claim_task", token)
    bar = stream.get_by_role("button", name=f"{task} Sew it up, attempt 1 by ada: under way")
    expect(bar).to_be_visible()
    expect(desk.element.get_by_role("figure", name="Queue")).to_contain_text("1 task is worked on and 0 wait.")
    desk.project.call("complete_task", token, task_id=task)
    expect(desk.element.get_by_role("figure", name="Throughput")).to_contain_text("1 task was completed")
    stream.get_by_role("button", name="Task stream as a table").click()
    expect(stream.get_by_role("row", name="ada")).to_contain_text("completed")
    stream.get_by_role("button", name=f"{task} Sew it up").press("Enter")
    expect(desk.element.get_by_role("heading", name="Sew it up")).to_be_visible()
    view(desk.element, "Analytics")
    utilisation = desk.element.get_by_role("figure", name="Utilisation")
    expect(utilisation.get_by_title(re.compile("^1 attempt, "))).to_be_visible()
    utilisation.get_by_role("button", name="ada").click()
    expect(desk.element.get_by_role("button", name="ada", exact=True)).to_have_attribute("aria-expanded", "true")


def test_focus_and_selection_stay_when_charts_are_reloaded(desk: BareDesk) -> None:
    token = admitted(desk.project, "ada")
    desk.host.call("create_task", title="Sew", persona_id="implementer")
    desk.project.call("claim_task", token)
    view(desk.element, "Analytics")
    stream = desk.element.get_by_role("figure", name="Task stream")
    stream.get_by_role("button", name="Task stream as a table").click()
    utilisation, approvals = (desk.element.get_by_role("figure", name=name) for name in ("Utilisation", "Approvals"))
    kept = [
        stream.get_by_role("button", name="Sew, attempt 1 by ada: under way"),
        stream.get_by_role("row", name="ada"),
        utilisation.get_by_role("button", name="ada"),
    ]
    for part in kept:
        part.evaluate("part => part.kept = true")
    kept[0].focus()
    desk.host.call("register", name="grace", persona_id="implementer")
    expect(approvals.get_by_role("button", name="grace")).to_be_visible()
    assert [part.evaluate("part => part.kept === true") for part in kept] == [True] * 3
    expect(kept[0]).to_be_focused()
    expect(stream).to_contain_text(kept[0].get_attribute("aria-label") or "-")


def test_waiting_approvals_have_the_names_of_the_inbox_in_charts(desk: BareDesk) -> None:
    admitted(desk.project, "ada")
    desk.host.call("register", name="grace", persona_id="implementer")
    view(desk.element, "Analytics")
    approvals = desk.element.get_by_role("figure", name="Approvals")
    expect(approvals.get_by_role("button")).to_have_text(["grace · registration", "registration 1"])
    approvals.get_by_role("button", name="grace").click()
    expect(desk.element.get_by_role("listitem", name="grace", exact=True)).to_be_visible()


def test_arrow_keys_move_between_the_bars_of_a_chart(desk: BareDesk) -> None:
    token = admitted(desk.project, "ada")
    for title in ("First", "Second"):
        desk.host.call("create_task", title=title, persona_id="implementer")
        task = desk.project.call("claim_task", token)["task"]["id"]
        desk.project.call("complete_task", token, task_id=task)
    view(desk.element, "Analytics")
    stream = desk.element.get_by_role("figure", name="Task stream")
    first, second = (stream.get_by_role("button", name=f" {title}, attempt 1") for title in ("First", "Second"))
    first.focus()
    first.press("ArrowRight")
    expect(second).to_be_focused()
    expect(stream).to_contain_text("Second, attempt 1 by ada: completed")
    second.press("Home")
    expect(first).to_be_focused()


def test_a_hidden_analytics_tab_reads_nothing_and_a_failed_read_recovers(desk: BareDesk) -> None:
    desk.host.call("create_task", title="T", persona_id="implementer")
    view(desk.element, "Tasks")
    expect(desk.element.get_by_role("treegrid")).to_contain_text("T")
    assert _asked(desk) == 0
    desk.fail("get_activity")
    view(desk.element, "Analytics")
    expect(desk.element.get_by_text("STORE_BUSY")).to_be_visible()
    desk.restore()
    expect(desk.element.get_by_role("figure", name="Queue")).to_contain_text("1 waits")
    expect(desk.element.get_by_text("STORE_BUSY")).to_be_hidden()
    assert _asked(desk) > 0
