"""The programs of LLM agents, one module each: how it is given a definition's system prompt, model, provider and MCP
servers, how it is started and resumed, what its output says, and how it ended.

Pure: texts of files, arguments, variables and lines of output. No file is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from workbench.drivers import acp, claude, codex, gemini
from workbench.drivers.fit import AgentProgram, Driver, Fit, fit
from workbench.drivers.setup import AgentSetup, Configuration, ModelAccess, ServerSetup, TelemetryAccess
from workbench.drivers.stream import ProgramFailure, ProgramStream, ProgramUsage, Start, Told

__all__ = [
    "DRIVERS",
    "PROGRAMS",
    "AgentProgram",
    "AgentSetup",
    "Configuration",
    "Driver",
    "Fit",
    "ModelAccess",
    "ProgramFailure",
    "ProgramStream",
    "ProgramUsage",
    "ServerSetup",
    "Start",
    "TelemetryAccess",
    "Told",
    "fit",
]

PROGRAMS: Mapping[str, AgentProgram] = MappingProxyType(
    {
        "claude": AgentProgram(
            providers=("anthropic", "bedrock"),
            settings=frozenset({"model", "maxChatTurns", "maxOutputTokens"}),
            transports=frozenset({"stdio", "sse", "streamable-http"}),
            expands=re.compile(r"\$\{"),
            key="ANTHROPIC_API_KEY",
            credentials=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            limit=claude.limit,
            is_read_only=lambda limits: False,
            withheld=claude.withheld,
            configure=claude.configure,
            route=lambda models, files: {},
            telling=claude.telling,
            streaming=claude.streaming,
            resumed=claude.resumed,
            talking=claude.talking,
        ),
        "codex": AgentProgram(
            providers=("openai",),
            settings=frozenset({"model"}),
            transports=frozenset({"stdio", "streamable-http"}),
            expands=None,
            key="CODEX_API_KEY",
            credentials=("CODEX_API_KEY", "OPENAI_API_KEY"),
            limit=codex.limit,
            is_read_only=codex.is_read_only,
            withheld=codex.withheld,
            configure=codex.configure,
            route=codex.route,
            telling=codex.telling,
            streaming=codex.streaming,
            resumed=codex.resumed,
        ),
        "gemini": AgentProgram(
            providers=("gemini",),
            settings=frozenset({"model", "maxChatTurns"}),
            transports=frozenset({"stdio", "sse", "streamable-http"}),
            expands=re.compile(r"\$(\{|\w)"),
            key="GEMINI_API_KEY",
            credentials=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            limit=gemini.limit,
            is_read_only=lambda limits: False,
            withheld=gemini.withheld,
            configure=gemini.configure,
            route=lambda models, files: {},
            telling=gemini.telling,
            streaming=gemini.streaming,
            resumed=gemini.resumed,
        ),
    }
)
"""The programs, by the name that a profile gives as `program`."""

DRIVERS: Mapping[str, Driver] = MappingProxyType(
    {
        "acp": Driver(acp.AcpStream, acp.session_files),
        "claude": Driver(claude.ClaudeStream, claude.session_files),
        "codex": Driver(codex.CodexStream, codex.session_files, codex.limit_of_session),
        "gemini": Driver(gemini.GeminiStream, gemini.session_files),
    }
)
"""What reads the output of programs, by the name that a profile gives as `driver`."""
