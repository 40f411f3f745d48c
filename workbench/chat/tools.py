"""The tools of an answer, as the engine asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that a model may call.

    Args:
        parameters: JSON Schema of the arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


class Toolbox(Protocol):
    """The tools that a model may call now. They may change between two steps of an answer."""

    async def offers(self) -> list[ToolOffer]:
        """The tools."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> str:
        """Call a tool; the result as text.

        Raises:
            WorkbenchError: it failed; the model reads the code and the message, and goes on.
        """
        ...


class NoTools:
    """No tools at all."""

    async def offers(self) -> list[ToolOffer]:
        """See `Toolbox`."""
        return []

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> str:
        """See `Toolbox`."""
        raise NotImplementedError
