"""One answer of a model: text, tool calls and results, as they come. The model is the scripted one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.given import refused
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.providers.engine import AnswerLimits, ModelQuestion, answer
from workbench.providers.frames import Completed, Frame, Token, ToolCompleted, ToolStarted
from workbench.providers.models import model
from workbench.providers.tools import NoTools, ToolAnswer, ToolOffer

pytestmark = pytest.mark.anyio


class Adding:
    """One tool that adds, and one that fails."""

    async def offers(self) -> list[ToolOffer]:
        return [ToolOffer(name, "A tool.", {"type": "object"}) for name in ("add", "fail")]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        if name == "fail":
            raise Unavailable("TOOL_TIMEOUT", "It took too long.")
        return ToolAnswer(json.dumps(arguments["a"] + arguments["b"]))


async def frames(script: Any, toolbox: Any = None, prompt: str = "Hello", **more: Any) -> list[Frame]:
    limits = AnswerLimits(**{name: more.pop(name) for name in ("steps", "seconds") if name in more})
    question = ModelQuestion("Be brief.", prompt, **more)
    chosen = model("test:script", {}, {"script": script})
    return [frame async for frame in answer(chosen, question, toolbox or NoTools(), limits)]


def text(found: list[Frame]) -> str:
    return "".join(frame.text for frame in found if isinstance(frame, Token))


async def test_text_streams_word_by_word_and_ends_with_the_whole() -> None:
    found = await frames([{"say": "One two one."}])
    assert [frame for frame in found if isinstance(frame, Token)] == [Token("One"), Token(" two"), Token(" one.")]
    assert isinstance(found[-1], Completed)
    assert (found[-1].text, found[-1].is_whole) == ("One two one.", True)
    assert text(await frames([{"say": "no, no, no"}])) == "no, no, no"
    assert text(await frames(None, prompt="Good morning")) == "You said: Good morning"


async def test_tools_are_called_at_once_and_their_results_reach_the_model() -> None:
    calls = [{"tool": "add", "input": {"a": 1, "b": 2}}, {"tool": "add", "input": {"a": 3, "b": 4}}]
    found = await frames([{"say": "Adding.", "calls": calls}, {"say": "Done."}], Adding())
    started = {frame.call_id: json.loads(frame.arguments) for frame in found if isinstance(frame, ToolStarted)}
    results = {frame.call_id: frame.result for frame in found if isinstance(frame, ToolCompleted)}
    assert started == {"call_0_0": {"a": 1, "b": 2}, "call_0_1": {"a": 3, "b": 4}}
    assert results == {"call_0_0": "3", "call_0_1": "7"}
    assert text(found) == "Adding.Done."


async def test_a_tool_that_fails_or_does_not_exist_is_told_to_the_model_which_goes_on() -> None:
    found = await frames([{"calls": [{"tool": "fail"}]}, {"say": "Then not."}], Adding())
    [completed] = [frame for frame in found if isinstance(frame, ToolCompleted)]
    assert (completed.is_error, completed.result) == (True, "TOOL_TIMEOUT: It took too long.")
    assert text(found) == "Then not."
    assert text(await frames([{"calls": [{"tool": "nothing"}]}, {"say": "Then not."}], Adding())) == "Then not."


async def test_an_answer_that_takes_too_many_steps_or_too_long_ends_with_a_code() -> None:
    with pytest.raises(Conflict, match="CHAT_LIMIT"):
        await frames([{"calls": [{"tool": "add", "input": {"a": 1, "b": 1}}]}], Adding(), steps=3)
    with pytest.raises(WorkbenchError, match="CHAT_LIMIT"):
        await frames([{"say": "a b c", "pause": 30}], seconds=0.05)


async def test_stopping_an_answer_stops_its_tools() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Waiting(Adding):
        async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError("it waits")

    task = asyncio.create_task(frames([{"calls": [{"tool": "add"}]}], Waiting()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_a_model_that_cannot_be_is_refused() -> None:
    refused("MODEL_REQUIRED", model, "", {}, {})
    refused("PROVIDER_UNKNOWN", model, "nothing:x", {}, {})
    for script in ([{"say": 1}], {"say": "x"}):
        refused("INVALID_CONFIGURATION", model, "test:x", {}, {"script": script})
