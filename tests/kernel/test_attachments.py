"""A question of a notebook takes values, cells, files and the last error along."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from kernel_ext.attachments import ROWS, completed, numbers, with_values
from workbench.cli.chat.attachments import MOST, attached
from workbench.errors import BadInput, NotFound


def shell(**names: Any) -> Any:
    cells = {"In": ["", "x = 1", "x + 1\n"], "Out": {2: 2}}
    return SimpleNamespace(user_ns={**cells, **names})


def test_braces_around_a_name_are_its_value_and_others_stay() -> None:
    table = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    names = shell(text="an *oak*", table=table, n=3).user_ns
    assert with_values("What is {text}, {n} times? {unknown} {n:d} {n.real}", names) == (
        "What is an *oak*, 3 times? {unknown} {n:d} {n.real}"
    )
    assert json.loads(with_values("{table}", names)) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert with_values("{In[1]} gives {Out[2]}, {Out[9]}, {{n}}", names) == "x = 1 gives 2, {Out[9]}, {n}"
    code = 'f"{{a}}" and {"key": {}}'
    assert with_values(code, names) == code


def test_a_long_table_is_cut_and_that_is_said_and_what_has_no_json_is_printed() -> None:
    text = with_values("{rows}", {"rows": pd.DataFrame({"a": range(ROWS + 7)})})
    numbers_shown, said = text.split(" (", 1)
    assert len(json.loads(numbers_shown)) == ROWS
    assert str(ROWS + 7) in said
    assert with_values("{it}", {"it": object()}).startswith("<object object at")


def test_files_cells_and_the_last_error_stand_below_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "a.py"
    script.write_text("print('```')\n")
    try:
        raise ValueError("no tree")
    except ValueError as error:
        monkeypatch.setattr(sys, "last_value", error, raising=False)
    text = completed("Why {n}?", shell(n=5), files=[str(script)], cells=[1, 2], error=True)
    question, *rest = text.split("\n\n")
    assert question == "Why 5?"
    assert "Cell 1:\n\n```python\nx = 1\n```" in text
    assert "Cell 2:\n\n```python\nx + 1\n```\n\nIts value:\n\n```\n2\n```" in text
    assert f"The file {script}:\n\n````python\nprint('```')\n````" in text
    assert rest[-1].startswith("```text\nTraceback")
    assert rest[-1].endswith("ValueError: no tree\n```")


def test_what_cannot_be_attached_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "last_value", raising=False)
    with pytest.raises(NotFound, match="NO_ERROR"):
        completed("Why?", shell(), error=True)
    with pytest.raises(NotFound, match="No cell with the number 7 has run"):
        completed("Why?", shell(), cells=[7])
    with pytest.raises(BadInput, match="FILE_UNREADABLE"):
        completed("Why?", shell(), files=[str(tmp_path)])
    with pytest.raises(BadInput, match="TOO_MUCH_ATTACHED"):
        attached("Why?", ["x" * MOST])
    assert numbers(["3", "5-7"]) == [3, 5, 6, 7]
    for odd in ("x", "5-3", "1-9999999999"):
        with pytest.raises(BadInput, match=f"such as 3, or 3-5; not '{odd}'"):
            numbers([odd])
