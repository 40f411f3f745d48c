"""Results and arguments of tools as JSON text that can be stored and shown; `rules/plain.py` makes values JSON."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from workbench.rules.wire import json_safety


def as_json(value: Any) -> str:
    """A JSON value as text; NaN and infinity by name. One that no store takes is shown by its representation."""
    try:
        text = to_json(value, inf_nan_mode="strings").decode()
        json_safety.decode(text)
    except (ValueError, RecursionError):  # it contains itself, nests too deeply, or has characters that no store takes
        text = to_json(_represented(value)).decode()
    return text


def shortened(text: str, limit: int) -> str:
    """The beginning of a text, as far as a limit of characters allows."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def is_small(value: Any, nodes: int = 500, characters: int = 50_000) -> bool:
    """Whether a JSON value is small enough to be handled on a loop that others use."""
    waiting = [value]
    while waiting and nodes > 0 and characters > 0:
        nodes -= 1
        one = waiting.pop()
        if isinstance(one, str):
            characters -= len(one)
        elif isinstance(one, dict):
            characters -= sum(map(len, map(str, one)))
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return not waiting and characters > 0


def _represented(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # somebody else's code
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
