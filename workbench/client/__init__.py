"""Clients for programs: the same `call(name, **arguments)` over HTTP, over MCP and over WebSocket.

Errors come back as the `WorkbenchError` the server raised.
"""

from workbench.client.agent import Agent
from workbench.client.http import TIMEOUT_SECONDS, HttpClient
from workbench.client.mcp import McpClient
from workbench.client.messages import no_server
from workbench.client.sync import SyncAgent

__all__ = ["TIMEOUT_SECONDS", "Agent", "HttpClient", "McpClient", "SyncAgent", "no_server"]
