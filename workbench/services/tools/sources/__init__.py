"""Where tools come from, one module each. `SOURCES` is the only list.

A module has `tools(ctx, scope)`, all tools for a scope, and `find(ctx, scope, name)`, one of them or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from workbench.ops import Ctx
from workbench.services.tools.sources import definitions, functions, operations, traits, upstream
from workbench.services.tools.tool import ToolInfo, ToolScope


class ToolSource(Protocol):
    """Finds the tools of one kind."""

    async def tools(self, ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
        """All tools for a scope, in a fixed order."""
        ...

    async def find(self, ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
        """The tool with a name, if this source has it."""
        ...


SOURCES: Sequence[ToolSource] = (operations, functions, upstream, definitions, traits)
