"""What models cost: tables of prices in US dollars for a million tokens, with the day from which each counts."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import BadInput
from workbench.rules.models.usage import ModelUsage
from workbench.rules.reasons import reason
from workbench.rules.yaml_text import InvalidYaml, load

MILLION = 1_000_000
Amount = Annotated[Decimal, Field(ge=0, le=1_000_000)]


class Price(BaseModel):
    """The price of models.

    Args:
        model: their ids, with `*` for any characters.
        since: the day from which it counts.
        up_to: the longest prompt, in tokens, that it counts for; None: any.
        input, cached, cache_write, cache_write_hour, output: dollars for a million tokens of a class.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1, max_length=200)]
    since: datetime.date = datetime.date(2020, 1, 1)
    up_to: Annotated[int, Field(gt=0)] | None = None
    input: Amount
    output: Amount
    cached: Amount | None = None
    cache_write: Amount | None = None
    cache_write_hour: Amount | None = None

    def fits(self, name: str, usage: ModelUsage, day: datetime.date) -> bool:
        """Whether it is the price of a model on a day, for a prompt of this length."""
        is_long = self.up_to is not None and usage.prompt > self.up_to
        return self.since <= day and not is_long and fnmatchcase(name, self.model)

    def cost(self, usage: ModelUsage) -> Decimal | None:
        """What a request cost; None: a class of tokens that it used has no price, or its usage is not known."""
        if usage.input is None or usage.output is None:
            return None
        total = Decimal(0)
        for name in ("input", "cached", "cache_write", "cache_write_hour", "output"):
            count, price = getattr(usage, name) or 0, getattr(self, name)
            if count and price is None:
                return None
            total += count * (price or 0)
        return total / MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices: those of a person come before others. Of the rows that fit a model, the newest on the day counts,
    and of those the one for the shortest prompts."""

    own: Sequence[Price] = ()
    others: Sequence[Price] = ()

    def cost(self, model: str | None, usage: ModelUsage, day: datetime.date) -> Decimal | None:
        """What a request to a model cost on a day; None: it is not known."""
        if model is None:
            return None
        name = model.removeprefix("models/")
        for rows in (self.own, self.others):
            if fitting := [row for row in rows if row.fits(name, usage, day)]:
                return max(fitting, key=lambda row: (row.since, -(row.up_to or math.inf))).cost(usage)
        return None


class _Row(dict[str, object]):
    """A mapping of the table, and the line that it begins in."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def parse(text: str, place: str) -> Sequence[Price]:
    """The prices in a table in YAML: a list below `prices`.

    Raises:
        BadInput: ``PRICES_INVALID``; it names the line.
    """
    try:
        fields = load(text, _Row)
    except InvalidYaml as error:
        where = "" if error.line is None else f" (line {error.line})"
        raise _invalid(place, f"it is not YAML: {error}{where}") from None
    rows = fields.get("prices") if isinstance(fields, dict) else None
    if not isinstance(rows, list):
        raise _invalid(place, "it must have a list below `prices`")
    return [_row(row, number, place) for number, row in enumerate(rows, 1)]


def _row(row: object, number: int, place: str) -> Price:
    try:
        return Price.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        where = f"line {row.line}" if isinstance(row, _Row) else f"row {number}"
        raise _invalid(place, f"{where}: {field or 'it'}: {reason(first)}") from None


def _invalid(place: str, why: str) -> BadInput:
    return BadInput("PRICES_INVALID", f"The table of prices {place} cannot be used: {why}. Correct it, or remove it.")
