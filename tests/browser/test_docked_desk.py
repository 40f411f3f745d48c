"""The panel beside the notebook, and panels of one tab, in a real JupyterLab."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.desk_lab import OpenDesk, Project, command, restart_kernel, run, shot, view

DOCK = "desk = Desk(host, tab='Tasks', docked=True)\ndesk"
ALONE = "desk = Desk(host, tab='Agents', alone=True)\ndesk"


def test_the_panel_stands_beside_the_notebook_and_comes_back(open_desk: OpenDesk, project: Project, page: Page) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    open_desk(show=DOCK, mode="lab/tree")
    docked = page.get_by_role("region", name="Workbench desk", exact=True)
    cell = page.get_by_role("region", name="Workbench desk, docked")
    expect(docked).to_have_count(1)
    expect(cell).to_contain_text("The panel is beside the notebook.")
    expect(docked.get_by_role("tab", name="Tasks")).to_have_attribute("aria-selected", "true")
    project.call("register", name="ada", persona_id="planner")
    docked.get_by_role("tab", name="Inbox").press("Enter")
    docked.get_by_role("button", name="Admit").click()
    expect(docked).to_contain_text("Admitted as ada.")
    shot(docked, "docked")
    shot(cell, "docked-cell")
    beside, notebook = docked.bounding_box(), page.locator(".jp-Notebook").bounding_box()
    assert beside is not None
    assert notebook is not None
    assert beside["x"] >= notebook["x"] + notebook["width"] - 1

    page.locator(".lm-TabBar-tab", has_text="Workbench").locator(".lm-TabBar-tabCloseIcon").click()
    expect(docked).to_have_count(0)
    cell.get_by_role("button", name="Put it beside the notebook again").click()
    expect(docked).to_have_count(1)
    expect(docked).to_contain_text("Nothing is waiting for you.")
    cell.get_by_role("button", name="Show it here").click()
    expect(docked).to_have_count(2)


def test_a_cell_that_is_run_again_leaves_one_panel_beside_the_notebook(open_desk: OpenDesk, page: Page) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    open_desk(show=DOCK, mode="lab/tree")
    docked = page.get_by_role("region", name="Workbench desk", exact=True)
    docked.evaluate("element => { element.dataset.before = '' }")
    run(page, 1)
    expect(docked.and_(page.locator(":not([data-before])[data-link='live']"))).to_have_count(1)
    expect(docked).to_have_count(1)

    docked.evaluate("element => { element.dataset.before = '' }")
    restart_kernel(page)
    expect(docked).to_contain_text("run the panel's cell again")
    run(page, 0)
    run(page, 1)
    expect(docked.and_(page.locator(":not([data-before])[data-link='live']"))).to_have_count(1)
    expect(docked).to_have_count(1)


def test_two_outputs_drawn_at_once_leave_one_panel_beside_the_notebook(open_desk: OpenDesk, page: Page) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    open_desk(show="desk = Desk(host, tab='Tasks', docked=True)\ndisplay(desk, desk)", mode="lab/tree")
    outputs = page.locator(".jp-Notebook").get_by_role("region", name="Workbench desk, docked")
    expect(outputs).to_have_count(2)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.reload()
    expect(outputs).to_have_count(2)
    expect(page.locator(".jp-Notebook").get_by_role("region", name="Workbench desk", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Workbench desk", exact=True)).to_have_count(1)
    expect(outputs.first).to_contain_text("The panel is beside the notebook.")
    expect(outputs.last).to_contain_text("The panel is beside the notebook.")


def test_a_panel_of_one_tab_shows_no_other_tabs(open_desk: OpenDesk, project: Project) -> None:
    desk = open_desk(show=ALONE)
    expect(desk.get_by_role("tab")).to_have_count(0)
    expect(desk.locator(".wb-brand")).to_have_text("Workbench")  # the name of the tab is below it
    desk.get_by_role("button", name="Connect an agent").press("Enter")
    expect(desk.get_by_role("heading", name="Connect an agent")).to_be_focused()
    view(desk, "Agents")
    registered = project.call("register", name="ada", persona_id="planner")
    desk.get_by_role("button", name="Show all").focus()
    project.call("register", name="bob", persona_id="planner")
    expect(desk.get_by_role("status").filter(has_text="bob is waiting")).to_be_visible()
    expect(desk.get_by_role("button", name="Show all")).to_be_focused()
    project.operate("approve", approval_id=registered["approval_id"], choices={"agent_id": "ada"})
    expect(desk).to_contain_text("ada")
    shot(desk, "alone")


def test_a_new_view_of_the_panels_output_is_live_too(open_desk: OpenDesk, project: Project, page: Page) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    open_desk(mode="lab/tree")
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1 }")
    command(page, "notebook:create-output-view")
    view = page.locator(".jp-LinkedOutputView .wb-desk")
    expect(view).to_have_attribute("data-link", "live")
    project.call("register", name="ada", persona_id="planner")
    view.get_by_role("button", name="Admit").click()
    expect(view).to_contain_text("Admitted as ada.")
    expect(page.locator(".jp-Notebook .wb-desk")).to_contain_text("Nothing is waiting for you.")
