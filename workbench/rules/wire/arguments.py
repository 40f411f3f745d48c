"""Arguments of operations, as they are sent.

Alone: `rules/plain.py` imports nothing of Workbench.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import BadInput
from workbench.rules.plain import NotPlain, Plain


class _Argument(Plain):
    """A value that is sent: all of it, and what arrives is the same."""

    def binary(self, value: bytes) -> Any:
        """Bytes."""
        raise self.refused(value, "JSON has no bytes. Give a text, such as their base64, or the path of a file")

    def _of(self, value: Any) -> Any:
        """An object of a notebook that says itself what names it; anything else as it is."""
        name_of = getattr(type(value), "_as_argument_", None)
        return name_of(value) if callable(name_of) else super()._of(value)


def plain(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation as JSON has them: numbers, dates and tables of every library.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``: one has no form in JSON.
    """
    try:
        return {key: _Argument().of(value, key) for key, value in arguments.items()}
    except NotPlain as error:
        raise BadInput("INVALID_ARGUMENTS", f"{name}: {error}.", problems=[]) from None
