"""Budgets: how much may be spent, in tokens, in US dollars, in attempts, and of time.

A budget is written as its amounts, ``20usd, 100k tokens, 3 attempts, 8h``, or as a mapping: ``{usd: 20, seconds: 60}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from workbench.errors import BadInput
from workbench.rules.reasons import reason

NEARLY = 0.8
"""The share of a limit from which it is nearly used up."""
LIMITS = ("tokens", "usd", "attempts", "seconds")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([kM]?)\s*(usd|token|attempt|hour|h|minute|min|second|s)s?", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
_UNITS = {"h": 3_600, "hour": 3_600, "min": 60, "minute": 60, "s": 1, "second": 1}
"""The units of time, in seconds."""


class Budget(BaseModel):
    """What may be spent. `tokens` are all that are read and written, cached ones too; `seconds`: how long at least one
    attempt may be under way. None: there is no such limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    tokens: int | None = Field(None, ge=0, le=10**15)
    usd: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)
    attempts: int | None = Field(None, ge=0, le=10**6)
    seconds: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if all(getattr(self, name) is None for name in LIMITS):
            raise ValueError("it limits nothing")
        return self


def _amounts(text: Any) -> dict[str, float]:
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else [""]
    amounts: dict[str, float] = {}
    for part in parts:
        found = _AMOUNT.fullmatch(part)
        unit = found[3].lower() if found else ""
        name = "seconds" if unit in _UNITS else next((one for one in LIMITS if unit and one.startswith(unit)), None)
        if found is None or name is None or name in amounts:
            raise ValueError("write amounts such as `20usd, 100k tokens, 3 attempts, 8h`, each once")
        amounts[name] = float(found[1]) * _TIMES[found[2].lower()] * _UNITS.get(unit, 1)
    return amounts


def parse(text: str) -> dict[str, Any]:
    """The budget that a text states, as `in_short` returns it.

    Raises:
        BadInput: ``BAD_BUDGET``.
    """
    try:
        return in_short(text) or {}
    except ValueError as error:
        raise BadInput("BAD_BUDGET", f"{text!r} states no budget: {error}.") from None


def in_short(value: Any) -> dict[str, Any] | None:
    """A budget as plain data; None: none.

    Raises:
        ValueError: what is wrong with it.
    """
    if value is None:
        return None
    try:
        budget = Budget.model_validate(value if isinstance(value, Mapping) else _amounts(value))
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        where = ".".join(map(str, found["loc"]))
        raise ValueError(f"{where}: {reason(found)}" if where else reason(found)) from None
    return budget.model_dump(exclude_none=True)


BudgetTerm = Annotated[
    Any,
    BeforeValidator(in_short),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "object", "null")]}),
]
"""A budget in plans, as `in_short` returns it."""


def reached(spent: Mapping[str, float], limits: Mapping[str, float | None], share: float = 1.0) -> list[str]:
    """The names of the limits of which a share is spent."""
    return [name for name in LIMITS if (limit := limits[name]) is not None and spent[name] >= limit * share]


def in_words(amounts: Mapping[str, float | None], names: tuple[str, ...] | list[str] = LIMITS) -> str:
    """Amounts in words; empty if there are none."""
    stated = [(name, value) for name in names if (value := amounts[name]) is not None]
    return ", ".join(_in_words(name, value) for name, value in stated)


def _in_words(name: str, value: float) -> str:
    if name == "usd":
        return f"${value:,.2f}"
    if name != "seconds":
        return f"{value:,} {name.removesuffix('s') if value == 1 else name}"
    unit, seconds = ("h", 3_600) if value >= 7_200 else ("min", 60) if value >= 120 else ("s", 1)
    return f"{round(value / seconds, 1):,g} {unit}"
