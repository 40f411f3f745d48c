"""A cell that waits for decisions, in a real JupyterLab: its buttons, and the kernel's status meanwhile."""

from __future__ import annotations

import getpass

from playwright.sync_api import Page, expect

from tests.browser.desk_lab import OpenDesk, Project, output, run, shot

SESSION = """
%load_ext workbench
%workbench start --port 0
"""
WAIT = "decided = await wb.decided(*asked); [a['status'] for a in decided]"
ASK = 'asked = [wb.call("register", name=name, persona_id="tester")["approval_id"] for name in ("ada", "bert")]'


def test_a_cell_that_waits_shows_what_for_and_is_decided_there(
    open_desk: OpenDesk, page: Page, project: Project
) -> None:
    open_desk(WAIT, before=f"host.stop(){SESSION}{ASK}\nhost = wb.host")
    run(page, 2)
    mine = output(page, 2)
    expect(mine.get_by_role("heading", name="This cell waits for your decision")).to_be_visible()
    status = page.locator(".jp-Notebook-ExecutionIndicator").first
    expect(status).to_have_attribute("data-status", "busy")
    shot(mine, "waiting-cell")
    mine.get_by_role("listitem", name="ada", exact=True).get_by_role("button", name="Admit").click()
    expect(mine.get_by_role("listitem", name="ada", exact=True)).to_contain_text("Admitted as ada.")
    expect(output(page, 1).get_by_role("listitem", name="ada", exact=True)).to_be_hidden()
    expect(status).to_have_attribute("data-status", "busy")  # the click was answered, and the cell still runs
    mine.get_by_role("button", name="Reject… bert").click()
    mine.get_by_label("Reason for rejecting bert").fill("Not today")
    mine.get_by_label("Reason for rejecting bert").press("Enter")
    expect(mine).to_contain_text(f"Rejected by {getpass.getuser()}: the registration of bert: Not today")
    expect(mine).to_contain_text("['approved', 'rejected']")
    expect(mine.get_by_role("heading", name="This cell waits for your decision")).to_be_hidden()
    expect(status).to_have_attribute("data-status", "idle")
    shot(mine, "waiting-cell-decided")
