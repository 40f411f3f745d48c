"""The pictures that tools return in a conversation: in records, as a page shows them, in a terminal, in exports."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.services.conversations.conftest import Chat
from tests.services.tools.conftest import READING, Shelf, shelf
from workbench.cli.chat.parts import Pictures, as_page, as_text
from workbench.ops import Ctx
from workbench.rules.chat.transcript import ToolPart
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.shells.mcp.tools import named_call
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio
__all__ = ["shelf"]

Begin = Callable[..., Any]
PNG = b"\x89PNG\r\n\x1a\n\0" + base64.b64decode("-/AIza" + "Sy3" * 12 + "+/", "-/") + bytes(240)
"""A picture whose base64 has what looks like the key of a provider."""
DATA = base64.b64encode(PNG).decode()
ADDRESS, WORDS = f"data:image/png;base64,{DATA}", f"a picture of {len(PNG)} bytes, image/png"
HISTORY = Query("history", "SELECT history FROM turns WHERE history IS NOT NULL")
SCHEMA = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}


@pytest.fixture
async def chat(begin: Begin, shelf: Shelf) -> Chat:
    """A conversation whose tool returned a picture beside a structured result with a secret."""

    async def plot(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        image = {"type": "image", "data": DATA, "mimeType": "image/png"}
        return ToolOutcome([{"type": "text", "text": '{"key": "open-sesame"}'}, image], {"key": "open-sesame"})

    shelf.put("hub__plot", plot, hints=READING, result=SCHEMA)
    made: Chat = await begin([{"calls": [{"tool": "hub__plot"}]}, {"say": "A plot."}], tools=["hub"])
    await made.ask("Plot it.")
    return made


async def part_of(chat: Chat) -> ToolPart:
    [part] = [part for part in (await chat.turns())[-1]["parts"] if part["type"] == "tool"]
    return ToolPart(**part)


async def test_a_picture_is_in_the_record_of_its_call_and_its_name_in_the_transcript(chat: Chat) -> None:
    part = await part_of(chat)
    assert [(one.media_type, one.bytes) for one in part.pictures] == [("image/png", len(PNG))]
    assert part.tool_result == f'{{"key": "••••••"}}\n[{WORDS}]'
    result = (await chat.workbench.call("get_tool_call", call_id=part.record_id))["result"]
    assert [block.get("data") for block in result] == [None, DATA]
    [frame] = [
        frame for frame in (await chat.call("read_frames", after=0))["frames"] if frame["type"] == "tool_complete"
    ]
    assert DATA not in json.dumps(frame)
    assert "sesame" not in json.dumps([result, frame, part.model_dump()])
    [history] = await chat.workbench.store.read(lambda tx: tx.all(HISTORY))
    assert base64.urlsafe_b64encode(PNG).decode() in history["history"]


async def test_a_page_shows_a_picture_and_a_terminal_its_name(chat: Chat) -> None:
    part = await part_of(chat)
    record = await chat.workbench.call("get_tool_call", call_id=part.record_id)
    page = as_page(part, Pictures(lambda name, **arguments: record).of(part))
    assert f'<img src="{ADDRESS}" alt="{WORDS}"' in page
    assert WORDS in as_text(part)
    long = part.model_copy(update={"tool_result": "x" * 1_000})
    assert f"[{WORDS}]" in as_text(long)


@pytest.mark.parametrize("form", ["markdown", "notebook"])
async def test_an_export_of_a_conversation_contains_its_pictures(chat: Chat, form: str) -> None:
    content = (await chat.call("export_conversation", format=form))["content"]
    if form == "markdown":
        assert f"![{WORDS}]({ADDRESS})" in content
    else:
        [output] = json.loads(content)["cells"][-1]["outputs"]
        assert f'<img src="{ADDRESS}"' in "".join(output["data"]["text/html"])
        assert DATA not in "".join(output["data"]["text/plain"])
    assert "sesame" not in content


async def test_events_and_clients_by_name_get_no_base64_in_texts(chat: Chat) -> None:
    events = (await chat.workbench.call("list_events", kinds=["tool.completed"]))["events"]
    assert [WORDS in event["data"]["tool_result"] for event in events] == [True]
    assert DATA[:40] not in json.dumps(events)
    result = await chat.workbench.call("call_tool", name="hub__plot")
    answer = named_call(result)
    assert [one.type for one in answer.content] == ["text", "image"]
    assert DATA not in json.dumps(answer.structured_content)
