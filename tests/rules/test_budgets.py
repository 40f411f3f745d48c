"""What states a budget, and how."""

from __future__ import annotations

import pytest

from tests import given
from workbench.rules.budgets import in_short, in_words, parse


@pytest.mark.parametrize(
    "text", ["", "20", "20eur", "-5usd", "5usd, 6usd", "2h, 5min", "nan usd", "inf h", "1e9 tokens", "2 000 tokens"]
)
def test_what_states_no_budget_is_refused(text: str) -> None:
    assert "such as `20usd" in str(given.refused("BAD_BUDGET", parse, text))


def test_a_budget_is_written_in_short() -> None:
    stated = {"usd": 20.0, "tokens": 500_000, "attempts": 3, "seconds": 5_400.0}
    assert parse("20usd, 500k tokens, 3 attempts, 90min") == stated == in_short(stated)
    assert stated == parse("1.5h,20 USD,0.5Mtokens,3 attempts")


def test_amounts_are_said_in_words() -> None:
    amounts = {"tokens": 500_000, "usd": 20.0, "attempts": None, "seconds": 28_800.0}
    assert in_words(amounts) == "500,000 tokens, $20.00, 8 h"
    assert in_words({"seconds": 5_025.0}, ["seconds"]) == "83.8 min"
