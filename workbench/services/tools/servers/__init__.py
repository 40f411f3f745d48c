"""The MCP servers whose tools the project uses: those of `.aiswarm/mcp.json`, and those of definitions while needed."""

from workbench.services.tools.servers import connections, server

__all__ = ["connections", "server"]
