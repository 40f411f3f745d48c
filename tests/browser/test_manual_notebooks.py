"""The quickstart and a notebook of the manual, run in JupyterLab by a person who decides in the panel."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk_lab import ROOT, Lab, Project, command, open_notebook, shot, wait_until

DECISIONS = re.compile("^(Admit|Approve and integrate)")
ASKED = 1 + 3
"""A reviewer to admit; three worktrees to merge."""


def run_all(page: Page, lab: Lab, project: Project, notebook: str) -> None:
    page.set_viewport_size({"width": 1200, "height": 9000})  # so that no cell is taken out of the page
    open_notebook(page, lab, Path(shutil.copy(ROOT / "notebooks" / notebook, project.path)))
    command(page, "notebook:run-all-cells", wait=False)


@pytest.mark.timeout(330)
def test_the_quickstart_runs_from_top_to_bottom_with_a_person_who_decides(
    lab: Lab, project: Project, page: Page
) -> None:
    run_all(page, lab, project, "00_quickstart.ipynb")
    desk = page.get_by_role("region", name="Workbench desk")  # not the questions in the cells that wait
    stopped = page.get_by_text("Workbench is stopped.")
    decided: set[str] = set()

    def decide() -> bool:
        offered = desk.get_by_role("button", name=DECISIONS).evaluate_all("found => found.map(b => b.ariaLabel)")
        for name in set(offered) - decided:
            desk.get_by_role("button", name=name, exact=True).click()
            decided.add(name)
        return stopped.is_visible()

    try:
        wait_until(decide, "the last cell has stopped Workbench", 270)
    except AssertionError as error:
        error.add_note("\n".join(page.locator(".jp-CodeCell").all_inner_texts())[-6_000:])
        raise
    assert len(decided) == ASKED, decided
    expect(page.get_by_text("'completed': 8")).to_be_visible()
    shot(page.locator(".jp-Notebook"), "quickstart")


@pytest.mark.long
def test_the_notebook_on_registration_goes_on_when_its_agent_is_admitted_in_the_panel(
    lab: Lab, project: Project, page: Page
) -> None:
    run_all(page, lab, project, "01_registration.ipynb")
    desk = page.get_by_role("region", name="Workbench desk", exact=True)
    desk.get_by_role("button", name="Admit: Oracle").click(timeout=90_000)
    last = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".jp-InputPrompt")
    wait_until(lambda: last.inner_text().strip("[]: ").isdigit(), "the last cell has ended", 120)
    expect(page.get_by_text("Workbench is stopped.")).to_be_visible()
    expect(page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
    expect(desk.get_by_text("PANEL_CLOSED")).to_be_visible()
    shot(page.locator(".jp-Notebook"), "manual-registration")
