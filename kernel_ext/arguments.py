"""Arguments of operations as JSON has them: numbers and arrays of NumPy, which DataFrames are made of, are plain."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """A value with plain numbers and lists in place of those of NumPy, at any depth; others stay as they are."""
    if type(value) is dict:
        return {name: plain(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return [plain(one) for one in value]
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value
