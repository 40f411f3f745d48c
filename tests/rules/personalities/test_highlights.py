"""The highlights of a profile in a list."""

from __future__ import annotations

from typing import Any

from workbench.rules.personalities.highlights import LONGEST, highlights
from workbench.rules.personalities.profile import PersonalityTrait


def shown(**values: Any) -> list[tuple[str, str]]:
    traits = [PersonalityTrait.from_value(name, value) for name, value in values.items()]
    tools = [PersonalityTrait(name=f"tool{at}", description="Add.\nAnd more.", is_callable=True) for at in range(5)]
    return [(one.name, one.text) for one in highlights([*tools, *traits])]


def test_the_description_comes_first_then_traits_then_tools() -> None:
    found = shown(mood="calm", description="Adds", langs=["R", "C"], strict=True, none=None, last=1)
    traits = {"description": "Adds", "mood": "calm", "langs": "R, C", "strict": "true", "none": "null"}
    assert found == [*traits.items(), *((f"tool{at}", "Add. And more.") for at in range(3))]


def test_a_long_value_is_a_line_with_an_ellipsis() -> None:
    [(_, text), *_] = shown(notes={"a": "x" * 10_000})
    assert len(text) == LONGEST
    assert text.endswith("…")
