"""How to connect an agent: texts to copy, which work as they are once the token is put in.

The texts are files in `data/instructions`, valid in themselves; what they say of a place is put right here.
No text ever holds a token.
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
    "websocket.py": ("websocket", "A script on a WebSocket", "python"),
    "claude-code.sh": ("claude-code", "Claude Code", "shell"),
    "codex.toml": ("codex", "Codex", "toml"),
    "gemini.json": ("gemini", "Gemini CLI, in ~/.gemini/settings.json", "json"),
    "mcp.json": ("mcp", "Other MCP clients, over HTTP", "json"),
    "stdio.json": ("mcp-stdio", "Other MCP clients, with a command; it needs no token", "json"),
    "curl.sh": ("curl", "HTTP", "shell"),
}
"""By file: id, title and language."""

NAME = "my-agent"
NETLOC = "127.0.0.1:8765"
PROJECT = "/path/to/project"
"""What the files say, and a running server knows better."""


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
    ctx: Ctx, agent_id: Annotated[str | None, Field(description="Write them for this agent.")] = None
) -> ConnectionInstructions:
    """How to connect agents, as texts to copy; put the agent's token where they say $WORKBENCH_TOKEN or wba_…."""
    assert ctx.server is not None, "it needs the server"
    if agent_id is not None:
        await ctx.read(lambda tx: require_agent(tx, agent_id))
    known = {
        NETLOC: ctx.server.url.removeprefix("http://"),
        PROJECT: json.dumps(str(ctx.settings.project), ensure_ascii=False)[1:-1],
        NAME: agent_id or NAME,
    }
    return ConnectionInstructions(
        url=ctx.server.url,
        ws_url=ctx.server.ws_url,
        mcp_url=ctx.server.mcp_url,
        instructions=[
            Instruction(id=id_, title=title, language=language, text=_text(file, known))
            for file, (id_, title, language) in TEXTS.items()
        ],
    )


def _text(file: str, known: dict[str, str]) -> str:
    text = shipped("data", "instructions", file).read_text("utf-8")
    for said, true in known.items():
        text = text.replace(said, true)
    return text
