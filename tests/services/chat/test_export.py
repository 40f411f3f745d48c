"""Exports of conversations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from tests.services.chat.conftest import Chat

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]
SCRIPT = [{"say": "I look.", "calls": [{"tool": "list_tasks"}]}, {"say": "None ``` yet.\u001b[2J"}]


async def test_it_has_the_messages_and_the_calls_and_nothing_that_acts_on_a_terminal(begin: Begin) -> None:
    chat: Chat = await begin(SCRIPT, tools=["workbench"])
    await chat.ask("Which tasks?")
    found = await chat.call("export_conversation")
    text = found["content"]
    assert found["filename"].endswith(".md")
    assert text.startswith("# Which tasks?\n\nBegun ")
    assert "## You\n\nWhich tasks?\n\n## Helper, test:script\n\nI look.\n\n**list_tasks** (local, completed):" in text
    assert "\u001b" not in text
    notebook = nbformat.reads((await chat.call("export_conversation", format="notebook"))["content"], as_version=4)
    nbformat.validate(notebook)
    title, cell = notebook.cells
    assert (title.cell_type, cell.source) == ("markdown", "%%chat\nWhich tasks?")
    assert "None ``` yet." in cell.outputs[0]["data"]["text/markdown"]
