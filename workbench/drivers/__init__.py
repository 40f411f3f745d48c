"""The programs of LLM agents: how each is given a definition's system prompt, model, provider and MCP servers.

Pure: texts of files, arguments and variables. No file is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from workbench.drivers import claude, codex, gemini
from workbench.drivers.fit import AgentProgram, Fit, fit
from workbench.drivers.setup import AgentSetup, Configuration, ModelAccess, ServerSetup

__all__ = ["PROGRAMS", "AgentProgram", "AgentSetup", "Configuration", "Fit", "ModelAccess", "ServerSetup", "fit"]

PROGRAMS: Mapping[str, AgentProgram] = MappingProxyType(
    {
        "claude": AgentProgram(
            providers=("anthropic", "bedrock"),
            settings=frozenset({"model", "maxChatTurns", "maxOutputTokens"}),
            transports=frozenset({"stdio", "sse", "streamable-http"}),
            expands=re.compile(r"\$\{"),
            key="ANTHROPIC_API_KEY",
            limit=claude.limit,
            is_read_only=lambda limits: False,
            withheld=claude.withheld,
            configure=claude.configure,
            route=lambda models, files: {},
        ),
        "codex": AgentProgram(
            providers=("openai",),
            settings=frozenset({"model"}),
            transports=frozenset({"stdio", "streamable-http"}),
            expands=None,
            key="CODEX_API_KEY",
            limit=codex.limit,
            is_read_only=codex.is_read_only,
            withheld=codex.withheld,
            configure=codex.configure,
            route=codex.route,
        ),
        "gemini": AgentProgram(
            providers=("gemini",),
            settings=frozenset({"model", "maxChatTurns"}),
            transports=frozenset({"stdio", "sse", "streamable-http"}),
            expands=re.compile(r"\$(\{|\w)"),
            key="GEMINI_API_KEY",
            limit=gemini.limit,
            is_read_only=lambda limits: False,
            withheld=gemini.withheld,
            configure=gemini.configure,
            route=lambda models, files: {},
        ),
    }
)
"""The programs, by the name that a profile gives as `program`."""
