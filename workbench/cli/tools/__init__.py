"""The tools that models and agents may call: `tools`; the MCP servers that some come from: `tools servers`."""

from workbench.cli.tools import catalogue, servers

__all__ = ["catalogue", "servers"]
