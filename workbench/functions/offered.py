"""A Python function that a process offers as a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.rules.tools.function import FunctionTool

LONGEST_AGENT = 128


@dataclass(frozen=True)
class OfferedFunction:
    """A function and how it is offered.

    Args:
        title: its name for people; None: derived from its name.
        read_only: it changes nothing, so that agents may call it without a question to the operator.
        seconds: how long a call may take; None: as the setting ``tool_seconds`` says.
        trait: the agent whose trait it is on the KOI network; empty: the one named after this project's node; None:
            it is no trait.
        replaces: take the name from another process that offers a tool with it.
    """

    tool: FunctionTool
    title: str | None
    read_only: bool
    seconds: float | None
    trait: str | None = None
    replaces: bool = False

    def offer(self) -> dict[str, Any]:
        """What the server is sent."""
        return {
            "name": self.tool.name,
            "title": self.title,
            "description": self.tool.description,
            "parameters": self.tool.input_schema,
            "result": self.tool.returned.schema,
            "read_only": self.read_only,
            "version": self.tool.version,
            "trait": self.trait,
            "replaces": self.replaces,
        }


def trait_owner(trait: bool | str) -> str | None:
    """`OfferedFunction.trait` of what a person wrote: True, an agent's name, or False.

    Raises:
        BadInput: ``BAD_TOOL``: no agent can have this name.
    """
    if isinstance(trait, bool):
        return "" if trait else None
    if not 0 < len(trait) <= LONGEST_AGENT or "/" in trait:
        raise BadInput("BAD_TOOL", f"trait is True or an agent's name: up to {LONGEST_AGENT} characters without '/'.")
    return trait
