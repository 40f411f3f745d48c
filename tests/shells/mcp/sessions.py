"""Sessions of the MCP library's own client, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ListToolsResult

from tests.conftest import Served

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""Versions of the protocol, by the mode of the client that leads to them."""
BYTES_OF_A_TOKEN = 4


@asynccontextmanager
async def session(served: Served, token: str | None = None, era: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """A session of the library's own client."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    http = httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=None)  # each test has a deadline
    transport = streamable_http_client(served.info.mcp_url, http_client=http)
    async with http, Client(transport, mode=era, **options) as client:  # type: ignore[arg-type]
        yield client


@asynccontextmanager
async def stdio_session(
    project: Path, token: str | None = None, era: str = "auto", **options: Any
) -> AsyncIterator[Client]:
    """A session with `workbench mcp`, as a program starts it."""
    env = {"WORKBENCH_PROJECT": str(project)}
    env |= {name: os.environ[name] for name in ("PATH", "WORKBENCH_CONFIG")}
    env |= {"WORKBENCH_TOKEN": token} if token else {}
    process = StdioServerParameters(command=sys.executable, args=["-m", "workbench.cli", "mcp"], env=env)
    async with Client(process, mode=era, **options) as client:  # type: ignore[arg-type]
        yield client


def data(result: CallToolResult) -> dict[str, Any]:
    """The result of a tool: structured content, or an error as JSON in a text."""
    if result.structured_content is not None:
        return result.structured_content
    [text] = result.content
    assert text.type == "text"
    body: dict[str, Any] = json.loads(text.text)
    return body


def tokens(listed: ListToolsResult, instructions: str | None) -> float:
    """The tokens that a list of tools, with the server's instructions, takes of a model's context."""
    reaches_a_model = [(tool.name, tool.description, tool.input_schema) for tool in listed.tools]
    text = json.dumps([instructions, *reaches_a_model], ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) / BYTES_OF_A_TOKEN
