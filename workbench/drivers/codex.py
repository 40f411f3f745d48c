"""Codex: its instructions, its provider and its MCP servers are in `config.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from workbench.drivers.setup import AgentSetup, Configuration, ModelAccess, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import READING, WRITING, ToolLimits

CONFIG = ".codex/config.toml"
KEY = "CODEX_API_KEY"
_PROVIDER = "workbench"
"""The name of the provider that is at another address than OpenAI's."""


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Codex is started for a setup.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `.codex/config.toml` is extended.
    """
    config = tomllib.loads(files.get(CONFIG, ""))
    config["developer_instructions"] = setup.system_prompt
    if setup.model:
        config["model"] = setup.model
    if address := setup.provider_config.get("OPENAI_BASE_URL"):
        _set_provider(config, _provider(address))
    if setup.limits:
        _limit(config, setup.limits)
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config["mcp_servers"] = servers | config.get("mcp_servers", {})
    key = setup.provider_config.get("OPENAI_API_KEY")
    return Configuration(files={CONFIG: tomli_w.dumps(config)}, environment={KEY: key} if key else {})


def route(models: ModelAccess, files: Mapping[str, str]) -> Mapping[str, str]:
    """The configuration with which Codex asks the server: it follows no variable with an address.

    Args:
        files: those of the profile, as a definition has changed them.
    """
    if (address := models.environment.get("OPENAI_BASE_URL")) is None:
        return {}
    config = tomllib.loads(files.get(CONFIG, ""))
    _set_provider(config, _provider(address) | {"env_key": "OPENAI_API_KEY"})
    return {CONFIG: tomli_w.dumps(config)}


def _set_provider(config: dict[str, Any], provider: Mapping[str, Any]) -> None:
    config["model_provider"] = _PROVIDER
    config["model_providers"] = {**config.get("model_providers", {}), _PROVIDER: provider}


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command of a profile, in Codex's own read-only sandbox if not all may be written; for where workers are not
    confined: within a box, that sandbox does not start."""
    if not is_read_only(limits):
        return list(command)
    limited: list[str] = []
    option = ""
    for word in command:
        name = word.partition("=")[0]
        if option or name in _SANDBOX:
            option = word if word in _SANDBOX else ""
        elif word not in _UNCONFINED:
            limited.append(word)
    at = limited.index("exec") + 1 if "exec" in limited else 1
    return [*limited[:at], "--sandbox=read-only", *limited[at:]]


_SANDBOX = ("-s", "--sandbox")
_UNCONFINED = ("--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto")


def withheld(limits: ToolLimits) -> Iterator[str]:
    """What is not allowed as Codex has no tool of its own for each use of its shell."""
    if is_read_only(limits) and limits.allows_any(WRITING):
        yield "its agents can write nothing: Codex has one shell for all"
    if not limits.allows("Bash") and limits.allows_any(READING):
        yield "its agents read by a shell that can write nothing: Codex has no other tool to read"


def is_read_only(limits: ToolLimits) -> bool:
    """Whether something that writes is not allowed: Codex has one shell for all."""
    return not all(map(limits.allows, ("Bash", "Edit", "Write")))


def _limit(config: dict[str, Any], limits: ToolLimits) -> None:
    if not limits.allows_any(READING):
        config["features"] = {**config.get("features", {}), "shell_tool": False, "unified_exec": False}
    if not limits.allows("WebSearch"):
        config["web_search"] = "disabled"


def _provider(address: str) -> dict[str, Any]:
    plain = {"wire_api": "responses", "supports_websockets": False}  # it would try a WebSocket first, for seconds
    return {"name": _PROVIDER, "base_url": address, "env_key": KEY} | plain


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if isinstance(server, StdioServer):
        place = {} if server.cwd is None else {"cwd": server.cwd}
        found: dict[str, Any] = {"command": server.command, "args": server.args, "env": server.env} | place
    else:
        found = {"url": server.url, "http_headers": server.headers}
    if setup.allowed is not None:
        found["enabled_tools"] = list(setup.allowed)
    if setup.refused:
        found["disabled_tools"] = list(setup.refused)
    return found | {"default_tools_approval_mode": "approve"}
