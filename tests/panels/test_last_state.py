"""The state that the panel puts into a saved notebook: its JavaScript in Node."""

from __future__ import annotations

from functools import partial
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def displayed(model_id: str) -> Any:
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    return new_output("display_data", {VIEW: view, "text/html": "<p>at first</p>", "text/plain": "at first"})


def notebook(*outputs: Any) -> dict[str, Any]:
    cells = [new_markdown_cell("# Day 1"), new_code_cell("%workbench panel", outputs=list(outputs))]
    return dict(new_notebook(cells=cells))


@pytest.fixture
def saved(call: Ask) -> Ask:
    """A notebook as it is saved while a panel is open."""
    save = partial(call, "link/last_state.js", "withLastState")
    return lambda content, model_id="one", html="<p>at last</p>": save(content, model_id, html)


def states(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["metadata"]["widgets"][STATE]["state"]
    return found


def test_the_output_has_the_last_state_as_html_and_a_widget_stands_in(saved: Ask) -> None:
    found = saved(notebook(displayed("one"), displayed("another")))
    mine, other = (output["data"] for output in found["cells"][1]["outputs"])
    assert (mine["text/html"], mine["text/plain"], mine[VIEW]["model_id"]) == ("<p>at last</p>", "at first", "one")
    assert other["text/html"] == "<p>at first</p>"
    assert states(found)["one"]["model_name"] == "HTMLModel"
    assert states(found)["one"]["state"] == {"value": "<p>at last</p>", "layout": "IPY_MODEL_one-last-state"}
    assert set(states(found)) == {"one", "one-last-state"}
    nbformat.validate(nbformat.from_dict(found))


def test_other_widgets_stay_and_stand_ins_of_removed_panels_go(saved: Ask) -> None:
    before = saved(notebook(displayed("one")))
    before["cells"][1]["outputs"] = [displayed("two")]
    states(before)["slider"] = {"model_name": "IntSliderModel", "state": {}}
    assert set(states(saved(before, "two"))) == {"two", "two-last-state", "slider"}


@pytest.mark.parametrize(("model_id", "html"), [("elsewhere", "<p></p>"), ("one", "")])
def test_a_notebook_without_the_panel_is_saved_as_it_is(saved: Ask, model_id: str, html: str) -> None:
    content = notebook(displayed("one"))
    assert saved(content, model_id, html) == content
