"""The panel in a notebook that is saved and opened again without the kernel."""

from __future__ import annotations

from typing import Any

import nbformat
from nbconvert import HTMLExporter
from playwright.sync_api import Page, expect
from traitlets.config import Config

from tests.browser.desk_lab import Lab, OpenDesk, Project, card, command, run, shot, wait_until


def saved_html(project: Project, page: Page) -> str:
    """The HTML of the panel's output in the saved notebook."""
    command(page, "docmanager:save")
    notebook: Any = nbformat.read(project.path / "desk.ipynb", as_version=4)
    return "".join(str(output.data.get("text/html", "")) for output in notebook.cells[1].outputs)


def test_the_last_state_is_saved_and_shown_when_the_kernel_has_ended(
    open_desk: OpenDesk, project: Project, page: Page, lab: Lab
) -> None:
    open_desk()
    project.call("register", name="ada", persona_id="tester")
    wait_until(lambda: "ada" in saved_html(project, page), "the state is saved")
    assert "Workbench, as it was on " in saved_html(project, page)
    assert "as ada" in _converted(project)

    page.reload()
    desk = page.locator(".wb-desk")
    expect(desk).to_have_attribute("data-link", "live")  # its kernel runs: it is live again
    expect(card(desk, "ada")).to_be_visible()
    lab.end_kernels()
    page.goto(f"{lab.url}doc/tree/{project.path.name}/desk.ipynb?reset")
    shown = page.locator(".jp-OutputArea-output").filter(has_text="Workbench, as it was on ")
    expect(shown.get_by_role("cell", name="ada", exact=True)).to_be_visible()
    shot(shown, "saved-without-kernel")


def test_the_last_state_stays_in_the_panel_after_a_stop_and_is_saved(
    open_desk: OpenDesk, project: Project, page: Page
) -> None:
    desk = open_desk("desk.close(); host.stop()")
    project.call("register", name="bert", persona_id="tester")
    expect(card(desk, "bert")).to_be_visible()
    run(page, 2)
    expect(desk.get_by_text("PANEL_CLOSED")).to_be_visible()
    expect(desk.get_by_role("button", name="Reconnect")).to_be_hidden()
    expect(card(desk, "bert").get_by_role("button", name="Admit")).to_have_attribute("aria-disabled", "true")
    wait_until(lambda: "bert" in saved_html(project, page), "the state at the end is saved")


def _converted(project: Project) -> str:
    """The saved notebook as HTML, converted as `docs/notebook.md` says."""
    exporter = HTMLExporter(config=Config(ClearMetadataPreprocessor={"enabled": True}))
    html, _ = exporter.from_filename(str(project.path / "desk.ipynb"))
    return str(html)
