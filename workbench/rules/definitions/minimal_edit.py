"""Changes what a file states as little as possible: what a person wrote stays, also where it states a default."""

from __future__ import annotations

from typing import Any

from workbench.rules.yaml_lines import is_same


def edited(stated: Any, old: Any, new: Any, shortest: Any) -> Any:
    """What a file shall state, as JSON values.

    Args:
        stated: what it states.
        old: what that means, with all defaults.
        new: what it shall mean, with all defaults.
        shortest: what it shall mean, without defaults.
    """
    if is_same(old, new):
        return stated
    if isinstance(stated, dict) and isinstance(old, dict) and isinstance(new, dict):
        return _mapping(stated, old, new, shortest)
    if isinstance(stated, list) and isinstance(old, list) and isinstance(new, list) and len(stated) == len(old):
        return [_item(stated, old, item, short) for item, short in zip(new, shortest, strict=True)]
    return shortest


def _mapping(stated: dict[str, Any], old: dict[str, Any], new: dict[str, Any], shortest: dict[str, Any]) -> Any:
    kept = {
        key: edited(value, old[key], new[key], shortest.get(key, {} if isinstance(new[key], dict) else new[key]))
        for key, value in stated.items()
        if key in old and key in new and (new[key] is not None or old[key] is None)
    }
    return kept | {key: value for key, value in shortest.items() if key not in kept}


def _item(stated: list[Any], old: list[Any], item: Any, shortest: Any) -> Any:
    """An item of a list as it is stated already, or without defaults."""
    forms = (form for form, meaning in zip(stated, old, strict=True) if is_same(meaning, item))
    return next(forms, shortest)
