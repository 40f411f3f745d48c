"""Starts or calls an MCP server once and lists its tools: `python -m workbench.definition_files.mcp_probe FILE`.

A process of its own, because nothing that the server sends is trusted, and the MCP client logs it. It reads a
`ProbeTarget` as JSON from standard input and writes a `ProbeFinding` as JSON to the file.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import BaseModel, ConfigDict

from workbench.client.mended import LEFT_OUT, mended
from workbench.errors import first_within
from workbench.process.marks import inherited_mark

if TYPE_CHECKING:
    from mcp.client import Client

LONGEST_LIST = 150_000
"""Characters of the names and descriptions of all tools; those after it are left out."""
MOST_PROBLEMS = 20
LONGEST_TEXT = 2_000
"""Characters of a name, a description or a reason."""


class ProbeTarget(BaseModel):
    """A server, and how long it may take.

    Args:
        command: the program with its arguments; empty for a server at a URL.
        environment: the program's, whole.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    command: list[str] = []
    environment: dict[str, str] = {}
    directory: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    is_sse: bool = False
    seconds: float


class ProbedServerTool(BaseModel):
    """A tool that the server offers."""

    name: str
    description: str


class ProbeFinding(BaseModel):
    """What the server offers; or why that is not known, and the end of what its program wrote to standard error."""

    server: str = ""
    version: str = ""
    tools: list[ProbedServerTool] = []
    problems: list[str] = []
    failure: str | None = None
    log: str = ""


async def probe(target: ProbeTarget) -> ProbeFinding:
    """List the tools of a server."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            async with asyncio.timeout(target.seconds), _connected(target, log) as client:
                return await _finding(client)
        except Exception as error:  # the outermost handler: whatever the client raises says why it failed
            log.seek(0, 2)
            log.seek(max(0, log.tell() - LONGEST_TEXT))
            return ProbeFinding(failure=_reason(first_within(error), target.seconds), log=log.read())


@asynccontextmanager
async def _connected(target: ProbeTarget, log: TextIO) -> AsyncIterator[Client]:
    import httpx2
    from mcp.client import Client
    from mcp.client.sse import sse_client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=target.headers, timeout=target.seconds) as http:
        if target.command:
            program, *arguments = target.command
            environment = target.environment | inherited_mark()
            parameters = StdioServerParameters(
                command=program, args=arguments, env=environment, cwd=target.directory or None
            )
            transport: Any = stdio_client(parameters, errlog=log)
        elif target.is_sse:
            transport = sse_client(target.url, headers=dict(target.headers), timeout=target.seconds)
        else:
            transport = streamable_http_client(target.url, http_client=http)
        client = Client(mended(transport, lambda: client.session.protocol_version))
        async with client:
            yield client


async def _finding(client: Client) -> ProbeFinding:
    about = client.server_info
    name, version = (about.name, about.version) if about else ("", "")
    found = ProbeFinding(server=_cut(name), version=_cut(version))
    await _list(client, found)
    return found


async def _list(client: Client, found: ProbeFinding) -> None:
    """Add the tools, and why others cannot be used."""
    size, cursor, before = 0, None, set[str]()
    while True:
        page = await client.list_tools(cursor=cursor)
        found.problems += map(_cut, (page.meta or {}).get(LEFT_OUT, ())[: MOST_PROBLEMS - len(found.problems)])
        for tool in page.tools:
            found.tools.append(ProbedServerTool(name=_cut(tool.name), description=_cut(tool.description or "")))
            size += len(found.tools[-1].name) + len(found.tools[-1].description)
            if size > LONGEST_LIST:
                found.tools.pop()
                return
        if not (cursor := page.next_cursor) or cursor in before:
            return
        before.add(cursor)


def _reason(error: BaseException, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"it did not answer within {seconds:g} s"
    return _cut(f"{type(error).__name__}: {error}")


def _cut(text: str) -> str:
    return text[:LONGEST_TEXT]


if __name__ == "__main__":
    found = asyncio.run(probe(ProbeTarget.model_validate_json(sys.stdin.buffer.read())))
    Path(sys.argv[1]).write_text(found.model_dump_json(), "utf-8")
