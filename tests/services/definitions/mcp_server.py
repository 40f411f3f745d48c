"""A real MCP server on standard input and output. Its tool tells which files it can read, and its secret."""

import os
import sys
from contextlib import suppress

from mcp.server import MCPServer

server = MCPServer("greeter", version="2.1")
seen = []
for name in sys.argv[1:]:
    with suppress(OSError), open(name, "rb"):
        seen.append(name)


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


server.tool(description=f"reads {seen}; knows {os.environ.get('API_TOKEN', 'nothing')}")(greet)
server.run("stdio")
