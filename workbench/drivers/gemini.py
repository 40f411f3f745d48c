"""Gemini CLI: its system prompt is a file that a variable names; its MCP servers are in `settings.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import ToolLimits, to_gemini, tool_of

CONFIG = ".gemini/settings.json"
PROMPT = "system_prompt.md"


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Gemini CLI is started for a setup. The definition's system prompt replaces its own.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `.gemini/settings.json` is extended.
    """
    config: dict[str, Any] = json.loads(files.get(CONFIG, "{}"))
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config["mcpServers"] = servers | config.get("mcpServers", {})
    if setup.max_chat_turns:
        config["model"] = {**config.get("model", {}), "maxSessionTurns": setup.max_chat_turns}
    if setup.limits:
        config["tools"] = _tools(setup.limits, config.get("tools", {}), config["mcpServers"])
    key = setup.provider_config.get("GOOGLE_API_KEY")
    return Configuration(
        arguments=(f"--model={setup.model}",) if setup.model else (),
        files={CONFIG: json.dumps(config), PROMPT: setup.system_prompt},
        environment={"GEMINI_SYSTEM_MD": f"{scratch}/{PROMPT}"} | ({"GEMINI_API_KEY": key} if key else {}),
    )


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command as it is: what Gemini CLI may not use is in its settings."""
    return list(command)


def withheld(limits: ToolLimits) -> Iterator[str]:
    """The tools of which only some uses are allowed, or refused: Gemini CLI gives all uses, or none."""
    if tools := sorted({tool_of(entry) for entry in limits.partial}):
        yield f"its agents have no {' and no '.join(tools)}: only some uses of it are allowed"


def _tools(limits: ToolLimits, stated: Mapping[str, Any], servers: Iterable[str]) -> dict[str, Any]:
    """The section about its own tools, with no more of them; a list of allowed ones has to name those of servers."""
    tools = dict(stated)
    if (allowed := limits.fully_allowed) is not None:
        names = to_gemini(allowed)
        own = [one for one in names if one in tools["core"]] if "core" in tools else names
        tools["core"] = [*own, *(f"mcp_{name}_*" for name in servers)]
    if refused := to_gemini(limits.refused_tools):
        tools["exclude"] = sorted({*tools.get("exclude", ()), *refused})
    return tools


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if isinstance(server, StdioServer):
        place = {} if server.cwd is None else {"cwd": server.cwd}
        found: dict[str, Any] = {"command": server.command, "args": server.args, "env": server.env} | place
    else:
        address = "httpUrl" if server.type == "streamable-http" else "url"
        found = {address: server.url, "headers": server.headers}
    if setup.allowed is not None:
        found["includeTools"] = list(setup.allowed)
    if setup.refused:
        found["excludeTools"] = list(setup.refused)
    return found | {"trust": True}
