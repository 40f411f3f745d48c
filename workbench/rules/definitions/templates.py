"""Prompt templates of tools: `{parameter}` is replaced; all other braces stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def placeholders(template: str) -> set[str]:
    """The names in braces."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace each placeholder by its value, once: braces in values stay. Values other than text are JSON.

    A placeholder without a value, such as that of an optional parameter, becomes empty.
    """
    return _PLACEHOLDER.sub(lambda found: _as_text(values.get(found[1])), template)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
