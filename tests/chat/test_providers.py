"""Answers over the wire formats of the providers, from scripted servers on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pytest

from tests.chat.conftest import Asking
from tests.chat.dialects import ANTHROPIC, EVERY, HTTP, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.chat.provider import Reply, provider
from tests.chat.wire import Call, Step
from workbench.chat.frames import Completed, End, Frame, Retrying, Thought, Token, ToolCompleted, Used
from workbench.chat.tools import ToolOffer
from workbench.errors import WorkbenchError

pytestmark = pytest.mark.anyio


class Adding:
    """One tool that adds; its calls run at once."""

    def __init__(self, at_once: int = 1) -> None:
        self._both = asyncio.Barrier(at_once)

    async def offers(self) -> list[ToolOffer]:
        numbers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
        return [ToolOffer("add", "Adds.", {"type": "object", "properties": numbers})]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> str:
        async with self._both:
            return f"sum={arguments['a'] + arguments['b']}"


async def gathered(frames: AsyncIterator[Frame]) -> list[Frame]:
    return [frame async for frame in frames]


async def failure(frames: AsyncIterator[Frame]) -> tuple[WorkbenchError, list[Frame]]:
    """The error with which an answer ends, and the frames before it."""
    found: list[Frame] = []
    with pytest.raises(WorkbenchError) as raised:
        async for frame in frames:
            found.append(frame)  # noqa: PERF401 - the frames before the error are kept
    return raised.value, found


def text(frames: list[Frame]) -> str:
    return "".join(frame.text for frame in frames if isinstance(frame, Token))


def completed(frames: list[Frame]) -> Completed:
    assert isinstance(frames[-1], Completed)
    return frames[-1]


ATTEMPTS = 10
"""Of a request that may be repeated because the machine is slow."""
TWO_CALLS = Step(["Let me ", "see. "], [Call("c1", "add", '{"a": 1, "b": 2}'), Call("c2", "add", '{"a": 3, "b": 4}')])


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_tokens_come_while_the_provider_still_writes(ask: Asking, dialect: Dialect) -> None:
    gate = asyncio.Event()
    reply = dialect.reply(Step(["One ", "two ", "three."]), gate=gate)
    async with provider(reply) as server, aclosing(ask(server, dialect)) as frames:
        assert await anext(frames) == Token("One ")
        gate.set()
        assert text(await gathered(frames)) == "two three."


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_parallel_calls_run_at_once_both_results_reach_the_model_and_tokens_of_all_steps_are_counted(
    ask: Asking, dialect: Dialect
) -> None:
    steps = [Step(TWO_CALLS.text, TWO_CALLS.calls, usage=(100, 20)), Step(["Done."], usage=(150, 5))]
    async with provider(*map(dialect.reply, steps)) as server:
        found = await gathered(ask(server, dialect, Adding(at_once=2)))
    results = [frame.result for frame in found if isinstance(frame, ToolCompleted)]
    assert sorted(results) == ["sum=3", "sum=7"]
    assert text(found) == "Let me see. Done."
    sent = json.dumps(server.requests[1].body)
    assert "sum=3" in sent
    assert "sum=7" in sent
    counted = [(frame.usage.requests, frame.usage.output_tokens) for frame in found if isinstance(frame, Used)]
    assert counted == [(1, 20), (2, 25)]
    usage = completed(found).usage
    assert (usage.input_tokens, usage.output_tokens) == (250, 25)


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, OPENAI_RESPONSES], ids=str)
async def test_tokens_that_a_provider_does_not_report_are_unknown(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["Hello."], usage=None))) as server:
        usage = completed(await gathered(ask(server, dialect))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (None, None, None)


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_an_answer_at_the_limit_of_its_tokens_is_marked(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["One ", "two"], end="length"))) as server:
        assert completed(await gathered(ask(server, dialect))).end is End.LENGTH


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_an_answer_whose_end_the_provider_does_not_report_is_cut(ask: Asking, dialect: Dialect) -> None:
    async with provider(*[dialect.reply(Step(["One ", "two"], ends=False))] * 2) as server:
        last = completed(await gathered(ask(server, dialect)))
    assert (last.end, last.text) == (End.CUT, "One two")


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_a_connection_that_breaks_after_a_token_ends_the_answer(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["One ", "two"], ends=False), is_whole=False)) as server:
        error, found = await failure(ask(server, dialect))
        assert len(server.requests) == 1
    assert (error.code, text(found)) == ("PROVIDER_UNREACHABLE", "One two")


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_a_provider_that_falls_silent_in_mid_answer_is_given_up(ask: Asking, dialect: Dialect) -> None:
    silent = dialect.reply(Step(["One "], ends=False), hangs=True)
    async with provider(*[silent] * ATTEMPTS) as server:
        error, found = await failure(ask(server, dialect, silence_seconds=1.0, attempts=ATTEMPTS))
    while isinstance(found[0], Retrying):  # nothing of the answer came within the second: the request is repeated
        found.pop(0)
    assert (error.code, [type(frame) for frame in found]) == ("PROVIDER_TIMEOUT", [Token, Used])


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_stopping_an_answer_closes_the_connection(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["One "], ends=False), hangs=True)) as server:
        async with aclosing(ask(server, dialect)) as frames:
            assert await anext(frames) == Token("One ")
        await server.left.wait()


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_what_is_no_answer_has_a_code(ask: Asking, dialect: Dialect) -> None:
    garbage = Reply([b"data: {{{ no json\n\n", b"\xff\xfe\n\n"], headers={"content-type": "text/event-stream"})
    async with provider(garbage) as server:
        error, _ = await failure(ask(server, dialect, attempts=1))
    assert error.code in ("PROVIDER_ANSWER_INVALID", "PROVIDER_FAILED")


@pytest.mark.long
@pytest.mark.parametrize("dialect", [OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC], ids=str)
async def test_what_no_store_takes_is_replaced(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["a\0b", "\ud800c"]))) as server:
        found = await gathered(ask(server, dialect))
    assert text(found) == "a\ufffdb\ufffdc"
    assert "a\ufffdb" in json.dumps(completed(found).history, ensure_ascii=False).encode().decode()


async def test_thoughts_are_no_part_of_the_text(ask: Asking) -> None:
    step = Step(["Four."], thinking="Two and two.")
    for dialect in (ANTHROPIC, OPENAI_CHAT):
        async with provider(dialect.reply(step)) as server:
            found = await gathered(ask(server, dialect))
        assert Thought("Two and two.") in found
        assert completed(found).text == text(found) == "Four."


async def test_the_cost_of_a_known_model_is_known_and_limited(ask: Asking) -> None:
    step = Step(TWO_CALLS.text, TWO_CALLS.calls, usage=(1_000_000, 0), model="gpt-4o")
    async with provider(OPENAI_CHAT.reply(step)) as server:
        error, found = await failure(ask(server, OPENAI_CHAT, Adding(), cost_usd=Decimal("0.5")))
    assert error.code == "CHAT_LIMIT"
    [used] = [frame for frame in found if isinstance(frame, Used)]
    assert used.usage.cost_usd == Decimal("2.5")


async def test_the_cost_of_an_unknown_model_cannot_be_limited(ask: Asking) -> None:
    unpriced = Dialect("unpriced", "openai:my-model", OPENAI_CHAT.encode)
    async with provider() as server:
        error, _ = await failure(ask(server, unpriced, cost_usd=Decimal(1)))
        assert server.requests == []
    assert error.code == "PRICE_UNKNOWN"


async def test_a_model_gets_the_settings_that_its_provider_takes(ask: Asking) -> None:
    wanted = {"temperature": 0.2, "top_p": 0.9, "max_output_tokens": 123}
    async with provider(OPENAI_CHAT.reply(Step(["Hi."])), ANTHROPIC.reply(Step(["Hi."]))) as server:
        for dialect in (OPENAI_CHAT, ANTHROPIC):
            await gathered(ask(server, dialect, **wanted))
    chat, messages = (request.body for request in server.requests)
    assert (chat["temperature"], chat["top_p"], chat["max_completion_tokens"]) == (0.2, 0.9, 123)
    assert (messages["temperature"], messages["max_tokens"], "top_p" in messages) == (0.2, 123, False)


async def test_an_answer_that_does_not_end_is_cut_off(ask: Asking) -> None:
    endless = Step(["x" * 500_000] * 20, ends=False)
    async with provider(OPENAI_CHAT.reply(endless)) as server:
        error, found = await failure(ask(server, OPENAI_CHAT))
    assert error.code == "CHAT_LIMIT"
    assert len(text(found)) == 4_000_000
