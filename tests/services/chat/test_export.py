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


async def exported(begin: Begin, **more: Any) -> dict[str, Any]:
    chat: Chat = await begin(SCRIPT, tools=["workbench"])
    await chat.ask("Which tasks?")
    return await chat.call("export_conversation", **more)


async def test_as_markdown_it_has_the_messages_and_the_calls_and_nothing_that_acts_on_a_terminal(begin: Begin) -> None:
    found = await exported(begin)
    text = found["content"]
    assert found["filename"].endswith(".md")
    assert text.startswith("# Which tasks?\n\nBegun ")
    assert "## You\n\nWhich tasks?\n\n## Helper, test:script\n\nI look.\n\n**list_tasks** (local, completed):" in text
    assert "\u001b" not in text


async def test_as_a_notebook_each_message_is_a_cell_with_its_answer(begin: Begin) -> None:
    found = await exported(begin, format="notebook")
    notebook = nbformat.reads(found["content"], as_version=4)
    nbformat.validate(notebook)
    title, cell = notebook.cells
    assert (title.cell_type, cell.source) == ("markdown", "%%chat\nWhich tasks?")
    assert "None ``` yet." in cell.outputs[0]["data"]["text/markdown"]
