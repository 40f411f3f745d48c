"""The MCP servers of a project, in the form that MCP clients share: `{"mcpServers": {"NAME": {…}}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench.rules.definitions.mcp_servers import HttpServer, McpServer, StdioServer
from workbench.rules.reasons import reason

KEY = "mcpServers"
MOST_SERVERS = 100
NOTEBOOK = "notebook"
"""The grant for all functions of notebooks."""
NETWORK = "network"
"""The grant for the traits of all other nodes; `network:NAME` is for those of one agent, or for one trait."""
RESERVED = (NOTEBOOK, "workbench", NETWORK)
"""Words of the language of grants: nobody who offers a tool is named by them."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")
_USED = ("type", "command", "args", "env", "cwd", "url", "headers")
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


def parsed(data: Any) -> ServerList:
    """The servers in the content of a file. Keys of other clients, such as ``autoApprove``, are left out."""
    entries = data.get(KEY, {}) if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping):
        return ServerList(problems={"": f'it must be an object with the key "{KEY}", which is an object'})
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
        ValidationError: it is none. ValueError: it is no object.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("it must be an object")
    return _ADAPTER.validate_python({key: entry[key] for key in _USED if key in entry})
