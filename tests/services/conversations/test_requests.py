"""Each request to a model is recorded: listed, asked for with SQL, and summed up for the conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.dialects import OPENAI_CHAT
from tests.providers.provider import provider
from tests.providers.test_compaction import SUMMARY, TOO_LONG
from tests.providers.wire import Step
from workbench.analytics.live import Live, refresh

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]
QUERY = "SELECT conversation, number, purpose, model, end_reason, error_code FROM model_requests ORDER BY ALL"


async def test_an_answer_leaves_a_record_of_each_request(begin: Begin) -> None:
    script = [{"calls": [{"tool": "list_tasks"}]}, {"say": "None yet."}]
    live, chat = Live(), await begin(script, tools=["workbench"])
    answer = await chat.ask("Which tasks?")
    requests = (await chat.call("list_model_requests"))["requests"]
    assert [(one["turn_id"], one["number"], one["purpose"]) for one in requests] == [
        (answer["id"], 1, "answer"),
        (answer["id"], 2, "answer"),
    ]
    assert answer["first_token_seconds"] == requests[0]["first_token_seconds"] >= 0
    usage = (await chat.call("get_conversation"))["usage"]
    assert (usage["requests"], usage["cached_tokens"], usage["thinking_tokens"]) == (2, 0, 0)

    async def rows() -> list[Any]:
        return live.answer(await refresh(live, chat.workbench.store), QUERY).fetchall()

    assert await rows() == [("Which tasks?", n, "answer", "test:script", None, None) for n in (1, 2)]
    await chat.call("delete_conversation")
    assert await rows() == []


async def test_a_request_that_is_stopped_is_recorded_as_that(begin: Begin) -> None:
    chat = await begin([{"say": "one " * 500, "pause": 0.05}])
    await chat.send("Count")
    await chat.until("token")
    await chat.call("stop_answer")
    [request] = (await chat.call("list_model_requests"))["requests"]
    assert (request["error_code"], request["end_reason"], request["input_tokens"]) == ("ANSWER_STOPPED", None, None)
    assert request["seconds"] > 0


async def test_a_conversation_that_was_too_long_says_so_where_it_was_summarised(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = OPENAI_CHAT.reply(Step(["An oak is a tree."]))
    replies = [first, TOO_LONG, OPENAI_CHAT.reply(SUMMARY), OPENAI_CHAT.reply(Step(["Yes."], cached=5))]
    async with provider(*replies) as server:
        for name, value in OPENAI_CHAT.config(server.address).items():
            monkeypatch.setenv(name, value)
        chat = await begin(model="openai:gpt-4o")
        await chat.ask("What is an oak?")
        answer = await chat.ask("Is it old?")
    notice, text = answer["parts"]
    assert (notice["type"], text) == ("notice", {"type": "text", "text": "Yes."})
    assert notice["text"].endswith("what was said before is summarised.")
    assert answer["content"] == "Yes."
    purposes = [one["purpose"] for one in (await chat.call("list_model_requests"))["requests"]]
    assert purposes == ["answer", "answer", "summary", "answer"]
    assert (await chat.call("get_conversation"))["usage"]["cached_tokens"] == 5
    assert f"*{notice['text']}*" in (await chat.call("export_conversation"))["content"]
