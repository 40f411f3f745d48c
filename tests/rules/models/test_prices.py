"""What a request to a model cost on a day, by the table that comes with Workbench and by one of a person's own."""

from __future__ import annotations

import datetime
from decimal import Decimal

from workbench.rules.models.prices import MILLION, Price, Prices, parse
from workbench.rules.models.usage import ModelUsage
from workbench.state.settings import shipped

TODAY = datetime.date(2026, 11, 28)
SHIPPED = Prices((), parse(shipped("data", "prices.yaml").read_text("utf-8"), "prices.yaml"))


def cost(model: str, *, day: datetime.date = TODAY, prices: Prices = SHIPPED, **tokens: int) -> Decimal | None:
    return prices.cost(model, ModelUsage(**{"input": 0, "output": 0, **tokens}), day)


def test_a_price_counts_from_its_day() -> None:
    argon = [cost("gemini-4-argon", day=datetime.date(2026, month, 1), output=MILLION) for month in (11, 12)]
    sonnet = [cost("claude-sonnet-5-5", day=datetime.date(2026, 10, day), cached=MILLION) for day in (6, 7)]
    assert (argon, sonnet) == ([10, 20], [Decimal("0.2"), Decimal("0.1")])
    assert cost("claude-sonnet-5-5", day=datetime.date(2026, 9, 1), output=1) is None


def test_a_long_prompt_has_the_price_of_long_prompts_for_all_of_its_tokens() -> None:
    short, long = (cost("gpt-6.1-sol", input=prompt - 1_000, cached=1_000, output=0) for prompt in (272_000, 272_001))
    assert (short, long) == (Decimal("0.5421"), Decimal("1.084204"))


def test_a_model_that_no_row_fits_and_a_class_without_a_price_have_no_known_cost() -> None:
    assert cost("llama-9", input=1) is None
    assert cost("gemini-2.5-flash", input=1, cache_write=1) is None
    assert SHIPPED.cost(None, ModelUsage(1, output=1), TODAY) is None
    assert SHIPPED.cost("gpt-5", ModelUsage(), TODAY) is None


def test_the_prices_of_a_person_come_before_newer_ones() -> None:
    own = Prices([Price(model="gpt-*", input=Decimal(0), output=Decimal(1))], SHIPPED.others)
    assert cost("gpt-6.1-sol", prices=own, output=MILLION) == 1
    assert cost("claude-opus-5-5", prices=own, output=MILLION) == 20
