"""The resources and prompts of a server as four more tools of it: two that list, page by page, and two that read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.present.inert import inert_line
from workbench.rules.tools.content import block_text, note, picture

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import CallToolResult

LIST_SECONDS = 3.0
"""How long a server may take to say whether it has any; one that does not answer has none."""
MOST_LISTED = 200
"""Entries of a page of a server that are passed on."""
MOST_CHARACTERS = 100_000
"""Of a text that is read at once."""

log = logging.getLogger(__name__)

_CURSOR = {"type": "string", "description": "next_cursor of the page before; omit it for the first."}
_OFFSET = {"type": "integer", "minimum": 0, "description": f"Read at most {MOST_CHARACTERS:,} characters from here on."}
RESOURCES = {
    "list_resources": (
        "List the resources of the MCP server {}, and the templates of the addresses of others.",
        {"cursor": _CURSOR},
        (),
    ),
    "read_resource": (
        "Read a resource of the MCP server {}.",
        {"uri": {"type": "string", "description": "As list_resources has it, or by a template."}, "offset": _OFFSET},
        ("uri",),
    ),
}
PROMPTS = {
    "list_prompts": ("List the prompts of the MCP server {}, and their arguments.", {"cursor": _CURSOR}, ()),
    "get_prompt": (
        "Get a prompt of the MCP server {}, with its arguments filled in.",
        {
            "name": {"type": "string", "description": "As list_prompts has it."},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        ("name",),
    ),
}


async def offered(client: Client, server: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The tools for what a server has: their descriptions and the schemas of their arguments, by name."""
    capabilities = client.server_capabilities
    found: dict[str, Any] = {}
    if capabilities.resources is not None and await _has_any(
        lambda: _resources(client, None), "resources", "templates"
    ):
        found |= RESOURCES
    if capabilities.prompts is not None and await _has_any(lambda: _prompts(client, None), "prompts"):
        found |= PROMPTS
    return {
        name: (about.format(server), {"type": "object", "properties": fields, "required": list(required)})
        for name, (about, fields, required) in found.items()
    }


async def _has_any(read: Callable[[], Awaitable[dict[str, Any]]], *keys: str) -> bool:
    try:
        async with asyncio.timeout(LIST_SECONDS):
            page = await read()
    except Exception as error:  # whatever a server does when it is asked: its tools are used all the same
        log.debug("it does not list its %s: %s", keys[0], error)
        return False
    return any(page[key] for key in keys)


async def call(client: Client, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
    """Call one of these tools.

    Raises:
        MCPError, ValidationError: see `Client`.
    """
    from mcp.types import CallToolResult

    match tool:
        case "list_resources":
            listed = await _resources(client, arguments.get("cursor"))
        case "list_prompts":
            listed = await _prompts(client, arguments.get("cursor"))
        case "read_resource":
            read = await client.read_resource(str(arguments["uri"]))
            blocks = [{"type": "resource", "resource": _dumped(each)} for each in read.contents]
            shown = [_shown(block, int(arguments.get("offset") or 0)) for block in blocks]
            return CallToolResult.model_validate({"content": [part for parts in shown for part in parts]})
        case _:
            prompt = await client.get_prompt(str(arguments["name"]), dict(arguments.get("arguments") or {}))
            said = [_said(message.role, _dumped(message.content)) for message in prompt.messages]
            return CallToolResult.model_validate({"content": [part for parts in said for part in parts]})
    return CallToolResult.model_validate({"content": [], "structuredContent": listed})


def _dumped(value: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def _shown(block: dict[str, Any], offset: int) -> list[dict[str, Any]]:
    """A resource that was read: a picture, a part of a text, or what its other bytes are."""
    text = block["resource"].get("text")
    if picture(block):
        return [block]
    if not isinstance(text, str):
        return [{"type": "text", "text": block_text(block)}]
    part = text[offset : offset + MOST_CHARACTERS]
    shown: list[dict[str, Any]] = [{"type": "text", "text": part}]
    if len(part) < len(text):
        end = offset + len(part)
        more = f"; offset={end} reads on" if end < len(text) else ""
        shown.append(note(f"[Characters {offset:,} to {end:,} of {len(text):,}{more}.]"))
    return shown


def _said(role: str, block: dict[str, Any]) -> list[dict[str, Any]]:
    """A message of a prompt, with who says it."""
    if picture(block):
        return [{"type": "text", "text": f"{role}:"}, block]
    return [{"type": "text", "text": f"{role}: {block_text(block)}"}]


async def _resources(client: Client, cursor: str | None) -> dict[str, Any]:
    """A page of resources; with the first, the templates."""
    from mcp.shared.exceptions import MCPError

    page = await client.list_resources(cursor=cursor, cache_mode="refresh")
    templates: Iterable[Any] = ()
    if cursor is None:
        try:
            templates = (await client.list_resource_templates(cache_mode="refresh")).resource_templates
        except MCPError:  # many servers have none of them
            templates = ()
    keys = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "size")
    return {
        "resources": _listed(page.resources, keys),
        "templates": _listed(templates, keys),
        "next_cursor": page.next_cursor or None,
    }


async def _prompts(client: Client, cursor: str | None) -> dict[str, Any]:
    page = await client.list_prompts(cursor=cursor, cache_mode="refresh")
    listed = _listed(page.prompts, ("name", "title", "description", "arguments"))
    return {"prompts": listed, "next_cursor": page.next_cursor or None}


def _listed(entries: Iterable[Any], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    dumped = [_dumped(entry) for entry in list(entries)[:MOST_LISTED]]
    return [{key: _cut(entry[key]) for key in keys if key in entry} for entry in dumped]


def _cut(value: Any) -> Any:
    """What a server says of an entry, as text that can do nothing; addresses and names are not cut."""
    return inert_line(value) if isinstance(value, str) else value
