"""The MCP shell: operations as tools and resources, over HTTP in the server and over standard input and output."""
