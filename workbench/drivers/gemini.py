"""Gemini CLI: its system prompt is a file that a variable names; its MCP servers are in `settings.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer

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
    key = setup.provider_config.get("GOOGLE_API_KEY")
    return Configuration(
        arguments=(f"--model={setup.model}",) if setup.model else (),
        files={CONFIG: json.dumps(config), PROMPT: setup.system_prompt},
        environment={"GEMINI_SYSTEM_MD": f"{scratch}/{PROMPT}"} | ({"GEMINI_API_KEY": key} if key else {}),
    )


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
