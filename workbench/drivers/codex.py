"""Codex: its instructions, its provider and its MCP servers are in `config.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomli_w

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup
from workbench.rules.definitions.mcp_servers import StdioServer

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
        config["model_provider"] = _PROVIDER
        config["model_providers"] = {**config.get("model_providers", {}), _PROVIDER: _provider(address)}
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config["mcp_servers"] = servers | config.get("mcp_servers", {})
    key = setup.provider_config.get("OPENAI_API_KEY")
    return Configuration(files={CONFIG: tomli_w.dumps(config)}, environment={KEY: key} if key else {})


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
