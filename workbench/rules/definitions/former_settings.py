"""Settings as former versions wrote them: ten at once, most of which nobody had set.

A setting that equalled its default was shown, and never sent. A block that states all ten was written by Workbench,
when the last setting was removed: what equals its default in it counts as not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULTS: Mapping[str, Any] = {
    "maxChatTurns": 20,
    "maxOutputTokens": 1_000,
    "temperature": 0.5,
    "topP": 0.5,
    "theme": "light",
    "contextTopK": 20,
    "contextTopN": 5,
    "contextIncludeScore": 0.7,
    "toolPermission": "tool",
    "model": "",
}
_UNUSED = ("theme", "contextTopK", "contextTopN", "contextIncludeScore")
"""What nothing ever used."""


def is_former(settings: Any) -> bool:
    """Whether a former version wrote this block."""
    return isinstance(settings, Mapping) and settings.keys() >= DEFAULTS.keys()


def stated(settings: Any) -> Any:
    """What a block of settings states: without what nobody has set."""
    if not is_former(settings):
        return settings
    return {key: value for key, value in settings.items() if key not in DEFAULTS or value != DEFAULTS[key]}


def hashed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the hash of a definition takes them: equal to the hash of former versions for what these sent.

    Args:
        settings: those that are set.
    """
    explicit = sorted(key for key in settings if key not in _UNUSED and settings[key] == DEFAULTS.get(key, ...))
    return {**DEFAULTS, **settings} | ({"set": explicit} if explicit else {})
