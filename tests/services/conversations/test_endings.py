"""The ends of answers, and the usage of their requests: in the record, and wherever they are shown."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.dialects import OLLAMA
from tests.providers.provider import Reply, provider
from tests.providers.wire import Call, Step
from tests.services.conversations.conftest import Chat
from workbench.cli.chat.answer import Answer, ending
from workbench.cli.chat.terminal import print_answer
from workbench.rules.chat.transcript import remark

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]


async def begin_and_ask(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, *replies: Reply, **choices: Any
) -> tuple[Chat, Any]:
    """A conversation with a scripted server after one question, and its answer."""
    async with provider(*replies) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        chat: Chat = await begin(model=OLLAMA.model, **choices)
        return chat, await chat.ask("Hello")


class Read:
    """An operator's client that has read everything about one answer."""

    def __init__(self, answer: dict[str, Any], frames: list[dict[str, Any]]) -> None:
        self.answer = answer
        self.found = {"frames": frames, "next_after": frames[-1]["number"], "answer_id": None}

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return self.found if name == "read_frames" else {"turns": [self.answer]}


def printed(caller: Read) -> str:
    """The answer as a terminal shows it."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_answer(caller, Answer(caller, caller.answer, 0))
    return out.getvalue()


async def test_every_view_of_an_answer_says_that_its_limit_cut_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = OLLAMA.reply(Step(["One ", "two"], end="length", usage=(9, 1_000)))
    chat, answer = await begin_and_ask(begin, monkeypatch, cut)
    sentence = "This answer is cut at 1,000 tokens."
    assert (answer["state"], answer["end"], answer["cut_at"], answer["remark"]) == (
        "completed",
        "length",
        1000,
        sentence,
    )
    frames = (await chat.call("read_frames"))["frames"]
    assert frames[-1]["data"].items() >= {"end": "length", "cut_at": 1000, "remark": sentence}.items()
    assert ending(answer) == sentence
    assert printed(Read(answer, frames)) == f"One two\n{sentence}\n"
    for form in ("markdown", "notebook"):
        assert f"*{sentence}*" in (await chat.call("export_conversation", format=form))["content"]


async def test_an_empty_answer_is_reported_as_empty(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answer = await begin_and_ask(begin, monkeypatch, OLLAMA.reply(Step([])))
    assert (answer["state"], answer["end"], ending(answer)) == ("completed", "stop", "This answer is empty.")
    assert remark("stop", None, "Text.") is None
    assert remark("length", None, "Text.") == "This answer is cut at its limit of tokens."


async def begin_and_stop(begin: Begin, monkeypatch: pytest.MonkeyPatch, *replies: Reply) -> tuple[Chat, Any]:
    """A conversation whose answer was stopped in the middle of the last reply, and the answer."""
    async with provider(*replies, OLLAMA.reply(Step(["One ", "two ", "three"], ends=False), hangs=True)) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        chat: Chat = await begin(model=OLLAMA.model, tools=["workbench"], limits={"tokens": 10_000})
        await chat.send("Count")
        await chat.until("token")
        await chat.call("stop_answer")
        return chat, (await chat.turns())[-1]


async def test_a_stopped_answer_counts_a_request_of_unknown_usage(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, answer = await begin_and_stop(begin, monkeypatch)
    assert (answer["state"], answer["requests"], answer["unmeasured"], answer["remark"]) == ("stopped", 1, 1, None)
    usage = (await chat.call("get_conversation"))["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["unmeasured"], usage["unpriced"]) == (1, None, 1, 0)


async def test_a_stopped_step_keeps_the_usage_of_earlier_steps(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    first = OLLAMA.reply(Step([], [Call("c1", "list_tasks", "{}")], usage=(900, 20)))
    _, answer = await begin_and_stop(begin, monkeypatch, first)
    assert (answer["requests"], answer["unmeasured"], answer["input_tokens"]) == (2, 1, 900)


async def test_the_steps_of_an_answer_are_a_limit_of_its_conversation(begin: Begin) -> None:
    chat: Chat = await begin([{"calls": [{"tool": "list_tasks"}]}], tools=["workbench"], limits={"steps": 2})
    answer = await chat.ask("Go on")
    assert (answer["error_code"], answer["requests"]) == ("CHAT_LIMIT", 2)
    assert answer["error"] == (
        "The answer reached the limit steps: the model was asked 2 times. Raise it with update_conversation, "
        "or maxChatTurns of the definition."
    )
