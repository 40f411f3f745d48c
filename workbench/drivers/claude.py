"""Claude Code: its system prompt and its MCP servers are files that arguments name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer

MCP = "mcp.json"
PROMPT = "system_prompt.md"
_IN_DIRECTORY = 'cd "$1" && shift && exec "$@"'
"""A script for `sh -c`: Claude Code starts servers in its own directory."""


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Claude Code is started for a setup.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `mcp.json` is extended.
    """
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config: dict[str, Any] = json.loads(files.get(MCP, "{}"))
    config["mcpServers"] = servers | config.get("mcpServers", {})
    return Configuration(
        arguments=tuple(_arguments(setup, scratch)),
        files={MCP: json.dumps(config), PROMPT: setup.system_prompt},
        environment=dict(_environment(setup)),
    )


def _arguments(setup: AgentSetup, scratch: str) -> Iterator[str]:
    yield f"--append-system-prompt-file={scratch}/{PROMPT}"
    if setup.model:
        yield f"--model={setup.model}"
    if setup.max_chat_turns:
        yield f"--max-turns={setup.max_chat_turns}"
    for name, one in setup.servers.items():
        allowed = [f"mcp__{name}"] if one.allowed is None else [f"mcp__{name}__{tool}" for tool in one.allowed]
        yield f"--allowedTools={','.join(allowed)}"
        if one.refused:
            yield f"--disallowedTools={','.join(f'mcp__{name}__{tool}' for tool in one.refused)}"


def _environment(setup: AgentSetup) -> Iterator[tuple[str, str]]:
    yield from setup.provider_config.items()
    if setup.provider == "bedrock":
        yield "CLAUDE_CODE_USE_BEDROCK", "1"
    if setup.max_output_tokens:
        yield "CLAUDE_CODE_MAX_OUTPUT_TOKENS", str(setup.max_output_tokens)


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if not isinstance(server, StdioServer):
        kind = "http" if server.type == "streamable-http" else "sse"
        return {"type": kind, "url": server.url, "headers": server.headers}
    command, args = server.command, server.args
    if server.cwd is not None:
        command, args = "/bin/sh", ["-c", _IN_DIRECTORY, "sh", server.cwd, command, *args]
    return {"type": "stdio", "command": command, "args": args, "env": server.env}
