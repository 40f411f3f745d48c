"""What a definition says about the tools of its models: whether a person is asked first, and which are offered."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.rules.definitions.mcp_servers import ToolRule, asks_first
from workbench.rules.definitions.model import Definition


@dataclass(frozen=True, slots=True)
class Statement:
    """Whether a person is asked before a tool runs, and where the definition says so.

    Args:
        place: the name that the operator's trust has for it; see `trust.Need`.
    """

    asks: bool
    place: str


def statement(definition: Definition, server: str | None, tool: str) -> Statement | None:
    """What a definition says about asking for a tool; None: nothing.

    Args:
        server: one of its MCP servers; None, or any other name: the tool is of another source.
        tool: its name on the server.
    """
    permission = definition.settings.tool_permission
    if permission != "tool":
        return Statement(permission == "always", "settings.toolPermission")
    found = definition.mcp_servers.get(server or "")
    if found is None:
        return None
    rule = found.tools.get(tool, ToolRule())
    asks = asks_first(rule, found.server_tool_defaults)
    own = "serverToolDefaults" if rule.permission_required is None else f"tools.{tool}"
    return None if asks is None else Statement(asks, f"mcpServers.{server}.{own}")


def is_on_request(definition: Definition, server: str | None, tool: str) -> bool:
    """Whether a model is offered a tool only when the person asks for it by name (``include: manual``)."""
    found = definition.mcp_servers.get(server or "")
    if found is None:
        return False
    return (found.tools.get(tool, ToolRule()).include or found.server_tool_defaults.include) == "manual"
