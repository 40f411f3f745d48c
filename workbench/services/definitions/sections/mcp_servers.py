"""The MCP servers that the agents of a definition use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound
from workbench.ops import Command, Ctx
from workbench.rules.definitions.mcp_servers import McpServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.names import EntryName
from workbench.rules.definitions.secrets import masked_updates
from workbench.services.definitions import changes, tool_names
from workbench.services.definitions.changes import updated
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op

ServerName = Annotated[str, Field(max_length=1_000, description="The server's name; see agent_list_mcp_servers.")]
NewServerName = Annotated[EntryName, Field(description="A new name, such as files.")]
Config = Annotated[
    McpServer,
    Field(
        description="command, args, env and cwd; or url and headers. For secrets, references such as env://NAME, also "
        "as values of flags and in the query of url."
    ),
]


class McpServers(DefinitionAnswer):
    """MCP servers by name. Secrets that are written out are masked."""

    servers: dict[str, McpServer]
    count: int


class FoundMcpServer(DefinitionAnswer):
    """An MCP server, or null."""

    server: McpServer | None


@definition_op(reads=True, command=Command("define servers list AGENT", help="List the MCP servers of a definition."))
async def agent_list_mcp_servers(ctx: Ctx, agentTarget: AgentTarget) -> McpServers:
    """List the MCP servers of an agent definition."""
    servers = (await changes.without_secrets(ctx, agentTarget)).mcp_servers
    return McpServers(servers=dict(servers), count=len(servers))


@definition_op(
    reads=True,
    command=Command(
        "define servers show AGENT NAME",
        help="Print the configuration of a server as YAML; secrets that are written out are masked.",
    ),
)
async def agent_get_mcp_server(ctx: Ctx, agentTarget: AgentTarget, serverName: ServerName) -> FoundMcpServer:
    """Get an MCP server of an agent definition by name; null if it has no such server."""
    servers = (await changes.without_secrets(ctx, agentTarget)).mcp_servers
    return FoundMcpServer(server=servers.get(serverName))


@definition_op(command="define servers add")
async def agent_add_mcp_server(
    ctx: Ctx, agentTarget: AgentTarget, serverName: NewServerName, config: Config
) -> DefinitionChanged:
    """Add an MCP server to an agent definition. It is not started."""

    def edit(definition: Definition) -> Definition:
        servers = definition.mcp_servers
        if taken := next((name for name in servers if name.lower() == serverName.lower()), None):
            hint = Hint("agent_update_mcp_server", "Change it with {}.")
            raise Conflict("ALREADY_EXISTS", f"There is already a server {taken!r}.", hint)
        return updated(definition, mcp_servers={**servers, serverName: masked_updates.mcp_server(config)})

    await tool_names.require_unlike_definitions(ctx, serverName)
    return await changes.change(ctx, agentTarget, edit, f"MCP server {serverName} added")


@definition_op(command="define servers update")
async def agent_update_mcp_server(
    ctx: Ctx, agentTarget: AgentTarget, serverName: ServerName, config: Config
) -> DefinitionChanged:
    """Replace the configuration of an MCP server. A secret that was shown masked can be sent back masked."""

    def edit(definition: Definition) -> Definition:
        servers = definition.mcp_servers
        stored = servers[require(definition, serverName)]
        return updated(definition, mcp_servers={**servers, serverName: masked_updates.mcp_server(config, stored)})

    return await changes.change(ctx, agentTarget, edit, f"MCP server {serverName} changed")


@definition_op(
    destructive=True, command=Command("define servers delete AGENT NAME", help="Delete a server from a definition.")
)
async def agent_delete_mcp_server(ctx: Ctx, agentTarget: AgentTarget, serverName: ServerName) -> DefinitionChanged:
    """Remove an MCP server from an agent definition."""

    def edit(definition: Definition) -> Definition:
        require(definition, serverName)
        return updated(definition, mcp_servers={n: s for n, s in definition.mcp_servers.items() if n != serverName})

    return await changes.change(ctx, agentTarget, edit, f"MCP server {serverName} removed")


def require(definition: Definition, name: str) -> str:
    """The name of an MCP server that a definition has.

    Raises:
        NotFound: ``NOT_FOUND``.
    """
    if name not in definition.mcp_servers:
        names = ", ".join(definition.mcp_servers) or "none"
        raise NotFound("NOT_FOUND", f"There is no MCP server {name!r}. Its servers: {names}.")
    return name
