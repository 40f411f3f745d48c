"""What the panel puts into a notebook that is saved: its own code in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

pytestmark = pytest.mark.node

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def displayed(model_id: str) -> Any:
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    return new_output("display_data", {VIEW: view, "text/html": "<p>at first</p>", "text/plain": "at first"})


def notebook(*outputs: Any) -> dict[str, Any]:
    cells = [new_markdown_cell("# Day 1"), new_code_cell("%workbench panel", outputs=list(outputs))]
    return dict(new_notebook(cells=cells))


def saved(content: dict[str, Any], model_id: str = "one", html: str = "<p>at last</p>") -> dict[str, Any]:
    """The notebook as it is saved while this panel is open."""
    if (node_js := shutil.which("node")) is None:
        pytest.skip("node is not installed; the panel's code is tested in it")
    script = Path(__file__).with_name("last_state.mjs")
    asked = json.dumps({"notebook": content, "id": model_id, "html": html})
    done = subprocess.run([node_js, script], input=asked, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def states(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["metadata"]["widgets"][STATE]["state"]
    return found


def test_the_output_has_the_last_state_as_html_and_a_widget_stands_in() -> None:
    found = saved(notebook(displayed("one"), displayed("another")))
    mine, other = (output["data"] for output in found["cells"][1]["outputs"])
    assert (mine["text/html"], mine["text/plain"], mine[VIEW]["model_id"]) == ("<p>at last</p>", "at first", "one")
    assert other["text/html"] == "<p>at first</p>"
    assert states(found)["one"]["model_name"] == "HTMLModel"
    assert states(found)["one"]["state"] == {"value": "<p>at last</p>", "layout": "IPY_MODEL_one-last-state"}
    assert set(states(found)) == {"one", "one-last-state"}
    nbformat.validate(nbformat.from_dict(found))


def test_other_widgets_stay_and_stand_ins_of_removed_panels_go() -> None:
    before = saved(notebook(displayed("one")))
    before["cells"][1]["outputs"] = [displayed("two")]
    states(before)["slider"] = {"model_name": "IntSliderModel", "state": {}}
    assert set(states(saved(before, "two"))) == {"two", "two-last-state", "slider"}


@pytest.mark.parametrize(("model_id", "html"), [("elsewhere", "<p></p>"), ("one", "")], ids=["not shown", "no state"])
def test_a_notebook_without_the_panel_is_saved_as_it_is(model_id: str, html: str) -> None:
    content = notebook(displayed("one"))
    assert saved(content, model_id, html) == content
