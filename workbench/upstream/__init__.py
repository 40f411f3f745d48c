"""Connections to the MCP servers whose tools Workbench passes on. Knows no service.

- `program_transport`, `http_transport`: a program or a server at a URL, its stream of messages, and a limit for each
- `client`: the client of the MCP package, connected to either
- `lines`: a stream of bytes split into messages
- `offers`: a server's tools as it lists them, checked
- `call`: one call of a tool: its deadline, its progress, its questions
- `connection`: the connection to one server: opened, watched, and reopened when it is lost
- `connections`: all of them
- `servers_file`: the servers of a project
"""
