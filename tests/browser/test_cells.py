"""Outputs of cells in JupyterLab, in both themes: tables, results, errors, the graph and the Gantt chart."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import Lab, Project, command, in_theme, open_notebook, output, shot, write_notebook

START = '%load_ext workbench\n%workbench start --project "." --port 0'
WORK = """\
made = wb.call("register", name="ada", persona_id="implementer")
wb.call("approve", approval_id=made["approval_id"], choices={"agent_id": "ada"})
ada = wb.as_agent(made["token"])
ids = []
for title in ("Collect", "Read", "Sort", "Write", "Print"):
    ids.append(wb.call("create_task", title=title, persona_id="implementer", dependencies=ids[-1:] + ids[-3:-1])["id"])
for end in ("complete_task", "complete_task", "fail_task"):
    more = {"error_message": "no"} if end == "fail_task" else {}
    ada.call(end, task_id=ada.call("claim_task")["task"]["id"], **more)
"""
SHOWN = {
    "table": "%workbench tasks",
    "task": "wb.task(1)",
    "result": 'wb.call("list_tasks")',
    "one-result": 'wb.call("get_task", task_id=1)',
    "graph": "wb.graph()",
    "gantt": 'wb.report("gantt")',
    "report": 'wb.report("tasks")',
    "error": "%workbench taks",
    "call-error": 'wb.call("get_tsk")',
}


@pytest.fixture
def outputs(lab: Lab, project: Project, page: Page) -> dict[str, Locator]:
    """The output areas of the cells, by the names in SHOWN."""
    sources = (START, WORK, *SHOWN.values())
    page.set_viewport_size({"width": 1100, "height": 6000})  # so that no cell is taken out of the page
    open_notebook(page, lab, write_notebook(project.path / "cells.ipynb", *sources, tags=["raises-exception"]))
    command(page, "notebook:run-all-cells", wait=False)
    expect(output(page, len(sources) - 1)).to_contain_text("UNKNOWN_OPERATION", timeout=90_000)
    return {name: output(page, 2 + number) for number, name in enumerate(SHOWN)}


def style(element: Locator, name: str) -> str:
    """A computed property."""
    return str(element.evaluate("(found, name) => getComputedStyle(found)[name]", name))


def test_cells_are_aligned_and_follow_the_theme(outputs: dict[str, Locator], page: Page) -> None:
    expect(outputs["error"]).to_contain_text("BAD_COMMAND: No such command 'taks'.")
    expect(outputs["call-error"]).to_contain_text("Did you mean get_task")
    for name in ("error", "call-error"):
        assert len(outputs[name].inner_text().strip().splitlines()) == 1
    for name in ("table", "result", "report"):
        title = outputs[name].get_by_role("cell", name="Collect", exact=True)
        number = outputs[name].get_by_role("row").nth(1).get_by_role("cell").first
        assert (style(title, "textAlign"), style(number, "textAlign")) == ("left", "right")
    for theme in ("Light", "Dark"):
        with in_theme(page, theme):
            for name, area in outputs.items():
                shot(area, f"cell-{name}-{theme.lower()}")
            text = page.evaluate("getComputedStyle(document.body).getPropertyValue('--jp-content-font-color1').trim()")
            for name in ("gantt", "graph"):
                expect(outputs[name].locator("svg text").last).to_have_css("fill", rgba(page, text))


def rgba(page: Page, colour: str) -> str:
    """A colour as the browser writes it."""
    script = "c => { const e = document.createElement('i'); e.style.color = c; return e.style.color }"
    return str(page.evaluate(script, colour))
