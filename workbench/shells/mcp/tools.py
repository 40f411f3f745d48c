"""Tools and their results, as MCP has them."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.types import INVALID_PARAMS, CallToolResult, TextContent, Tool, ToolAnnotations
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from workbench.client.mended import mend
from workbench.errors import WorkbenchError
from workbench.ops import Op
from workbench.rules.tools.content import as_text, picture
from workbench.services.tools import tool as catalogue
from workbench.shells.mcp.backend import Context, internal_error, protocol_error

FIRST_CHOICE = frozenset({"register", "heartbeat_and_get_tasks", "claim_task", "complete_task"})
UNKNOWN = frozenset({"UNKNOWN_OPERATION", "UNKNOWN_TOOL"})

log = logging.getLogger(__name__)


def of_operation(op: Op) -> Tool:
    """An operation as an MCP tool, with hints for clients that ask before they act."""
    return Tool(
        name=op.name,
        title=op.title,
        description=op.help,
        input_schema=op.input_schema,
        output_schema=op.output_schema,
        annotations=ToolAnnotations(read_only_hint=op.reads, destructive_hint=op.destructive, open_world_hint=False),
        _meta={"anthropic/alwaysLoad": True} if op.name in FIRST_CHOICE else None,
    )


def of_catalogue(tool: catalogue.ToolInfo, version: str) -> Tool:
    """Another tool of the catalogue as an MCP tool.

    Args:
        version: of the protocol. Before 2026-07-28, schemas of results are objects, and clients refuse the whole list
            for one that is not.
    """
    fits = tool.result is not None and (version in MODERN_PROTOCOL_VERSIONS or tool.result.get("type") == "object")
    return Tool(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema={**tool.parameters, "type": "object"},
        output_schema=dict(tool.result) if tool.result is not None and fits else None,
        annotations=ToolAnnotations(
            read_only_hint=tool.hints.read_only,
            destructive_hint=tool.hints.destructive,
            idempotent_hint=tool.hints.idempotent,
            open_world_hint=tool.hints.open_world,
        ),
    )


async def coded(run: Callable[[], Awaitable[CallToolResult]]) -> CallToolResult:
    """The outermost handler of a call: errors are results with a code; an unknown tool is an error of the protocol."""
    try:
        return await run()
    except WorkbenchError as error:
        if error.code in UNKNOWN:
            raise protocol_error(error, INVALID_PARAMS) from None
        return _failure(error)
    except Exception:
        log.exception("a tool call failed")
        return _failure(internal_error())


def structured(data: Mapping[str, Any]) -> CallToolResult:
    """What an operation returned."""
    return CallToolResult(content=[_text(data)], structured_content=dict(data))


def named_call(data: Mapping[str, Any]) -> CallToolResult:
    """What the operation `call_tool` returned: pictures are content, and named where they were."""
    result = data["result"]
    images = [block for block in result if picture(block)] if isinstance(result, list) else []
    if not images:
        return structured(data)
    shown_call = {**data, "result": as_text(result)}
    content = [_text(shown_call).model_dump(), *images]
    return CallToolResult.model_validate({"content": content, "structuredContent": shown_call})


def outcome(returned: catalogue.ToolOutcome, ctx: Context) -> CallToolResult:
    """What another tool returned. Before 2026-07-28, structured content is an object; any other is a text. In place of
    a part that MCP does not know is a text that says so."""
    content = returned.content or ([] if returned.structured is None else [_text(returned.structured).model_dump()])
    result = {"resultType": "complete", "content": content, "isError": returned.is_error}
    if isinstance(returned.structured, dict) or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        result["structuredContent"] = returned.structured
    mend(result, lambda: ctx.protocol_version)
    return CallToolResult.model_validate(result)


def _failure(error: WorkbenchError) -> CallToolResult:
    """An error, as JSON in a text only: clients compare structured content, also of errors, with the output schema."""
    return CallToolResult(content=[_text({"success": False, "error": error.as_dict()})], is_error=True)


def _text(data: Any) -> TextContent:
    return TextContent(type="text", text=json.dumps(data, ensure_ascii=False, separators=(",", ":")))
