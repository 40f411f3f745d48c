"""An MCP server for tests, on standard input and output, or over HTTP: `tools_server.py [http] [OPTION=VALUE …]`.

Options: `texts=1`: have resources and prompts; `describe=NAME`: offer a tool that is described by a variable of the
environment; `switch=FILE`: start only once the file is there; `tools=N`: offer N more tools; `cancelled=FILE`: created
when `hang` is cancelled.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, SamplingMessage, TextContent
from pydantic import BaseModel

OPTIONS = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
server = MCPServer("small", version="1.5")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and report each number."""
    for number in range(to):
        await ctx.report_progress(number, to, f"number {number}")
    return "done"


@server.tool()
def exit_now() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
async def grow(ctx: Context) -> str:
    """Offer one more tool, and say so."""
    server.add_tool(lambda: "more", name="more")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def fill(size: int) -> str:
    """Answer with many characters."""
    return "x" * size


@server.tool()
async def sleep(seconds: float) -> str:
    """Do nothing else for some seconds, not even answer."""
    time.sleep(seconds)
    return "slept"


@server.tool()
async def grow_and_sleep(seconds: float, ctx: Context) -> str:
    """Say twice that there may be new tools, then do nothing else for some seconds, not even answer."""
    for _ in range(2):  # the tools are listed at once after the first, and later after the second
        await ctx.session.send_tool_list_changed()
        await anyio.sleep(0.2)
    time.sleep(seconds)
    return "slept"


@server.tool()
async def hang() -> str:
    """Wait until this is cancelled."""
    print("hang began", file=sys.stderr, flush=True)
    try:
        await anyio.sleep_forever()
    finally:
        print("hang was cancelled", file=sys.stderr, flush=True)
        if "cancelled" in OPTIONS:
            Path(OPTIONS["cancelled"]).touch()
    return "never"


@server.tool()
async def sample(ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Hello"))
    return str(await ctx.session.create_message([message], max_tokens=5))


class Colour(BaseModel):
    """The colour that `paint` asks for."""

    colour: str


async def which(what: str) -> Elicit[Colour]:
    """The question of `paint`."""
    return Elicit(f"Which colour for {what}?", Colour)


@server.tool()
async def paint(what: str, answer: Annotated[ElicitationResult[Colour], Resolve(which)]) -> str:
    """Ask for a colour."""
    return answer.data.colour if isinstance(answer, AcceptedElicitation) else f"no colour for {what}"


VISITED: list[str] = []


@server.tool()
async def visit(where: str) -> str:
    """Do something once the person has been somewhere."""
    if where not in VISITED:
        VISITED.append(where)
        asked = ElicitRequestURLParams(message="Sign in", url=where, elicitation_id="1")
        raise UrlElicitationRequiredError([asked])
    return f"been at {where}"


@server.tool()
def environment(name: str) -> str:
    """A variable of its environment."""
    return os.environ.get(name, "")


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


def offer_texts() -> None:
    """Have resources and prompts."""
    server.resource("notes://long", name="long", description="A long text")(lambda: "x" * 150_000 + "end")
    server.resource("notes://bytes", name="bytes", mime_type="application/octet-stream")(lambda: b"\x00\x01\x02")

    @server.resource("notes://of/{name}")
    def of(name: str) -> str:
        return f"the notes of {name}"

    @server.prompt()
    def review(what: str) -> str:
        """Review something."""
        return f"Review {what}."


def serve_http() -> None:
    """Serve at a free port, and print the URL."""
    import uvicorn

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", int(OPTIONS.get("port", "0"))))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_config=None)).run(sockets=[listener])


print("greetings from the tests' server", file=sys.stderr)
if "switch" in OPTIONS:
    while not Path(OPTIONS["switch"]).exists():
        time.sleep(0.05)
for number in range(int(OPTIONS.get("tools", "0"))):
    server.add_tool(lambda: "one of many", name=f"tool_{number}")
if "texts" in OPTIONS:
    offer_texts()
if "describe" in OPTIONS:
    server.add_tool(lambda: "", name="described", description=os.environ[OPTIONS["describe"]])
if "http" in sys.argv:
    serve_http()
else:
    print("a line that is no message", flush=True)
    server.run("stdio")
