"""The tools of an answer, as the engine asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.rules.tools.content import Picture


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that a model may call.

    Args:
        parameters: JSON Schema of the arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a call.

    Args:
        text: names the pictures, for models that cannot see them.
        pictures: sent besides, to models that can.
    """

    text: str
    pictures: Sequence[Picture] = ()


class Toolbox(Protocol):
    """The tools that a model may call now. They may change between two steps of an answer."""

    async def offers(self) -> list[ToolOffer]:
        """The tools."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        """Call a tool.

        Raises:
            WorkbenchError: it failed; the model reads the code and the message, and goes on.
        """
        ...


class NoTools:
    """No tools at all."""

    async def offers(self) -> list[ToolOffer]:
        """See `Toolbox`."""
        return []

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        """See `Toolbox`."""
        raise NotImplementedError
