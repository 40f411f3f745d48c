"""Connections to the MCP servers whose tools Workbench passes on. Knows no service.

- `target`: the target of a connection: a program, or a server at a URL
- `program_transport`, `http_transport`: the streams of messages, with a limit for each
- `lines`: a stream of bytes split into messages
- `offers`: a server's tools as it lists them, checked
- `call`: one call of a tool: its deadline, its progress, its questions
- `connection`: the connection to one server: opened, watched, and reopened when it is lost
- `connections`: all of them
- `servers_file`: the servers of a project
"""
