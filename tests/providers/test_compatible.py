"""Servers that speak OpenAI's protocol in their own way: usage, ends, errors and calls as they are seen at them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.providers.conftest import Answer, Asking
from tests.providers.dialects import OPENAI_CHAT
from tests.providers.provider import Reply
from workbench.providers.compatible import error_of
from workbench.providers.frames import End, Thought, ToolStarted
from workbench.providers.tools import ToolAnswer, ToolOffer

pytestmark = pytest.mark.anyio

BASE = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
STOP = {"delta": {}, "finish_reason": "stop"}


class Echo:
    """A tool that repeats its message."""

    async def offers(self) -> list[ToolOffer]:
        return [ToolOffer("echo", "Repeats.", {"type": "object", "properties": {"message": {"type": "string"}}})]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        return ToolAnswer(str(arguments["message"]))


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"delta": {"content": text}} | more


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}}


def stream(*choices: Mapping[str, Any], done: bool = True) -> Reply:
    """A stream of choices; of a choice, `usage` belongs to its event."""
    events = [
        BASE | {"choices": [{"index": 0, "finish_reason": None} | {k: v for k, v in one.items() if k != "usage"}]}
        | ({"usage": one["usage"]} if "usage" in one else {})
        for one in choices
    ]  # fmt: skip
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return Reply([*lines, *([b"data: [DONE]\n\n"] if done else [])])


def body(content: Any, kind: str = "application/json") -> Reply:
    text = content if isinstance(content, str) else json.dumps(content)
    return Reply([text.encode()], headers={"content-type": kind})


async def answer_to(ask: Asking, *replies: Reply, **more: Any) -> Answer:
    return await ask.whole(OPENAI_CHAT, *replies, attempts=1, **more)


@pytest.mark.parametrize(
    "choices",
    [
        [said("Hel") | usage(10, 1), said("lo") | usage(10, 2), STOP | usage(10, 5)],
        [said("Hello"), STOP | usage(10, 5), STOP | usage(10, 5)],
        [said("Hello"), STOP | usage(10, 5)],
    ],
    ids=["with each event", "twice at the end", "once"],
)
async def test_the_last_reported_usage_counts(ask: Asking, choices: list[dict[str, Any]]) -> None:
    found = (await answer_to(ask, stream(*choices))).completed
    assert (found.text, found.usage.input_tokens, found.usage.output_tokens) == ("Hello", 10, 5)


@pytest.mark.parametrize(
    "last",
    [{"finish_reason": word, "delta": {}} for word in ("eos", "STOP", "end", "", None)]
    + [{"finish_reason": "stop", "delta": None}],
)
async def test_any_known_finish_reason_of_a_whole_answer_means_stop(ask: Asking, last: dict[str, Any]) -> None:
    found = (await answer_to(ask, stream(said("Hello"), last))).completed
    assert (found.text, found.end) == ("Hello", End.STOP)


async def test_an_unknown_or_missing_end_of_an_answer_is_a_cut(
    ask: Asking,
) -> None:
    for word in ("error", "guardrail_intervened"):
        answer = await answer_to(ask, stream(said("Hello"), {"delta": {}, "finish_reason": word}))
        assert (answer.code, word in str(answer.error)) == ("ANSWER_CUT", True)
    assert (await answer_to(ask, stream(said("Hello"), done=False))).completed.end is End.CUT
    length = (
        await answer_to(ask, stream(said("Hel"), {"delta": {}, "finish_reason": "max_tokens"} | usage(9, 2)))
    ).completed
    assert (length.end, length.cut_at) == (End.LENGTH, 2)


async def test_an_answer_in_one_piece_is_read(ask: Asking) -> None:
    whole = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    found = (await answer_to(ask, body(BASE | {"choices": [whole]} | usage(10, 5)))).completed
    assert (found.text, found.end, found.usage.output_tokens) == ("Hello", End.STOP, 5)
    assert (await answer_to(ask, stream({"message": {"content": "Hello"}, "finish_reason": "stop"}))).text == "Hello"


WORDS = "context is too long 32927"


@pytest.mark.parametrize(
    "reply",
    [
        body({"error": WORDS}),
        body({"error": {"message": WORDS}}),
        body({"object": "error", "message": WORDS}),
        Reply([f'data: {{"choices": null, "error_message": "{WORDS}"}}\n\n'.encode()]),
        Reply([f'data: {{"error": "{WORDS}"}}\n\n'.encode()]),
        Reply([f'data: {{"object": "error", "message": "{WORDS}"}}\n\n'.encode()]),
    ],
)
async def test_an_error_within_a_good_status_keeps_its_words(ask: Asking, reply: Reply) -> None:
    answer = await answer_to(ask, reply)
    assert (answer.code, WORDS in str(answer.error)) == ("PROVIDER_FAILED", True)


async def test_a_web_page_in_place_of_an_answer_is_reported_as_such(ask: Asking) -> None:
    answer = await answer_to(ask, body("<html>Welcome</html>", "text/html"))
    assert (answer.code, "web page" in str(answer.error)) == ("PROVIDER_ANSWER_INVALID", True)
    assert (await answer_to(ask, body({"status": "ok"}))).code == "PROVIDER_ANSWER_INVALID"
    assert error_of({"choices": [{}], "error_message": ""}) == ""


async def test_calls_are_distinguished_and_named_once(ask: Asking) -> None:
    def call(**more: Any) -> dict[str, Any]:
        return {"delta": {"tool_calls": [{"index": 0, "type": "function"} | more]}}

    end, done = {"delta": {}, "finish_reason": "tool_calls"}, stream(said("Done."), STOP)
    named = [
        call(id="c1", function={"name": "echo", "arguments": '{"mess'}),
        call(function={"name": "echo", "arguments": 'age": "a"}'}),
    ]
    answer = await answer_to(ask, stream(*named, end), done, toolbox=Echo())
    assert [(one.name, json.loads(one.arguments)) for one in answer.of(ToolStarted)] == [("echo", {"message": "a"})]
    same_index = [call(id=f"c{n}", function={"name": "echo", "arguments": f'{{"message": "{n}"}}'}) for n in (1, 2)]
    answer = await answer_to(ask, stream(*same_index, end), done, toolbox=Echo())
    assert [json.loads(one.arguments)["message"] for one in answer.of(ToolStarted)] == ["1", "2"]
    assert answer.text == "Done."


async def test_events_without_content_are_skipped(ask: Asking) -> None:
    events = stream(said("Hello"), STOP)
    quiet = Reply([b"data:\n\n", *events.chunks[:-1], b"data: \n\n", b"data: [done]\n\n"])
    assert (await answer_to(ask, quiet)).completed.text == "Hello"


async def test_think_tags_in_pieces_set_what_is_thought_apart(ask: Asking) -> None:
    for pieces in (
        ["<th", "ink>hmm</thi", "nk>Hello"],
        ["<think>hmm", "</think>", "Hello"],
        [*"<think>hmm</think>Hello"],
    ):
        answer = await answer_to(ask, stream(*map(said, pieces), STOP))
        assert (answer.completed.text, "".join(one.text for one in answer.of(Thought))) == ("Hello", "hmm"), pieces
    for pieces in (["<", "b>Hello"], ["a <think>"], ["<thi"], ["  ", "Hello"]):
        assert (await answer_to(ask, stream(*map(said, pieces), STOP))).completed.text == "".join(pieces)


async def test_a_call_in_the_older_form_is_made(ask: Asking) -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "echo", "arguments": '{"message": "a"}'}}
    first = stream({"delta": called, "finish_reason": "function_call"})
    answer = await answer_to(ask, first, stream(said("Done."), STOP), toolbox=Echo())
    assert [json.loads(one.arguments) for one in answer.of(ToolStarted)] == [{"message": "a"}]
    assert answer.text == "Done."


@pytest.mark.parametrize(("sent", "kind"), [({"detail": "Not Found"}, "application/json"), ("<html>404", "text/html")])
async def test_an_address_without_its_last_part_is_named(ask: Asking, sent: Any, kind: str) -> None:
    text = sent if isinstance(sent, str) else json.dumps(sent)
    answer = await answer_to(ask, Reply([text.encode()], 404, {"content-type": kind}))
    assert (answer.code, "it may lack /v1" in str(answer.error)) == ("PROVIDER_REJECTED", True)
    assert "http://127.0.0.1" in str(answer.error)
