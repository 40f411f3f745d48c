"""Sessions of the MCP library's own client, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import Served

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""Versions of the protocol, by the mode of the client that leads to them."""


@asynccontextmanager
async def session(served: Served, token: str | None = None, era: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """A session of the library's own client."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    http = httpx2.AsyncClient(headers=headers, trust_env=False, verify=False)
    transport = streamable_http_client(served.info.mcp_url, http_client=http)
    async with http, Client(transport, mode=era, **options) as client:  # type: ignore[arg-type]
        yield client
