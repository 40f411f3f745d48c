"""The desk, driven as a person would: mouse, keyboard, eyes; in a real JupyterLab wherever that has a part in it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import (
    OpenDesk,
    Project,
    card,
    command,
    expect_fitting,
    resize,
    restart_kernel,
    run,
    shot,
    view,
)
from tests.browser.scenes import admitted, busy, proposal, repository
from workbench.trust.withheld import trust, withheld

TWO = """\
plan: two
tasks:
- {name: a, title: First, persona: tester}
- {name: b, title: Second, persona: tester, after: [a]}
"""


@pytest.fixture
def desk(open_bare: OpenDesk) -> Locator:
    return open_bare()


def row(desk: Locator, title: str) -> Locator:
    return desk.get_by_role("row").filter(has_text=title)


def test_a_registering_agent_appears_and_is_admitted_or_rejected_with_a_reason(desk: Locator, project: Project) -> None:
    expect(desk.get_by_text("Nothing is waiting for you.")).to_be_visible()
    registered = project.call("register", name="ada", persona_id="planner")
    waiting = project.ask("registration_status", registered["token"], wait_seconds=25)

    expect(card(desk, "ada")).to_contain_text("registration")
    expect(card(desk, "ada")).to_contain_text("as ada · planner · read and write")
    card(desk, "ada").get_by_role("button", name="Admit").click()

    assert waiting.result(20)["status"] == "assigned"
    assert project.call("whoami", registered["token"])["level"] == "planner"
    expect(card(desk, "ada")).to_contain_text("Admitted as ada.")
    desk.get_by_role("tab", name="Tasks").hover()  # the card stays as long as the pointer is on it
    expect(desk.get_by_text("Nothing is waiting for you.")).to_be_visible(timeout=10_000)

    registered = project.call("register", name="mallory")
    waiting = project.ask("registration_status", registered["token"], wait_seconds=25)
    card(desk, "mallory").get_by_role("button", name="Reject… mallory").click()
    card(desk, "mallory").get_by_label("Reason").fill("Nobody asked for you.")
    shot(desk, "reject")
    card(desk, "mallory").get_by_role("button", name="Reject", exact=True).click()
    state = waiting.result(20)
    assert (state["status"], state["reason"]) == ("rejected", "Nobody asked for you.")
    expect(card(desk, "mallory")).to_contain_text("Rejected.")


BUSY = ("import time; time.sleep(60)", "while True: pass", "desk.tooltip = 'busy'\nimport time; time.sleep(60)")
"""Cells that sleep, compute, and sleep after they wrote to the panel."""


def test_a_person_decides_while_a_cell_runs(open_desk: OpenDesk, project: Project, page: Page) -> None:
    desk = open_desk(*BUSY)
    for cell in range(2, 5):
        early, late = f"early-{cell}", f"late-{cell}"
        first = project.call("register", name=early, persona_id="tester")
        expect(card(desk, early)).to_be_visible()
        run(page, cell)
        running = page.locator(".jp-Notebook .jp-CodeCell").nth(cell).locator(".jp-InputPrompt", has_text="[*]")
        expect(running).to_be_visible()
        card(desk, early).get_by_role("button", name="Admit").click()
        expect(card(desk, early)).to_contain_text(f"Admitted as {early}.")
        assert project.call("registration_status", first["token"])["status"] == "assigned"

        second = project.call("register", name=late, persona_id="tester")
        waiting = project.ask("registration_status", second["token"], wait_seconds=25)
        card(desk, late).get_by_role("button", name="Admit").click()
        assert waiting.result(20)["status"] == "assigned"
        expect(running).to_be_visible()
        command(page, "notebook:interrupt-kernel", wait=False)
        expect(running).to_be_hidden()


def test_a_plan_appears_as_a_tree_with_live_progress(desk: Locator, project: Project) -> None:
    view(desk, "Tasks")
    expect(desk.get_by_text("No tasks yet")).to_be_visible()
    tasks = project.operate("create_plan", text=TWO)["tasks"]
    expect(row(desk, "First")).to_contain_text("Pending")
    expect(row(desk, "Second")).to_contain_text(f"Blockedwaits for #{tasks['a']}")
    expect(desk.get_by_text("0 of 2 completed")).to_be_visible()

    token = admitted(project, "tess", "tester")
    project.call("claim_task", token, task_id=tasks["a"])
    expect(row(desk, "First")).to_contain_text("Claimed")
    expect(row(desk, "First")).to_contain_text("tess")
    project.call("report_task_progress", token, task_id=tasks["a"], percent_complete=40)
    expect(row(desk, "First")).to_contain_text("In progress")
    expect(row(desk, "First")).to_contain_text("40 %")
    project.call("complete_task", token, task_id=tasks["a"])
    expect(row(desk, "First")).to_contain_text("Completed")
    expect(row(desk, "Second")).to_contain_text("Pending")
    expect(desk.get_by_text("1 of 2 completed · 50 %")).to_be_visible()

    project.operate("create_task", title="Below", persona_id="tester", parent_task_id=tasks["b"])
    expect(row(desk, "Below")).to_have_attribute("aria-level", "2")
    expect(row(desk, "Second")).to_have_attribute("aria-expanded", "true")


def test_a_predicted_conflict_is_named_and_its_merge_is_refused_in_place(open_bare: OpenDesk, project: Project) -> None:
    repository(project.path)
    desk = open_bare()
    proposal(project, "robust", clash=True)
    mine = card(desk, "robust")
    expect(mine).to_contain_text("Conflicts with main in model.py. Integrating would be refused;")
    mine.get_by_role("button", name="Details…").click()
    shot(desk, "conflict")
    mine.get_by_role("button", name="Approve and integrate").click()
    again = mine.filter(has_text="It was approved and sent back: The worktree robust and main ")
    expect(again).to_contain_text("Integrating would be refused;")  # the question is asked again, and says why
    expect(mine.filter(has_not_text="It was approved and sent back")).to_contain_text(
        "Sent back: The worktree robust and main "
    )
    shot(desk, "refused")
    desk.get_by_role("tab", name="Tasks").hover()
    expect(mine).to_have_count(1)
    expect(again.get_by_role("button", name="Approve and integrate")).to_be_visible()
    assert "other" in (project.path / "model.py").read_text()


def test_an_error_is_shown_at_its_field_and_a_foreign_decision_keeps_the_form_open(
    desk: Locator, project: Project
) -> None:
    admitted(project, "ada")
    project.call("register", name="second")
    mine = card(desk, "second")
    mine.get_by_role("button", name="Details…").click()
    mine.get_by_label("Agent id").fill("ada")
    mine.get_by_label("Agent id").press("Enter")
    expect(mine).to_contain_text("AGENT_ID_TAKEN")
    expect(mine.get_by_label("Agent id")).to_be_focused()
    expect(mine.get_by_label("Agent id")).to_have_attribute("aria-invalid", "true")
    shot(desk, "error")
    mine.get_by_label("Agent id").fill("free")
    mine.get_by_role("button", name="Admit").click()
    expect(mine).to_contain_text("Admitted as free.")

    registered = project.call("register", name="eve")
    card(desk, "eve").get_by_role("button", name="Details…").click()
    project.operate("approve", approval_id=registered["approval_id"])
    expect(card(desk, "eve")).to_contain_text("It was decided elsewhere.")


def test_everything_can_be_done_with_the_keyboard(open_desk: OpenDesk, project: Project, page: Page) -> None:
    desk = open_desk()
    project.operate("create_task", title="Parent", persona_id="tester")
    project.operate("create_task", title="Child", persona_id="tester", parent_task_id=1)
    project.call("register", name="ada", persona_id="tester")
    project.call("register", name="bert", persona_id="tester")
    expect(card(desk, "bert")).to_be_visible()
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    card(desk, "ada").focus()
    page.keyboard.press("Tab")
    expect(desk.get_by_role("checkbox", name="Select ada")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card(desk, "ada").get_by_role("button", name="Admit")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(desk, "ada")).to_contain_text("Admitted as ada.")
    page.keyboard.press("Enter")  # the second press of an impatient person does nothing
    expect(card(desk, "ada")).to_be_hidden()
    expect(card(desk, "bert")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(card(desk, "bert").get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card(desk, "bert").get_by_label("Reason")).to_be_hidden()

    grid = desk.get_by_role("treegrid")
    view(desk, "Tasks")
    grid.focus()
    expect(row(desk, "Parent")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowLeft")
    expect(row(desk, "Child")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(row(desk, "Child")).to_have_attribute("aria-selected", "true")
    shot(desk, "keyboard")
    page.keyboard.type("bdda")  # JupyterLab's command mode would insert and delete cells
    view(desk, "Inbox")
    for focused in (card(desk, "bert").get_by_role("button", name="Admit"), card(desk, "bert")):
        focused.focus()
        page.keyboard.type("bdda")
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(cells)
    assert [a["name"] for a in project.operate("list_agents", status="pending")["agents"]] == ["bert"]


def test_tasks_are_found_by_text_and_by_state(desk: Locator, project: Project) -> None:
    view(desk, "Tasks")
    busy(project)
    desk.get_by_role("button", name=re.compile("^Blocked")).click()
    expect(row(desk, "Review the models")).to_be_visible()
    expect(row(desk, "Convert units")).to_be_hidden()
    desk.get_by_role("button", name=re.compile("^All")).click()
    desk.get_by_role("searchbox", name="Filter tasks").fill("convert")
    expect(row(desk, "Convert units")).to_be_visible()
    expect(row(desk, "Clean the raw measurements")).to_be_visible()  # what leads to it
    desk.get_by_role("searchbox", name="Filter tasks").fill("nothing like it")
    expect(desk.get_by_text("No task matches the filters.")).to_be_visible()
    desk.get_by_role("button", name="Show all").click()
    expect(row(desk, "Review the models")).to_be_visible()


def test_a_filter_stays_under_the_pointer_while_tasks_change(desk: Locator, project: Project, page: Page) -> None:
    view(desk, "Tasks")
    project.operate("create_task", title="Free", persona_id="implementer")
    first = project.operate("create_task", title="First", persona_id="implementer")["id"]
    project.operate("create_task", title="Second", persona_id="implementer", dependencies=[first])
    blocked = desk.get_by_role("button", name=re.compile("^Blocked"))
    blocked.hover()
    page.mouse.down()
    project.call("claim_task", admitted(project, "ada"), task_id=first)
    expect(row(desk, "First")).to_contain_text("ada")
    page.mouse.up()
    expect(blocked).to_have_attribute("aria-pressed", "true")
    expect(row(desk, "Second")).to_be_visible()
    expect(row(desk, "Free")).to_be_hidden()
    claimed = desk.get_by_role("button", name=re.compile("^Claimed"))
    expect(claimed).to_be_hidden()
    row(desk, "Second").hover()
    expect(claimed).to_be_visible()


def test_a_narrow_panel_fits_into_its_width(open_bare: OpenDesk, project: Project) -> None:
    repository(project.path)
    desk = open_bare()
    busy(project)
    proposal(project, "robust")
    expect(desk.get_by_text("2 of 10 completed")).to_be_visible()
    resize(desk, 480)
    desk.scroll_into_view_if_needed()
    shot(desk, "narrow")
    expect_fitting(desk)
    expect(card(desk, "Hugo").get_by_role("button", name="Admit")).to_be_visible()
    view(desk, "Tasks")
    row(desk, "Review the models").click()
    desk.scroll_into_view_if_needed()
    expect(row(desk, "Review the models").get_by_text("Blocked")).to_be_visible()
    shot(desk, "tasks-narrow")
    expect_fitting(desk)


def test_a_panel_with_ten_thousand_tasks_draws_few_elements_and_stays_live(
    desk: Locator, project: Project, page: Page
) -> None:
    lines = (f"- {{name: t{n}, title: Task {n}, persona: tester}}\n" for n in range(10_000))
    tasks = project.operate("create_plan", text=f"plan: many\ntasks:\n{''.join(lines)}")["tasks"]
    view(desk, "Tasks")
    expect(desk.get_by_text("0 of 10,000 completed").last).to_be_visible(timeout=30_000)
    grid = desk.get_by_role("treegrid")
    expect(grid.get_by_role("row", name="Task 0")).to_be_visible()
    assert grid.locator(".wb-row").count() <= 36
    grid.focus()
    page.keyboard.press("End")
    last = grid.get_by_role("row", name="Task 9999")
    expect(last).to_have_attribute("aria-rowindex", "10001")
    expect(last).to_be_in_viewport()
    token = admitted(project, "tess", "tester")
    project.call("claim_task", token, task_id=max(tasks.values()))
    expect(last).to_contain_text("Claimed")
    shot(desk, "ten-thousand")


def test_text_of_agents_is_shown_as_inert_text(open_bare: OpenDesk, project: Project, page: Page) -> None:
    evil = "<img src=x onerror=\"alert('name')\"><script>alert(1)</script>"
    desk = open_bare()
    project.call("register", name=evil, capabilities={evil: evil})
    project.operate("create_task", title=evil, persona_id="tester")
    mine = card(desk, evil)
    mine.get_by_role("button", name=re.compile("^Details")).click()
    expect(mine.locator("code.wb-wrap")).to_have_text(evil)
    shot(desk, "hostile")
    view(desk, "Tasks")
    expect(row(desk, "onerror").locator(".wb-title")).to_have_text(evil)
    row(desk, "onerror").click()
    expect(desk.locator(".wb-pane:visible .wb-pane-title")).to_have_text(evil)
    expect(desk.locator("script, img, iframe")).to_have_count(0)


def test_a_restarted_kernel_is_reported_and_its_rerun_cells_show_what_waited(
    open_desk: OpenDesk, project: Project, page: Page
) -> None:
    desk = open_desk()
    project.call("register", name="ada")
    expect(card(desk, "ada")).to_be_visible()
    restart_kernel(page)
    expect(desk.get_by_text("Start Workbench again, then run the panel's cell again.")).to_be_visible(timeout=30_000)
    expect(card(desk, "ada").get_by_role("button", name="Admit")).to_have_attribute("aria-disabled", "true")
    shot(desk, "restarted")
    run(page, 0)
    run(page, 1)
    expect(desk).to_have_attribute("data-link", "live")
    card(desk, "ada").get_by_role("button", name="Admit").click()
    expect(card(desk, "ada")).to_contain_text("Admitted as ada.")


def test_a_stopped_workbench_is_reported_in_place_and_found_again(
    open_desk: OpenDesk, project: Project, page: Page
) -> None:
    desk = open_desk("host.stop()", "info = host.start(0)")
    run(page, 2)
    expect(desk.get_by_text("NOT_STARTED")).to_be_visible()
    shot(desk, "stopped")
    run(page, 3)
    expect(page.locator(".jp-Notebook .jp-CodeCell").nth(3).locator(".jp-InputPrompt")).to_have_text("[4]:")
    desk.get_by_role("button", name="Reconnect").click()
    expect(desk).to_have_attribute("data-link", "live")
    project.call("register", name="ada")
    expect(card(desk, "ada")).to_be_visible()


def test_the_panel_names_untrusted_files_until_they_are_trusted(
    brisk: None, open_bare: OpenDesk, project: Project
) -> None:
    state = project.path / ".aiswarm"
    (state / "profiles").mkdir()
    (state / "profiles" / "claude.yaml").write_text("summary: <b>x</b>\ncommand: [sh]\n")
    (state / "settings.toml").write_text('confinement = "off"\nintegration_gates = ["true"]\n')
    note = open_bare().get_by_role("note")
    expect(note).to_have_text(
        "Not used, because you have not trusted it: .aiswarm/settings.toml (confinement, integration_gates), "
        ".aiswarm/profiles/claude.yaml. workbench trust shows it."
    )
    trust(project.path, withheld(project.path))
    expect(note).to_be_hidden()


def test_the_panel_offers_to_restart_ended_agents_while_open_tasks_have_none(desk: Locator, project: Project) -> None:
    spawned = project.operate("spawn_agent", persona_id="implementer", name="walt")
    project.operate("terminate_agent", agent_id=spawned["agent_id"])
    project.operate("create_task", title="Count", persona_id="implementer", run="true")
    notice = desk.get_by_role("status").filter(has_text="There is no agent to do 1 open task. Restart walt.")
    expect(notice).to_be_visible()
    shot(desk, "unattended")
    notice.get_by_role("button", name="Restart it").click()
    expect(notice).to_be_hidden()
    project.operate("terminate_agent", agent_id=spawned["agent_id"])
