"""A conversation that is too long for its model goes on with a summary of what was said before, and says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, OPENAI_CHAT, Dialect
from tests.providers.provider import Reply, failure
from tests.providers.test_requests import Looking
from tests.providers.wire import Call, Step
from workbench.providers import answers
from workbench.providers.frames import Compacted, History, Token, ToolCompleted, ToolStarted
from workbench.providers.tools import ToolAnswer

pytestmark = pytest.mark.anyio

TOO_LONG = failure(400, {"error": {"message": "prompt is too long: maximum context length is 8 tokens"}})
SUMMARY = Step(["It is about ", "trees."], usage=(70, 9))


async def history() -> History:
    called = [Token("I look."), ToolStarted("c1", "look", "{}"), ToolCompleted("c1", "look", "An oak.", is_error=False)]
    return await answers.extended(None, "What is an oak?", [*called, Token("A tree. " * 2_000)])


def messages(body: Any) -> str:
    return json.dumps(body["messages"])


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC], ids=str)
async def test_what_was_said_before_is_summarised_and_the_answer_goes_on(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, TOO_LONG, SUMMARY, Step(["Yes."]), prompt="Is it old?", history=await history())
    assert answer.text == "Yes."
    [said] = answer.of(Compacted)
    assert said.message == "The conversation is too long for this model: what was said before is summarised."
    _, asked, shorter = (request.body for request in answer.requests)
    assert "Summarise the conversation" in messages(asked)
    assert "An oak." in messages(asked)
    assert "characters are left out" in messages(asked)
    assert "It is about trees." in messages(shorter)
    assert "An oak." not in messages(shorter)
    assert messages(shorter).index("trees") < messages(shorter).index("Is it old?")
    purposes = [(one.purpose, one.error_code) for one in answer.recorded]
    assert purposes == [("answer", "CONVERSATION_TOO_LONG"), ("summary", None), ("answer", None)]
    usage = answer.completed.usage
    assert (usage.input_tokens, usage.output_tokens, usage.requests, usage.unmeasured) == (81, 16, 2, 0)
    kept = json.dumps(answer.completed.history)
    assert "It is about trees." in kept
    assert "What is an oak?" not in kept


async def test_a_summary_that_is_too_long_to_make_is_made_of_less(ask: Asking) -> None:
    replies = [TOO_LONG, TOO_LONG, SUMMARY, Step(["Yes."])]
    answer = await ask.whole(OPENAI_CHAT, *replies, prompt="Is it old?", history=await history())
    assert answer.text == "Yes."
    first, second = (len(messages(answer.requests[n].body)) for n in (1, 2))
    assert second < first


async def test_long_results_are_cut_where_the_question_alone_is_too_long(ask: Asking) -> None:
    class Wordy(Looking):
        async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
            return ToolAnswer("leaf " * 4_000)

    replies: list[Step | Reply] = [Step([], [Call("c1", "look", "{}")]), TOO_LONG, Step(["Leaves."])]
    answer = await ask.whole(OPENAI_CHAT, *replies, toolbox=Wordy())
    assert answer.text == "Leaves."
    assert "long results of tools are cut" in answer.of(Compacted)[0].message
    assert len(messages(answer.requests[2].body)) < 4_000 < len(messages(answer.requests[1].body))
    assert "characters are left out" in json.dumps(answer.completed.history)


async def test_a_question_that_is_too_long_by_itself_is_refused(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, TOO_LONG)
    assert (answer.code, answer.of(Compacted), len(answer.requests)) == ("CONVERSATION_TOO_LONG", [], 1)
    assert answer.error is not None
    assert answer.error.message.startswith("The question, with what belongs to it, is too long for this model.")


async def test_the_tokens_of_a_summary_are_not_expected_of_the_next_request_again(ask: Asking) -> None:
    summary = Step(["It is about trees."], usage=(700, 9))
    replies = [TOO_LONG, summary, Step([], [Call("c1", "look", "{}")]), Step(["Yes."])]
    answer = await ask.whole(
        OPENAI_CHAT, *replies, prompt="Is it old?", history=await history(), toolbox=Looking(), tokens=1_000
    )
    assert answer.error is None
    assert answer.text == "Yes."
