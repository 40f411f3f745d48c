"""What a list shows of a profile: its first traits and tools, a line of text each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workbench.model import Wire
from workbench.rules.personalities.profile import PersonalityTrait

MOST_TRAITS = 5
MOST_TOOLS = 3
LONGEST = 200
"""Characters of a text; a longer one ends with an ellipsis."""


class Highlight(Wire):
    """A trait in a list. `text`: its value, or what a tool does."""

    name: str
    is_callable: bool
    text: str


def highlights(traits: Sequence[PersonalityTrait]) -> list[Highlight]:
    """The description, the first other traits, and the first tools, each in the order of the profile."""
    plain = sorted((one for one in traits if not one.is_callable), key=lambda one: one.name != "description")
    tools = [one for one in traits if one.is_callable]
    return [
        *(Highlight(name=one.name, is_callable=False, text=_line(_text(one.value))) for one in plain[:MOST_TRAITS]),
        *(Highlight(name=one.name, is_callable=True, text=_line(one.description)) for one in tools[:MOST_TOOLS]),
    ]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(_text, value))
    return json.dumps(value, ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join(text[: 4 * LONGEST].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
