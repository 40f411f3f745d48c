"""Claude Code: its system prompt and its MCP servers are files that arguments name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import WRITING, ToolLimits, separated, tool_of, uses_of

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


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command of a profile, with no more of Claude Code's own tools than are allowed.

    `--tools` says which exist, `--disallowedTools` which are refused, and of those that the profile allows without a
    question only the allowed uses stay: no one is there to answer one.
    """
    limited: list[str] = []
    option = ""
    for word in command:
        name, has_value, value = word.partition("=")
        if name in _ALLOWING and has_value:
            limited += [f"{name}={entry}" for entry in _allowed(value, limits)]
        elif word in _ALLOWING or word == _MODE:
            option = word
        elif option == _MODE or name == _MODE:
            option = ""
            limited.append(f"{_MODE}={_mode(value or word)}")
        elif option and not word.startswith("-"):
            limited += [f"{option}={entry}" for entry in _allowed(word, limits)]
        elif word not in _UNASKED:
            option = ""
            limited.append(word)
    if not any(word.startswith(f"{_MODE}=") for word in limited):
        limited.append(f"{_MODE}={_mode('')}")
    if limits.allowed is not None:
        limited.append(f"--tools={','.join(dict.fromkeys(map(tool_of, limits.allowed)))}")
    planned = sorted((WRITING - {"Bash"}) | {"ExitPlanMode"}) if limits.is_plan else ()
    return [*limited, *(f"--disallowedTools={entry}" for entry in (*limits.refused, *planned))]


_ALLOWING = ("--allowedTools", "--allowed-tools")
_MODE = "--permission-mode"
_UNASKED = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")


def withheld(limits: ToolLimits) -> Iterator[str]:
    """Claude Code keeps all limits."""
    yield from ()


def _allowed(entries: str, limits: ToolLimits) -> Iterator[str]:
    """The uses of tools that a profile and a definition both allow; tools of servers are not limited."""
    for entry in separated(entries):
        tool = tool_of(entry)
        if tool.startswith("mcp__") or (not (limits.is_plan and tool in WRITING) and _is_within(entry, limits)):
            yield entry
        elif limits.allowed is not None and entry == tool and not (limits.is_plan and tool in WRITING - {"Bash"}):
            yield from (use for use in limits.allowed if uses_of(use) and tool_of(use) == tool)


def _is_within(entry: str, limits: ToolLimits) -> bool:
    return limits.allowed is None or entry in limits.allowed or tool_of(entry) in limits.allowed


def _mode(profiles: str) -> str:
    """The permission mode, in which only what is allowed runs. In others, commands that change files need no permission
    (`acceptEdits`), or a model is asked about each command (`plan`)."""
    return "plan" if profiles == "plan" else "dontAsk"


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
