"""The output of a run is kept up to a limit."""

from __future__ import annotations

from typing import Any

import nbformat
from hypothesis import given
from hypothesis import strategies as st

from tests.sweeps.lab import new_notebook
from workbench.rules.secrets.forms import MASK
from workbench.rules.secrets.mask import Mask
from workbench.sweeps import outputs
from workbench.sweeps.outputs import OutputLimit

KEY = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"


def shown(limit: OutputLimit, text: str) -> str:
    kept = limit.cut("stream", {"name": "stdout", "text": text})
    return str(kept["text"]) if kept else ""


def test_the_limit_of_outputs_is_reported_once() -> None:
    limit = OutputLimit(10)
    texts = [shown(limit, "123456"), shown(limit, "7890abc"), shown(limit, "more")]
    assert texts[0] == "123456"
    assert texts[1].startswith("7890\n… The outputs of this run exceed 10 bytes")
    assert texts[2] == ""


def test_a_picture_that_does_not_fit_is_left_out_whole_and_errors_never_are() -> None:
    limit = OutputLimit(10)
    picture = {"data": {"image/png": "x" * 100}, "metadata": {"width": 1}}
    kept = limit.cut("display_data", picture)
    assert kept is not None
    assert [*kept["data"]] == ["text/plain"]
    error = {"ename": "E", "evalue": "x" * 100, "traceback": []}
    assert limit.cut("error", error) is error
    assert limit.cut("display_data", picture) is None


@given(st.lists(st.text(max_size=30), max_size=20), st.integers(1, 100))
def test_the_kept_output_is_the_beginning_of_the_printed_one(texts: list[str], size: int) -> None:
    limit = OutputLimit(size)
    kept = "".join(shown(limit, text) for text in texts)
    printed = "".join(texts)
    assert kept[: min(size, len(printed))] == printed[:size]
    assert limit.exceeded == (len(printed) > size)


@given(st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_the_size_of_any_output_is_measured(data: Any) -> None:
    assert OutputLimit(10**9).cut("display_data", {"data": {"x": data}, "metadata": {}}) is not None


def test_an_executed_notebook_records_no_secret_but_what_its_author_wrote() -> None:
    document = new_notebook(f"key = '{KEY}'", f"api_key = 'sk-{KEY}'", "show()")
    document.cells[1].metadata.tags = ["injected-parameters"]
    document.metadata.papermill = {"parameters": {"api_key": f"sk-{KEY}"}}
    said = f"I use \x1b[32msk-{KEY}\x1b[0m and hunter2"
    output, data = nbformat.v4.new_output, {"text/plain": said, "image/png": KEY, "image/svg+xml": said}
    document.cells[2].outputs = [
        output("stream", text=said),
        output("execute_result", data={**data, "application/json": {"clientSecret": KEY}}),
        output("error", ename="E", evalue=said, traceback=[said]),
    ]
    outputs.without_secrets(document, Mask(["hunter2"]))
    (own, injected, cell), text = document.cells, nbformat.writes(document)
    assert (own.source, injected.source) == (f"key = '{KEY}'", f"api_key = '{MASK}'")
    assert cell.outputs[1].data["image/png"] == KEY
    assert [text.count(secret) for secret in (KEY, "hunter2")] == [2, 0]
