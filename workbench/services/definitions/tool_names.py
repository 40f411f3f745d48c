"""A definition in the mode `tools` offers its tools as an MCP server does, as `name__tool`: they share no name."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator

from workbench.errors import Conflict
from workbench.inert import inert_line
from workbench.ops import Ctx
from workbench.rules.definitions.model import Definition, Metadata, Mode
from workbench.rules.definitions.names import fitting


def place(metadata: Metadata) -> str:
    """What stands before the `__` in the names of a definition's tools."""
    name = metadata.name
    return fitting(name) if any(letter.isascii() and letter.isalnum() for letter in name) else name


async def require_unlike_definitions(ctx: Ctx, server: str) -> None:
    """Refuse the name of a server that is that of a definition which exports tools.

    Raises:
        Conflict: ``TOOL_NAME_TAKEN``.
    """

    def alike() -> Iterator[str]:
        for directory, head in ctx.definitions.heads():
            if head.mode is Mode.TOOLS and place(head).lower() == server.lower():
                yield ctx.definitions.display_path(directory.key)

    if taken := await to_thread(lambda: next(alike(), None)):
        text = f"The definition {taken} offers tools named {server}__… already. Choose another name for the server."
        raise Conflict("TOOL_NAME_TAKEN", text)


def require_unlike_servers(ctx: Ctx, before: Definition | None, after: Definition) -> None:
    """Refuse that a definition exports tools under the name of a server: the project's, or its own. Blocks.

    Args:
        before: what the definition was; what it shares already is no matter here.

    Raises:
        Conflict: ``TOOL_NAME_TAKEN``.
    """
    if shared := _shared(ctx, after).difference(() if before is None else _shared(ctx, before)):
        name = inert_line(after.metadata.name)
        text = f"The MCP server {min(shared)} offers tools named {min(shared)}__… already, and {name} would, too."
        raise Conflict("TOOL_NAME_TAKEN", f"{text} Choose another name for one of them.")


def _shared(ctx: Ctx, definition: Definition) -> set[str]:
    """The names of servers that mean the definition, too."""
    if definition.metadata.mode is not Mode.TOOLS:
        return set()
    called = place(definition.metadata).lower()
    return {name for name in (*ctx.upstreams.file.read().servers, *definition.mcp_servers) if name.lower() == called}
