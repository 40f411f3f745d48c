"""Code and formulas in answers: coloured, drawn, and written into the cells of the notebook."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import OpenDesk, Project, view
from tests.browser.test_chat_desk import conversation, open_conversation, write

pytestmark = pytest.mark.browser

CODE = "def double(x):\n    return 2 * x  # twice"
NOTEBOOK = """() => {
  const view = {"application/vnd.jupyter.widget-view+json": {model_id: "the-panel"}};
  const made = (id, source, outputs = []) => ({
    id, source, getSource() { return this.source; }, setSource(text) { this.source = text; }, toJSON: () => ({outputs}),
  });
  const cells = [made("a", "1"), made("b", "wb", [{data: view}]), made("c", "3")];
  const sharedModel = {
    cells,
    getCell: (place) => cells[place],
    insertCell: (place, {source}) => {
      cells.splice(place, 0, made(`new-${cells.length}`, source));
      return cells[place];
    },
  };
  window.traits = {panel_id: "the-panel"};
  window.manager = {context: {model: {sharedModel}}};
  const page = document.createElement("div");
  page.innerHTML = '<div class="jp-Notebook">' + [0, 1, 2].map((at) =>
    `<div class="jp-Cell" data-windowed-list-index="${at}"><textarea id="cell-${at}"></textarea></div>`
  ).join("") + "</div>";
  document.body.append(page);
}"""
"""The notebook of a front end, whose second cell shows the panel."""
OTHER_NOTEBOOK = """() => {
  const page = document.createElement("div");
  page.innerHTML = `<div class="jp-Notebook"><div class="jp-Cell" data-windowed-list-index="0">
    <div class="cm-line" id="other" tabindex="0">another notebook</div></div></div>`;
  document.body.append(page);
}"""


def answered(desk: BareDesk, text: str) -> Locator:
    """The pane of a conversation whose model has said this."""
    conversation(desk, [{"say": text}])
    pane = open_conversation(desk)
    write(pane, "Go on")
    return pane


def sources(desk: BareDesk) -> list[str]:
    found: list[str] = desk.page.evaluate("window.manager.context.model.sharedModel.cells.map(({source}) => source)")
    return found


def test_code_is_coloured_and_written_into_cells(desk: BareDesk) -> None:
    desk.page.evaluate(NOTEBOOK)
    pane = answered(desk, f"Like this:\n\n```python\n{CODE}\n```\n\n```\nplain\n```")
    block = pane.locator(".wb-code").first
    expect(block.locator(".hljs-keyword").first).to_have_text("def")
    expect(block.locator("pre")).to_have_text(CODE)
    text, buttons = (block.locator(name).bounding_box() for name in ("pre", ".wb-code-buttons"))
    assert text is not None
    assert buttons is not None
    assert buttons["y"] + buttons["height"] <= text["y"] + 1  # they do not lie on the code
    replace = block.get_by_role("button", name="Replace the cell that you were in with the code")
    replace.click()
    assert sources(desk) == ["1", "wb", "3"]  # no cell was worked in
    block.get_by_role("button", name="Insert the code as a new cell").click()
    pane.locator(".wb-code").nth(1).get_by_role("button", name="Insert the code as a new cell").click()
    assert sources(desk) == ["1", "wb", CODE, "plain", "3"]
    desk.page.locator("#cell-0").focus()
    replace.click()
    assert sources(desk) == [CODE, "wb", CODE, "plain", "3"]
    desk.page.locator("#cell-1").focus()
    replace.click()
    assert sources(desk)[1] == "wb"  # the panel's own cell stays


def test_the_cell_that_was_worked_in_is_replaced_wherever_it_is_by_then(desk: BareDesk) -> None:
    desk.page.evaluate(NOTEBOOK)
    block = answered(desk, f"```constructor\n{CODE}\n```").locator(".wb-code")
    replace = block.get_by_role("button", name="Replace the cell that you were in with the code")
    desk.page.locator("#cell-2").focus()
    block.get_by_role("button", name="Insert the code as a new cell").click()
    desk.page.evaluate(OTHER_NOTEBOOK)
    desk.page.locator("#other").focus()
    replace.click()
    assert sources(desk) == ["1", "wb", CODE, CODE]  # "3", which moved


def test_in_jupyterlab_the_cell_that_a_person_was_in_is_replaced(open_desk: OpenDesk, project: Project) -> None:
    desk = open_desk("x = 1", "y = 2")
    made = project.operate("create_conversation", model="test:echo", title="Echo")
    project.operate("ask", conversation_id=made["id"], content=f"Look:\n\n```python\n{CODE}\n```")
    view(desk, "Chat")
    desk.locator(".wb-conversations").get_by_role("button", name="Echo", exact=True).click()
    replace = desk.locator(".wb-conversation .wb-code").get_by_role("button", name="Replace the cell").last
    expect(replace).to_be_visible()
    desk.page.locator(".jp-CodeCell", has_text="x = 1").last.locator(".cm-content").click()
    replace.click()
    expect(desk.page.locator(".jp-CodeCell").nth(2).locator(".cm-content")).to_contain_text("def double(x):")
    expect(desk.page.locator(".jp-CodeCell").nth(3).locator(".cm-content")).to_have_text("y = 2")


def test_without_a_notebook_code_can_only_be_copied(desk: BareDesk) -> None:
    pane = answered(desk, f"```python\n{CODE}\n```")
    expect(pane.locator(".wb-code").get_by_role("button")).to_have_count(1)


def test_formulas_are_drawn_and_money_and_code_stay(desk: BareDesk) -> None:
    says = [
        r"Euler: $e^{i\pi} = -1$, and \(a^2\).",
        "$$\\sum_{n=1}^\\infty \\frac{1}{n^2} = \\frac{\\pi^2}{6}$$",
        r"\[\int_0^1 x\,dx\]",
        "It costs $5 and $6.",
        r"In code: `\(x\)` and `$y$`.",
        r"Odd: $\href{javascript:window.P=1}{x}$, $\undefinedword$, <b>no</b>.",
    ]
    pane = answered(desk, "\n\n".join(says))
    expect(pane.locator("math")).to_have_count(4 + 1)
    expect(pane.locator("math[display=block]")).to_have_count(2)
    text = pane.locator(".wb-from-assistant .wb-markdown")
    expect(text).to_contain_text("It costs $5 and $6.")
    expect(text).to_contain_text(r"In code: \(x\) and $y$.")
    expect(text).to_contain_text(r"\undefinedword")
    expect(text.locator("a, b")).to_have_count(0)


def test_models_are_offered_where_one_is_chosen(desk: BareDesk) -> None:
    conversation(desk)
    pane = open_conversation(desk)
    pane.get_by_role("button", name="Settings…").click()
    expect(pane.locator("datalist option").first).to_have_attribute("value", "test:echo")
    assert pane.locator("datalist option").count() > 20
    assert pane.get_by_label("Model").get_attribute("list") == pane.locator("datalist").get_attribute("id")
