"""Conditions on metrics, such as ``loss<0.1``, as lists of runs take them."""

from __future__ import annotations

import re
from typing import Any

from workbench.errors import BadInput
from workbench.rules.runs.values import spelled

NAME = r"^[^<>=!\x00-\x1f\x7f]+$"
"""Names of metrics. The characters of conditions, and control characters, are left out."""
_CONDITION = re.compile(r"\s*([^<>=!]+?)\s*(<=|>=|!=|==|=|<|>)\s*([^\s<>=!].*?)?\s*", re.DOTALL)
_FOR_TEXTS = ("=", "!=")


def parse(text: str) -> dict[str, Any]:
    """A condition as queries take it: `name`, `relation` and either `number` or `text`, of which the other is null.

    Raises:
        BadInput: ``BAD_CONDITION``.
    """
    found = _CONDITION.fullmatch(text)
    if found is None or not found[3]:
        raise _bad(text, "write a metric's name, one of < <= > >= = !=, and a value, such as loss<0.1")
    relation, value = found[2].replace("==", "="), _value(found[3])
    if isinstance(value, str) and relation not in _FOR_TEXTS:
        raise _bad(text, f"{value!r} is not a finite number, so only = and != compare it")
    text_value = None if isinstance(value, float) else value
    return {"name": found[1], "relation": relation, "number": None if text_value else value, "text": text_value}


def _value(text: str) -> float | str:
    """A value as it is stored."""
    try:
        return spelled(float(text))
    except ValueError:
        return text


def _bad(text: str, why: str) -> BadInput:
    return BadInput("BAD_CONDITION", f"{text!r} is no condition: {why}.")
