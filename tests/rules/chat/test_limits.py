"""What is left of the limits of a conversation: a table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.given import refused
from workbench.rules.chat.limits import ConversationLimits, Spent, money_left, require_left, tokens_left

SPENT = Spent(answers=1_000, tokens=2_000, cost_usd=0.5, unpriced=0)
END = ". Raise it with update_conversation, or begin a new one."


@pytest.mark.parametrize(
    ("limit", "unpriced", "why"),
    [
        ({}, 1, None),
        ({"turns": 1_001, "tokens": 2_001, "cost_usd": 0.51, "seconds": 1}, 0, None),
        ({"turns": 1_000}, 0, "its 1,000 answers are used up"),
        ({"tokens": 2_000}, 0, "it has used 2,000 of 2,000 tokens"),
        ({"cost_usd": 0.5}, 0, "it has cost 0.5000 of 0.5 US dollars"),
        ({"cost_usd": 9}, 1, "the price of its model is unknown, so its limit of costs cannot be kept"),
    ],
)
def test_a_limit_that_is_reached_is_named(limit: dict[str, Any], unpriced: int, why: str | None) -> None:
    limits, spent = ConversationLimits(**limit), Spent(SPENT.answers, SPENT.tokens, SPENT.cost_usd, unpriced)
    if why is None:
        require_left(limits, spent)
        return
    error = refused("CHAT_LIMIT", require_left, limits, spent)
    assert error.message == f"The conversation has reached a limit: {why}{END}"
    assert error.details == {"limit": next(iter(limit))}


def test_some_tokens_are_always_left_and_no_money_is_owed() -> None:
    tokens = {None: None, 2_005: 5, 2_001: 1, 2_000: 1, 7: 1}
    assert {limit: tokens_left(ConversationLimits(tokens=limit), SPENT) for limit in tokens} == tokens
    money = {None: None, 2.0: 1.5, 0.5: 0.0, 0.25: 0.0}
    assert {limit: money_left(ConversationLimits(cost_usd=limit), SPENT) for limit in money} == money
