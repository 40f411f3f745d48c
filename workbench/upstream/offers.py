"""A server's tools as it lists them, checked: nothing in a list is trusted."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.client.mended import LEFT_OUT, NOTES, RESULT_SCHEMA
from workbench.present.inert import inert, inert_line
from workbench.rules.tools.names import qualified
from workbench.rules.wire import json_safety
from workbench.rules.wire.json_schema import draft_of
from workbench.upstream import reading

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import Tool

MOST_TOOLS = 1_000
"""Of a server that offers more, the first are used."""
MOST_PAGES = 200
LONGEST_NAME = 200
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 10_000
LARGEST_SCHEMA = 64 << 10
"""Characters of a schema as JSON."""
PROBLEMS_KEPT = 20
LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class ServerToolOffer:
    """A tool of a server. Its own texts are made inert, and cut.

    Args:
        name: as the server wrote it.
        parameters: JSON Schema of the arguments, an object.
        result: JSON Schema of the structured result, if the server gave a usable one.
        hints: its annotations, such as ``readOnlyHint``; true or false each.
    """

    name: str
    title: str | None
    description: str
    parameters: Mapping[str, Any]
    result: Mapping[str, Any] | None
    hints: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Offers:
    """The tools of a server by their names, and why others are left out.

    Args:
        names: the name of each in the catalogue, with the name on the server.
        problems: the first reasons, also for parts of tools that are left out.
        left_out: how many tools are left out.
        reading: the tools for its resources and prompts, which `reading.call` calls.
    """

    tools: Mapping[str, ServerToolOffer] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    left_out: int = 0
    reading: frozenset[str] = frozenset()


async def list_offers(client: Client, server: str) -> Offers:
    """The tools that a server lists, page by page, up to `MOST_TOOLS`, and those for its resources and prompts.

    Raises:
        MCPError, ValidationError: it does not list them, or not as the protocol says.
    """
    tools: dict[str, ServerToolOffer] = {}
    left_out: list[str] = []
    notes: list[str] = []
    cursors: list[str | None] = [None]
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursors[-1], cache_mode="refresh")
        meta = page.meta or {}
        is_again = page.next_cursor in cursors[1:]  # such as of a server that does not know what a cursor is
        new_tools = [tool for tool in page.tools if not (is_again and tool.name in tools)]
        left_out += [*map(_cut, meta.get(LEFT_OUT, ())), *await to_thread(_add_all, tools, new_tools)]
        notes += map(_cut, meta.get(NOTES, ()))
        if not page.next_cursor or is_again:
            break
        cursors.append(page.next_cursor)
    else:
        notes.append(f"its list does not end within {MOST_PAGES} pages")
    for_reading = await reading.offered(client, server)
    added = {
        name: ServerToolOffer(name, None, about, schema, None, {"readOnlyHint": True})
        for name, (about, schema) in for_reading.items()
        if name not in tools  # its own tool of that name goes before
    }
    names = {qualified(server, name): name for name in [*tools, *added]}
    problems = tuple((left_out + notes)[:PROBLEMS_KEPT])
    return Offers(tools | added, names, problems, len(left_out), frozenset(added))


def _cut(text: str) -> str:
    return inert_line(text[:LONGEST_PROBLEM])


def _add_all(tools: dict[str, ServerToolOffer], page: Sequence[Tool]) -> list[str]:
    """Add the tools of a page; return the reasons for those that are left out."""
    return [problem for tool in page if (problem := _add(tools, tool))]


def _add(tools: dict[str, ServerToolOffer], tool: Tool) -> str | None:
    """Add a tool; return the reason if it is left out."""
    name = inert_line(tool.name[:LONGEST_NAME])
    if not tool.name or len(tool.name) > LONGEST_NAME or name != tool.name:
        return f"the name {name!r} is empty, longer than {LONGEST_NAME} characters, or not printable"
    if tool.name in tools:
        return f"{name} is listed twice"
    if len(tools) >= MOST_TOOLS:
        return f"{name}: the first {MOST_TOOLS:,} tools are used"
    if reason := _why_unusable(tool.input_schema):
        return f"{name}: the schema of its arguments {reason}"
    tools[tool.name] = _offer(tool)
    return None


def _offer(tool: Tool) -> ServerToolOffer:
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    title = tool.title or hints.get("title")
    result = (tool.meta or {}).get(RESULT_SCHEMA)
    return ServerToolOffer(
        tool.name,
        inert_line(title[:LONGEST_TITLE]) if isinstance(title, str) else None,
        inert((tool.description or "").strip()[:LONGEST_DESCRIPTION]),
        tool.input_schema,
        result if isinstance(result, dict) and not _why_unusable(result) else None,
        {name: value for name, value in hints.items() if isinstance(value, bool)},
    )


def _why_unusable(schema: Mapping[str, Any]) -> str | None:
    """Why a schema cannot be used; None if it can."""
    try:
        json_safety.check(dict(schema))
        size = len(json.dumps(schema))
    except (ValueError, RecursionError) as error:
        return f"is not usable as JSON: {error}"
    if size > LARGEST_SCHEMA:
        return f"is larger than {LARGEST_SCHEMA:,} characters"
    if schema.get("type", "object") != "object":
        return "is not that of an object"
    if foreign := _find_foreign_reference(schema):
        return f"refers to {inert_line(foreign[:LONGEST_NAME])}, which is elsewhere"
    try:
        draft_of(schema)
    except ValueError as error:
        return f"is no JSON Schema: {inert_line(str(error))}"
    return None


def _find_foreign_reference(schema: Any) -> str | None:
    """A reference that does not begin with ``#``: following it would read a file or send a request."""
    if isinstance(schema, Mapping):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(reference := schema.get(key), str) and not reference.startswith("#"):
                return reference
        return next(filter(None, map(_find_foreign_reference, schema.values())), None)
    if isinstance(schema, list):
        return next(filter(None, map(_find_foreign_reference, schema)), None)
    return None
