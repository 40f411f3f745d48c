"""Answers over the wire formats of the providers, from scripted servers on loopback."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, EVERY, HTTP, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.providers.provider import Reply, provider
from tests.providers.wire import Call, Step
from workbench.providers.frames import End, Retrying, Thought, Token, ToolCompleted
from workbench.providers.tools import ToolAnswer, ToolOffer

pytestmark = pytest.mark.anyio


class Adding:
    """One tool that adds; its calls run at once."""

    def __init__(self, at_once: int = 1) -> None:
        self._both = asyncio.Barrier(at_once)

    async def offers(self) -> list[ToolOffer]:
        numbers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
        return [ToolOffer("add", "Adds.", {"type": "object", "properties": numbers})]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        async with self._both:
            return ToolAnswer(f"sum={arguments['a'] + arguments['b']}")


ATTEMPTS = 10
"""Of a request that may be repeated because the machine is slow."""
SAID = ["Let me ", "see. "]
TWO_CALLS = [Call("c1", "add", '{"a": 1, "b": 2}'), Call("c2", "add", '{"a": 3, "b": 4}')]


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_tokens_come_while_the_provider_still_writes(ask: Asking, dialect: Dialect) -> None:
    gate = asyncio.Event()
    reply = dialect.reply(Step(["One ", "two ", "three."]), gate=gate)
    async with provider(reply) as server, aclosing(ask(server, dialect)) as frames:
        assert await anext(frames) == Token("One ")
        gate.set()
        assert [frame async for frame in frames if isinstance(frame, Token)] == [Token("two "), Token("three.")]


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_parallel_calls_run_at_once_and_tokens_of_all_steps_are_counted(ask: Asking, dialect: Dialect) -> None:
    steps = [Step(SAID, TWO_CALLS, usage=(100, 20)), Step(["Done."], usage=(150, 5))]
    answer = await ask.whole(dialect, *steps, toolbox=Adding(at_once=2))
    assert sorted(frame.result for frame in answer.of(ToolCompleted)) == ["sum=3", "sum=7"]
    assert answer.text == "Let me see. Done."
    sent = json.dumps(answer.requests[1].body)
    assert "sum=3" in sent
    assert "sum=7" in sent
    counted = [(one.usage.requests, one.usage.output_tokens, one.usage.unmeasured) for one in answer.used]
    assert counted == [(1, None, 1), (1, 20, 0), (2, 20, 1), (2, 25, 0)]
    usage = answer.completed.usage
    assert (usage.input_tokens, usage.output_tokens) == (250, 25)


@pytest.mark.parametrize(
    "dialect", [OPENAI_CHAT, *(pytest.param(one, marks=pytest.mark.long) for one in (OPENAI_RESPONSES, ANTHROPIC))]
)
@pytest.mark.parametrize("arguments", ['{"a": 1, "b"', "null", "[1]", '"{}"', "{}{}"])
async def test_arguments_that_are_no_object_are_told_to_the_model_which_goes_on(
    ask: Asking, dialect: Dialect, arguments: str
) -> None:
    steps = [Step(["Adding."], [Call("c1", "add", arguments)]), Step(["Then not."])]
    answer = await ask.whole(dialect, *steps, toolbox=Adding())
    [result] = answer.of(ToolCompleted)
    assert (result.call_id, result.is_error) == ("c1", True)
    assert (answer.completed.text, len(answer.requests)) == ("Then not.", 2)


async def test_the_tokens_of_all_steps_are_limited_together(ask: Asking) -> None:
    step = Step(SAID, TWO_CALLS, usage=(1_200, 50))
    answer = await ask.whole(OPENAI_CHAT, *[step] * 9, toolbox=Adding(), tokens=5_000)
    assert (answer.code, answer.error and answer.error.details["limit"], len(answer.requests)) == (
        "CHAT_LIMIT",
        "tokens",
        4,
    )
    assert (answer.used[-1].usage.input_tokens, answer.used[-1].usage.output_tokens) == (4_800, 200)
    answer = await ask.whole(OPENAI_CHAT, *[step] * 9, toolbox=Adding(), steps=2)
    assert (answer.error and answer.error.details["limit"], len(answer.requests)) == ("steps", 2)
    assert "was asked 2 times" in str(answer.error)


async def test_a_request_counts_from_its_beginning_unless_the_provider_refuses_it(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, OPENAI_CHAT.reply(Step(["One "], ends=False), is_whole=False))
    assert (answer.used[-1].usage.requests, answer.used[-1].usage.unmeasured) == (1, 1)
    answer = await ask.whole(OPENAI_CHAT, Reply(status=401))
    assert (answer.used[-1].usage.requests, answer.used[-1].usage.unmeasured) == (0, 0)


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, OPENAI_RESPONSES], ids=str)
async def test_tokens_that_a_provider_does_not_report_are_unknown(ask: Asking, dialect: Dialect) -> None:
    usage = (await ask.whole(dialect, Step(["Hello."], usage=None))).completed.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (None, None, None)


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_an_answer_at_the_limit_of_its_tokens_is_marked(ask: Asking, dialect: Dialect) -> None:
    assert (await ask.whole(dialect, Step(["One ", "two"], end="length"))).completed.end is End.LENGTH


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_an_answer_whose_end_the_provider_does_not_report_is_cut(ask: Asking, dialect: Dialect) -> None:
    last = (await ask.whole(dialect, *[Step(["One ", "two"], ends=False)] * 2)).completed
    assert (last.end, last.text) == (End.CUT, "One two")


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_a_connection_that_breaks_after_a_token_ends_the_answer(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, dialect.reply(Step(["One ", "two"], ends=False), is_whole=False))
    assert (answer.code, answer.text, len(answer.requests)) == ("ANSWER_CUT", "One two", 1)


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_a_provider_that_falls_silent_in_mid_answer_is_given_up(ask: Asking, dialect: Dialect) -> None:
    silent = dialect.reply(Step(["One "], ends=False), hangs=True)
    answer = await ask.whole(dialect, *[silent] * ATTEMPTS, silence_seconds=1.0, attempts=ATTEMPTS)
    frames = answer.frames
    while isinstance(frames[0], Retrying):  # nothing of the answer came within the second: the request is repeated
        frames.pop(0)
    assert (answer.code, [type(frame) for frame in frames]) == ("PROVIDER_TIMEOUT", [Token])


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_stopping_an_answer_closes_the_connection(ask: Asking, dialect: Dialect) -> None:
    async with provider(dialect.reply(Step(["One "], ends=False), hangs=True)) as server:
        async with aclosing(ask(server, dialect)) as frames:
            assert await anext(frames) == Token("One ")
        await server.left.wait()


@pytest.mark.parametrize("dialect", HTTP, ids=str)
async def test_a_malformed_answer_of_a_provider_has_a_code(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, Reply([b"data: {{{ no json\n\n", b"\xff\xfe\n\n"]), attempts=1)
    assert answer.code in ("PROVIDER_ANSWER_INVALID", "PROVIDER_FAILED")


@pytest.mark.long
@pytest.mark.parametrize("dialect", [OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC], ids=str)
async def test_characters_that_no_store_takes_are_replaced(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, Step(["a\0b", "\ud800c"]))
    assert answer.text == "a\ufffdb\ufffdc"
    assert "a\ufffdb" in json.dumps(answer.completed.history, ensure_ascii=False).encode().decode()


@pytest.mark.parametrize("dialect", [pytest.param(ANTHROPIC, marks=pytest.mark.long), OPENAI_CHAT], ids=str)
async def test_thoughts_are_no_part_of_the_text(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, Step(["Four."], thinking="Two and two."))
    assert Thought("Two and two.") in answer.frames
    assert answer.completed.text == answer.text == "Four."


async def test_the_cost_of_a_model_is_limited_if_its_price_is_known(ask: Asking) -> None:
    step = Step(SAID, TWO_CALLS, usage=(1_000_000, 0), model="gpt-4o")
    answer = await ask.whole(OPENAI_CHAT, step, toolbox=Adding(), cost_usd=Decimal("0.5"))
    assert answer.code == "CHAT_LIMIT"
    assert [one.usage.cost_usd for one in answer.used if not one.usage.unmeasured] == [Decimal("2.5")]
    unpriced = Dialect("unpriced", "openai:my-model", OPENAI_CHAT.encode)
    answer = await ask.whole(unpriced, cost_usd=Decimal(1))
    assert (answer.code, answer.requests) == ("PRICE_UNKNOWN", [])


async def test_an_answer_that_does_not_end_is_cut_off(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, Step(["x" * 500_000] * 20, ends=False))
    assert (answer.code, len(answer.text)) == ("CHAT_LIMIT", 4_000_000)
