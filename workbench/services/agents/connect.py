"""Instructions for connecting agents: texts to copy, which work once the agent's token is inserted.

The texts are valid files in `data/instructions`; their addresses, paths and names are replaced here. No text contains
a token.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.services.agents.rows import require_agent
from workbench.settings import shipped

TEXTS = {
    "websocket.py": ("websocket", "Script, over WebSocket", "python"),
    "claude-code.sh": ("claude-code", "Claude Code", "shell"),
    "codex.toml": ("codex", "Codex", "toml"),
    "gemini.json": ("gemini", "Gemini CLI, in ~/.gemini/settings.json", "json"),
    "mcp.json": ("mcp", "Other MCP clients, over HTTP", "json"),
    "stdio.json": ("mcp-stdio", "Other MCP clients, over stdio; no token needed", "json"),
    "curl.sh": ("curl", "HTTP", "shell"),
}
"""By file: id, title and language."""

NAME = "my-agent"
NETLOC = "127.0.0.1:8765"
PROJECT = "/path/to/project"
"""Values in the files that are replaced by those of the running server."""


class Instruction(Wire):
    """One way to connect."""

    id: str
    title: str
    language: str
    text: str


class ConnectionInstructions(Wire):
    """Where this workbench is, and how to connect to it."""

    url: str
    ws_url: str
    mcp_url: str
    instructions: list[Instruction]


@op(allow=Level.OPERATOR, reads=True, needs_server=True)
async def connection_instructions(
    ctx: Ctx, agent_id: Annotated[str | None, Field(description="Insert the id of this agent.")] = None
) -> ConnectionInstructions:
    """Get instructions for connecting agents. Replace $WORKBENCH_TOKEN or wba_… in them with the agent's token."""
    assert ctx.server is not None, "it needs the server"
    if agent_id is not None:
        await ctx.read(lambda tx: require_agent(tx, agent_id))
    replacements = {
        NETLOC: ctx.server.url.removeprefix("http://"),
        PROJECT: json.dumps(str(ctx.settings.project), ensure_ascii=False)[1:-1],
        NAME: agent_id or NAME,
    }
    return ConnectionInstructions(
        url=ctx.server.url,
        ws_url=ctx.server.ws_url,
        mcp_url=ctx.server.mcp_url,
        instructions=[
            Instruction(id=id_, title=title, language=language, text=_text(file, replacements))
            for file, (id_, title, language) in TEXTS.items()
        ],
    )


def _text(file: str, replacements: dict[str, str]) -> str:
    text = shipped("data", "instructions", file).read_text("utf-8")
    for placeholder, value in replacements.items():
        text = text.replace(placeholder, value)
    return text
