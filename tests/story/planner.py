"""A planner that knows nothing but what the server tells it: its tools, their schemas, and their answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Tool

from tests.conftest import Served
from tests.story.shells import http_client

WAIT_SECONDS = 40
NAMES = re.compile(r"[\w-]+(?:\.[\w-]+)*")


class Own(str):
    """A text that the planner makes up itself: a name, a title, a command."""


class Planner:
    """Calls tools of its list with arguments that it can know: its own texts, and values that it has read before.

    The library's client compares each result with the output schema of its tool.
    """

    def __init__(self, client: Client, tools: dict[str, Tool]) -> None:
        self.tools = tools
        self._client = client
        self._known: set[Any] = set(_words(client.instructions or ""))

    async def use(self, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; what it returned."""
        tool = self.tools[tool_name]
        self._require_known(tool, arguments)
        result = await self._client.call_tool(tool_name, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        self._known.update(_values(result.structured_content))
        return result.structured_content

    def _require_known(self, tool: Tool, arguments: dict[str, Any]) -> None:
        properties = tool.input_schema["properties"]
        assert set(tool.input_schema.get("required", ())) <= arguments.keys() <= properties.keys()
        for name, value in arguments.items():
            described = {*_values(properties[name]), *_words(properties[name].get("description", ""))}
            assert isinstance(value, Own) or {value, str(value)} & (self._known | described), f"{name}={value!r}"


@asynccontextmanager
async def planner(served: Served, token: str | None = None) -> AsyncIterator[Planner]:
    """A planner's session."""
    http = http_client(token)
    http.timeout = WAIT_SECONDS
    async with http, Client(streamable_http_client(served.info.mcp_url, http_client=http)) as client:
        yield Planner(client, {tool.name: tool for tool in (await client.list_tools()).tools})


def _words(text: str) -> list[str]:
    return NAMES.findall(text)


def _values(data: Any) -> Iterator[Any]:
    """The texts and numbers in JSON."""
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _values(value)
    else:
        yield data
