"""A notebook of the manual, opened in JupyterLab and run from top to bottom, with a person who decides in its panel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk_lab import ROOT, Lab, Project, command, open_notebook, shot, wait_until

pytestmark = pytest.mark.long


def test_the_notebook_on_registration_goes_on_when_its_agent_is_admitted_in_the_panel(
    lab: Lab, project: Project, page: Page
) -> None:
    page.set_viewport_size({"width": 1200, "height": 9000})  # so that no cell is taken out of the page
    open_notebook(page, lab, Path(shutil.copy(ROOT / "notebooks" / "01_registration.ipynb", project.path)))
    command(page, "notebook:run-all-cells", wait=False)
    desk = page.get_by_role("region", name="Workbench desk", exact=True)
    desk.get_by_role("button", name="Admit: Oracle").click(timeout=90_000)
    last = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".jp-InputPrompt")
    wait_until(lambda: last.inner_text().strip("[]: ").isdigit(), "the last cell has ended", 120)
    expect(page.get_by_text("Workbench is stopped.")).to_be_visible()
    expect(page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
    expect(desk.get_by_text("PANEL_CLOSED")).to_be_visible()
    shot(page.locator(".jp-Notebook"), "manual-registration")
