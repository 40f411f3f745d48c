"""A question is answered by a task of the server; its frames are stored before any reader gets them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from markdown_it import MarkdownIt
from nbconvert import HTMLExporter

from workbench.errors import Conflict, NotFound

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]
SCRIPT = [{"say": "I look.", "calls": [{"tool": "list_tasks"}]}, {"say": "None ``` yet.\u001b[2J"}]
SLOW = {"say": "one two three four", "pause": 20}


async def test_messages_are_answered_and_the_frames_are_numbered_without_gaps(begin: Begin) -> None:
    chat = await begin([{"say": "Hello to you."}, {"say": "Second."}])
    sent = await chat.send("Hi!\nReally.")
    frames = await chat.ended()
    assert [frame["number"] for frame in frames] == list(range(1, len(frames) + 1))
    assert (frames[0]["type"], frames[0]["data"]) == ("message", {"content": "Hi!\nReally."})
    text = "".join(frame["data"]["content"] for frame in frames if frame["type"] == "token")
    assert (text, frames[-1]["type"]) == ("Hello to you.", "complete")
    assert frames[-1]["data"]["message_id"] == sent["answer"]["id"]
    mine, answer = await chat.turns()
    assert (mine["role"], mine["state"], mine["content"]) == ("user", "sent", "Hi!\nReally.")
    assert (answer["state"], answer["content"], answer["model"]) == ("completed", "Hello to you.", "test:script")
    assert answer["parts"] == [{"type": "text", "text": "Hello to you."}]
    assert (await chat.ask("And then?"))["content"] == "Second."
    conversation = await chat.call("get_conversation")
    assert (conversation["title"], conversation["turns"], conversation["answer_id"]) == ("Hi!", 4, None)
    assert conversation["usage"]["answers"] == 2


async def test_a_second_message_waits_until_the_answer_to_the_first_has_ended_or_was_stopped(begin: Begin) -> None:
    chat = await begin([SLOW, {"say": "Going on."}])
    sent = await chat.send("Count")
    await chat.until("message")
    with pytest.raises(Conflict, match="ANSWER_RUNNING") as caught:
        await chat.send("Quicker")
    assert caught.value.details == {"turn_id": sent["answer"]["id"]}
    stopped = (await chat.call("stop_answer"))["turn"]
    assert stopped["state"] == "stopped"
    assert (await chat.ended())[-1]["data"]["state"] == "stopped"
    assert (await chat.call("stop_answer"))["turn"]["id"] == stopped["id"]


async def test_only_one_of_two_concurrent_messages_is_accepted(begin: Begin) -> None:
    chat = await begin()
    results = await asyncio.gather(chat.send("One"), chat.send("Two"), return_exceptions=True)
    assert sorted(isinstance(result, Conflict) for result in results) == [False, True]
    await chat.ended()
    assert len(await chat.turns()) == 2


async def test_a_conversation_that_is_deleted_ends_its_answer_and_its_readers(begin: Begin) -> None:
    chat = await begin([SLOW])
    await chat.send("Count")
    await chat.until("message")
    reading = asyncio.create_task(chat.ended())
    await asyncio.sleep(0)
    await chat.call("delete_conversation")
    with pytest.raises(NotFound, match="CONVERSATION_NOT_FOUND"):
        await reading
    assert not chat.workbench._ctx.local.answers.is_here(chat.id)


async def test_an_export_has_the_turns_and_the_calls_and_nothing_that_acts_on_a_terminal(begin: Begin) -> None:
    chat = await begin(SCRIPT, tools=["workbench"])
    await chat.ask("Which tasks?")
    export = await chat.call("export_conversation")
    text = export["content"]
    assert export["filename"].endswith(".md")
    assert text.startswith("# Which tasks\\?\n\nBegun ")
    assert (
        "## You\n\nWhich tasks?\n\n## Helper, test\\:script\n\nI look.\n\n**list\\_tasks** (local, completed):" in text
    )
    assert "\u001b" not in text
    notebook = nbformat.reads((await chat.call("export_conversation", format="notebook"))["content"], as_version=4)
    nbformat.validate(notebook)
    title, cell = notebook.cells
    assert (title.cell_type, cell.source) == ("markdown", "%%chat\nWhich tasks?")
    assert "None ``` yet." in cell.outputs[0]["data"]["text/html"]


async def test_an_export_runs_and_loads_nothing_when_it_is_made_a_page(begin: Begin) -> None:
    hostile = '<img src="http://e.test/1.png" onerror="P(1)"> ![x](http://e.test/2.png)'
    chat = await begin([{"say": hostile}], title=hostile)
    await chat.ask(hostile)
    page = MarkdownIt("commonmark").render((await chat.call("export_conversation"))["content"])
    notebook = nbformat.reads((await chat.call("export_conversation", format="notebook"))["content"], as_version=4)
    for made in (page, HTMLExporter().from_notebook_node(notebook)[0]):
        assert "e.test" in made
        assert [tag for tag in re.findall(r"<img[^>]*>", made) if "e.test" in tag] == []
