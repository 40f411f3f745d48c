"""Tools of an MCP server are called `name__tool`, and so are those that a definition exports: they share no name."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Collection, Iterator

from workbench.errors import Conflict
from workbench.ops import Ctx
from workbench.present.inert import inert_line
from workbench.rules.definitions.model import Definition, DefinitionMetadata, Mode
from workbench.rules.definitions.names import fitting


def place(metadata: DefinitionMetadata) -> str:
    """The prefix, before the `__`, of the names of a definition's tools."""
    name = metadata.name
    return fitting(name) if any(letter.isascii() and letter.isalnum() for letter in name) else name


async def require_unlike_definitions(ctx: Ctx, server: str, *, of_project: bool = False) -> None:
    """Refuse the name of a server that is that of a definition which exports tools.

    Args:
        of_project: the server shall be one of the project, for which the names of the definitions' servers are taken.

    Raises:
        Conflict: ``TOOL_NAME_TAKEN``.
    """

    def alike() -> Iterator[str]:
        for directory, head in ctx.definitions.heads():
            shown = ctx.definitions.display_path(directory.key)
            if head.mode is Mode.TOOLS and place(head).lower() == server.lower():
                yield f"The definition {shown} offers tools named {server}__… already."
            elif of_project and _alike([server], ctx.definitions.servers(directory)):
                yield f"The definition {shown} has an MCP server {server} of its own."

    if taken := await to_thread(lambda: next(alike(), None)):
        raise Conflict("TOOL_NAME_TAKEN", f"{taken} Choose another name for the server.")


def require_unlike_servers(ctx: Ctx, before: Definition | None, after: Definition) -> None:
    """Refuse that a definition exports tools under the name of a server, or names a server as the project does. Blocks.

    Args:
        before: what the definition was; what it shares already is no matter here.

    Raises:
        Conflict: ``TOOL_NAME_TAKEN``.
    """
    was, name = before or after.model_copy(update={"mcp_servers": {}}), inert_line(after.metadata.name)
    if shared := _exported_as(ctx, after).difference(() if before is None else _exported_as(ctx, before)):
        text = f"The MCP server {min(shared)} offers tools named {min(shared)}__… already, and {name} would, too."
        raise Conflict("TOOL_NAME_TAKEN", f"{text} Choose another name for one of them.")
    if shared := shared_with_project(ctx, after).difference(shared_with_project(ctx, was)):
        text = f"The project has an MCP server {min(shared)}, and {name} would have one of that name, too."
        raise Conflict("TOOL_NAME_TAKEN", f"{text} Choose another name for one of them.")


def shared_with_project(ctx: Ctx, definition: Definition) -> set[str]:
    """The names of a definition's servers that servers of the project have, too: in its scope, they mean neither."""
    return _alike(definition.mcp_servers, ctx.local.upstreams.file.read().servers) if definition.mcp_servers else set()


def _exported_as(ctx: Ctx, definition: Definition) -> set[str]:
    """The names of servers that mean the definition, too."""
    if definition.metadata.mode is not Mode.TOOLS:
        return set()
    return _alike([*ctx.local.upstreams.file.read().servers, *definition.mcp_servers], [place(definition.metadata)])


def _alike(names: Collection[str], others: Collection[str]) -> set[str]:
    """Those of the names that are among others; upper and lower case are the same."""
    taken = {other.lower() for other in others}
    return {name for name in names if name.lower() in taken}
