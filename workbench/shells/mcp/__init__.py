"""The MCP shell: operations as tools, over streamable HTTP in the server and over standard input and output."""
