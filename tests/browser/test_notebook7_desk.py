"""The panel in a real Jupyter Notebook 7."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import sound_page
from tests.browser.desk_lab import Lab, Project, command, output, run, shot, started_lab, view
from tests.browser.test_notifications_desk import digest_after, toasts

pytest.importorskip("notebook")

DOCKED = "beside = Desk(host, tab='Tasks', docked=True)\nbeside"
SHORTCUTS = "Cannot read properties of undefined (reading 'schema')"
"""Notebook itself throws it, in any notebook, when another plugin has loaded before its keyboard shortcuts have."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with started_lab(tmp_path_factory.mktemp("notebook7"), "notebook") as lab:
        yield lab


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    with sound_page(context, {SHORTCUTS}) as page:
        yield page


def test_the_panel_works_in_place_where_it_cannot_be_docked(
    open_desk: Callable[..., Locator], project: Project, page: Page
) -> None:
    digest_after(project, 0)
    desk = open_desk(DOCKED, mode="notebooks")
    project.call("register", name="ada", persona_id="planner")
    expect(toasts(page)).to_contain_text("Workbench: Question 1 waits for you: registration of ada.")
    desk.get_by_role("button", name=re.compile("^Admit")).click()
    expect(desk).to_contain_text("Admitted as ada.")
    project.operate("create_task", title="Count penguins", persona_id="planner")
    view(desk, "Tasks")
    expect(desk.get_by_role("row").filter(has_text="Count penguins")).to_be_visible()
    shot(page.locator(".jp-NotebookPanel"), "notebook7")

    run(page, 2)
    docked = output(page, 2)
    expect(docked.get_by_role("tab", name="Tasks")).to_have_attribute("aria-selected", "true")
    expect(docked.get_by_role("row").filter(has_text="Count penguins")).to_be_visible()
    shot(docked, "notebook7-docked")
    command(page, "docmanager:save")
    page.reload()
    expect(page.locator(".wb-desk[data-link='live']").first).to_contain_text("Workbench")
    expect(docked.get_by_text("This page cannot put the panel beside the notebook.")).to_be_visible()
    assert "Count penguins" in (project.path / "desk.ipynb").read_text()
