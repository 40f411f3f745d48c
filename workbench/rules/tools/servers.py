"""The MCP servers of a project, in the form that MCP clients share: `{"mcpServers": {"NAME": {…}}}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench.rules.definitions.mcp_servers import HttpServer, McpServer, StdioServer
from workbench.rules.reasons import reason

KEY = "mcpServers"
KEYS = (KEY, "servers")
"""The key of the servers in the file: that of most clients, and that of VS Code."""
MOST_SERVERS = 100
NOTEBOOK = "notebook"
"""The grant for all functions of notebooks."""
NETWORK = "network"
"""The grant for the traits of all other nodes; `network:NAME` is for those of one agent, or for one trait."""
RESERVED = (NOTEBOOK, "workbench", NETWORK)
"""Words of the language of grants: nobody who offers a tool is named by them."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")
_USED = ("type", "command", "args", "env", "cwd", "read", "write", "connect", "url", "headers")
_VARIABLE = re.compile(r"\$\{[^{}\s]+\}")
_ADAPTER: TypeAdapter[StdioServer | HttpServer] = TypeAdapter(McpServer)


@dataclass(frozen=True, slots=True)
class ServerList:
    """The servers of a project.

    Args:
        servers: by name, also those that are switched off.
        disabled: the names of those that are switched off.
        problems: why others cannot be used, by name; of the whole file by an empty name.
    """

    servers: Mapping[str, StdioServer | HttpServer] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    problems: Mapping[str, str] = field(default_factory=dict)


def key_of(data: Mapping[str, Any]) -> str:
    """The key of the servers in the content of a file."""
    return next((key for key in KEYS if key in data), KEY)


def parsed(data: Any) -> ServerList:
    """The servers in the content of a file. Keys of other clients, such as ``autoApprove``, are left out."""
    entries = data.get(key_of(data), {}) if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping):
        return ServerList(problems={"": f'it must be an object with the key "{KEY}", which is an object'})
    if not any(key in data for key in KEYS) and (bare := [name for name, one in data.items() if _is_server(one)]):
        return ServerList(problems={"": f'put {", ".join(bare[:5])} into an object under the key "{KEY}"'})
    servers: dict[str, StdioServer | HttpServer] = {}
    problems: dict[str, str] = {}
    for name, entry in entries.items():
        if problem := problem_of_name(name, servers):
            problems[name] = problem
            continue
        try:
            servers[name] = server(entry)
        except ValidationError as error:
            problems[name] = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {reason(one)}" for one in error.errors())
        except ValueError as error:
            problems[name] = str(error)
    return ServerList(servers, frozenset(name for name in servers if entries[name].get("disabled") is True), problems)


def problem_of_name(name: str, others: Mapping[str, Any] = {}) -> str | None:
    """Why a server may not have a name; None if it may."""
    if not _NAME.fullmatch(name) or name in RESERVED or "__" in name:
        return f"a name has up to 50 letters, digits, - and _, no __, and is none of {', '.join(RESERVED)}"
    if any(name != other and name.lower() == other.lower() for other in others):
        return "another server has the same name; upper and lower case are the same"
    return f"more than {MOST_SERVERS} servers" if len(others) >= MOST_SERVERS else None


def server(entry: Any) -> StdioServer | HttpServer:
    """One server.

    Raises:
        ValidationError: it is none. ValueError: it is no object, or contains a variable that is not replaced.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("it must be an object")
    server = _ADAPTER.validate_python({key: entry[key] for key in _USED if key in entry})
    for place, text in _texts(server):
        if found := _VARIABLE.search(text):
            raise ValueError(f"{place}: {found[0]} is not replaced here; write its value, or a reference: env://NAME")
    return server


def _texts(server: StdioServer | HttpServer) -> Iterator[tuple[str, str]]:
    """The texts of a server by their places. An argument with blanks is left out: its shell replaces variables."""
    if isinstance(server, HttpServer):
        yield "url", server.url
        yield from ((f"headers.{name}", text) for name, text in server.headers.items())
        return
    yield "command", server.command
    yield "cwd", server.cwd or ""
    yield from (("args", text) for text in server.args if not any(map(str.isspace, text)))
    yield from ((f"env.{name}", text) for name, text in server.env.items())


def _is_server(entry: Any) -> bool:
    return isinstance(entry, Mapping) and ("command" in entry or "url" in entry)
