"""The limits of a conversation: answers, tokens, costs and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.services.conversations.conftest import Chat
from workbench.errors import Conflict
from workbench.rules.chat.limits import ConversationLimits, Spent, money_left, require_left, tokens_left
from workbench.services.conversations.deadline import Deadline

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]
NOTHING = Spent(answers=0, tokens=0, cost_usd=0.0, unpriced=0)


def test_a_limit_that_is_reached_is_named() -> None:
    for limit, most, spent in (
        ("turns", 1, {"answers": 1}),
        ("tokens", 100, {"tokens": 100}),
        ("cost_usd", 0.5, {"cost_usd": 0.5}),
        ("cost_usd", 0.5, {"unpriced": 1}),
    ):
        used, limits = replace(NOTHING, **spent), ConversationLimits(**{limit: most})
        with pytest.raises(Conflict, match="CHAT_LIMIT") as caught:
            require_left(limits, used)
        assert caught.value.details == {"limit": limit}
        require_left(limits, NOTHING)
        require_left(ConversationLimits(), used)


def test_an_answer_may_use_the_rest_of_the_token_and_cost_limits() -> None:
    used = Spent(answers=1, tokens=60, cost_usd=0.25, unpriced=0)
    assert tokens_left(ConversationLimits(tokens=100), used) == 40
    assert money_left(ConversationLimits(cost_usd=1.0), used) == 0.75
    assert (tokens_left(ConversationLimits(), used), money_left(ConversationLimits(), used)) == (None, None)


async def test_a_conversation_beyond_its_turns_takes_no_message_until_the_limit_is_raised(begin: Begin) -> None:
    chat: Chat = await begin(limits={"turns": 1})
    await chat.ask("One")
    usage = (await chat.call("get_conversation"))["usage"]
    assert (usage["cost_usd"], usage["unpriced"], usage["requests"]) == (None, 1, 1)
    with pytest.raises(Conflict, match="CHAT_LIMIT"):
        await chat.send("Two")
    assert len(await chat.turns()) == 2
    await chat.call("update_conversation", limits={"turns": 2})
    assert (await chat.ask("Two"))["state"] == "completed"


async def test_an_answer_that_exceeds_its_time_limit_fails(begin: Begin) -> None:
    chat: Chat = await begin([{"say": "one two three", "pause": 0.4}], limits={"seconds": 0.6})
    answer = await chat.ask("Count")
    assert (answer["state"], answer["error_code"]) == ("failed", "CHAT_LIMIT")
    assert answer["error"] == "The answer took longer than 0.6 s."


async def test_waiting_for_the_operator_does_not_count_as_time_of_an_answer() -> None:
    deadline = Deadline(0.05)
    async with deadline.enforced():
        with deadline.paused(), deadline.paused():
            await asyncio.sleep(0.1)  # longer than the limit
    with pytest.raises(Conflict, match="CHAT_LIMIT"):
        async with deadline.enforced():
            with deadline.paused():
                pass
            await asyncio.Event().wait()
