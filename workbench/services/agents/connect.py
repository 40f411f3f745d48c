"""Instructions for connecting agents: texts to copy, from the registration to the first call.

The texts are files in `data/instructions`; their addresses, paths and names are replaced here. Those in `STEPS` begin
with the registration of a new agent, or with a new token for a known one. No text contains a token.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.services.agents.rows import require_agent
from workbench.state.settings import shipped

TEXTS = {
    "claude-code.sh": ("claude-code", "Claude Code", "shell"),
    "codex.sh": ("codex", "Codex", "shell"),
    "gemini.sh": ("gemini", "Gemini CLI", "shell"),
    "mcp.sh": ("mcp", "Other MCP clients, over HTTP", "shell"),
    "stdio.sh": ("mcp-stdio", "Other MCP clients, over stdio; the agent registers by itself", "shell"),
    "websocket.py": ("websocket", "Script, over WebSocket", "python"),
    "curl.sh": ("curl", "HTTP", "shell"),
}
"""By file: id, title and language."""
STEPS = frozenset({"claude-code", "codex", "gemini", "mcp"})
"""The ids of the texts that begin with the steps which all clients share."""

NAME = "my-agent"
NETLOC = "127.0.0.1:8765"
PROJECT = "/path/to/project"
PROJECT_IN_JSON = "/json/path/to/project"
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


@op(allow=Level.OPERATOR, reads=True, needs_server=True, command="connect")
async def connection_instructions(
    ctx: Ctx, agent_id: Annotated[str | None, Field(description="Insert the id of this agent.")] = None
) -> ConnectionInstructions:
    """Get instructions for connecting agents: register, admit, set the token, connect. They contain no token."""
    assert ctx.local.server is not None, "it needs the server"
    if agent_id is not None:
        await ctx.read(lambda tx: require_agent(tx, agent_id))
    steps = ["known-agent.sh" if agent_id else "new-agent.sh"]
    replaced = {
        NETLOC: ctx.local.server.url.removeprefix("http://"),
        PROJECT_IN_JSON: json.dumps(str(ctx.settings.project), ensure_ascii=False)[1:-1],
        PROJECT: shlex.quote(str(ctx.settings.project)),
        NAME: agent_id or NAME,
    }
    return ConnectionInstructions(
        url=ctx.local.server.url,
        ws_url=ctx.local.server.ws_url,
        mcp_url=ctx.local.server.mcp_url,
        instructions=[
            Instruction(
                id=id_, title=title, language=language, text=_text([*steps, file] if id_ in STEPS else [file], replaced)
            )
            for file, (id_, title, language) in TEXTS.items()
        ],
    )


def _text(files: Sequence[str], replacements: Mapping[str, str]) -> str:
    text = "".join(shipped("data", "instructions", file).read_text("utf-8") for file in files)
    for placeholder, value in replacements.items():
        text = text.replace(placeholder, value)
    return text
