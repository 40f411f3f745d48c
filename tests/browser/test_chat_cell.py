"""`%%chat` in a real JupyterLab: the answer as it comes, a tool that needs permission, an interrupt."""

from __future__ import annotations

import getpass

from playwright.sync_api import Page, expect

from tests.browser.desk_lab import Lab, Project, command, open_notebook, output, run, shot, write_notebook

START = """\
%load_ext workbench
%workbench start --project "." --port 0

@wb.tool
def mean(values: list[float]) -> float:
    "The mean of some numbers."
    return sum(values) / len(values)

def define(name, *script):
    made = wb.definitions.create(name, description="Answers from a script")
    made.settings["model"] = "test:script"
    made.settings["script"] = list(script)

call = {"tool": "mean", "input": {"values": [1, 2, 6]}}
define("helper", {"say": "I **compute** it.", "calls": [call]}, {"say": "The mean is `3`."})
define("talker", {"say": "One two " + "word " * 10_000, "pause": 0.05})
print("defined")
"""
ASK = "%%chat helper\nWhat is the mean of 1, 2 and 6?"
STOP = "%%chat talker\nCount."


def test_a_conversation_in_cells_streams_asks_stops_and_is_saved(lab: Lab, project: Project, page: Page) -> None:
    open_notebook(page, lab, write_notebook(project.path / "chat.ipynb", START, ASK, STOP))
    run(page, 0)
    expect(output(page, 0)).to_contain_text("defined", timeout=60_000)

    run(page, 1)
    asked = output(page, 1)
    expect(asked.locator("strong", has_text="compute")).to_be_visible(timeout=60_000)
    allow = asked.get_by_role("button", name="Allow once: mean")
    expect(allow).to_be_visible()
    shot(asked, "chat-cell-asking")
    allow.click()
    expect(asked.locator("code", has_text="3").last).to_be_visible()
    expect(asked).to_contain_text(f"Approved by {getpass.getuser()}: the tool call of mean.")
    asked.locator("summary", has_text="mean").click()
    expect(asked.locator("details[open]")).to_contain_text("values")
    shot(asked, "chat-cell")

    run(page, 2)
    expect(output(page, 2)).to_contain_text("One two word")
    command(page, "notebook:interrupt-kernel")
    expect(output(page, 2)).to_contain_text("The answer was stopped.")
    shot(page.locator(".jp-Notebook"), "chat-cells")

    command(page, "docmanager:save")
    saved = (project.path / "chat.ipynb").read_text()
    assert "The mean is `3`." in saved
    assert "The answer was stopped." in saved
