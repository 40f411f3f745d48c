"""Mends messages of MCP servers that are off the protocol, before the client of the MCP package sees them.

That client validates whole messages: one invalid tool costs the whole list, one invalid part the result of a tool that
has run. So a message is mended on its way from the transport to the client, and lists the parts that were left out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from workbench.rules.reasons import reason

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp.types import CallToolResult

LEFT_OUT = "workbench/left-out"
"""In the `_meta` of a list: the tools that are left out, with the reasons."""
NOTES = "workbench/notes"
"""In the `_meta` of a list: the parts that are left out of listed tools, with the reasons."""
RESULT_SCHEMA = "workbench/result-schema"
"""In the `_meta` of a tool: the schema of its result, with which the client would refuse results."""
STRUCTURED = "workbench/structured"
"""In the `_meta` of a result: structured content other than the object that older versions of the protocol have."""

MOST = 1_000
"""Entries of a list, and parts of a result, that are checked one by one."""

_NEEDED = ("name", "inputSchema")
_PARTS = ("text", "image", "audio", "resource", "resource_link")


@asynccontextmanager
async def mended(transport: Transport, version: Callable[[], str | None]) -> AsyncGenerator[TransportStreams]:
    """A transport whose answers are mended.

    Args:
        version: the version of the protocol that was agreed on.
    """
    async with transport as (incoming, outgoing):
        yield _Mended(incoming, version), outgoing


class _Mended:
    def __init__(self, stream: Any, version: Callable[[], str | None]) -> None:
        self._stream = stream
        self._version = version

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        from mcp.types import JSONRPCResponse

        item: SessionMessage | Exception = await self._stream.receive()
        if not isinstance(item, Exception) and isinstance(item.message, JSONRPCResponse):
            mend(item.message.result, self._version)
            if isinstance(id_ := item.message.id, str) and id_.isdecimal():  # the client counts its requests
                item.message.id = int(id_)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def mend(result: dict[str, Any], version: Callable[[], str | None]) -> None:
    """Mend the result of a request in place, if it is a list of tools, the result of one, or what a server says of
    itself at the beginning.

    Args:
        version: that of the protocol.
    """
    if "_meta" in result and not isinstance(result["_meta"], dict):
        del result["_meta"]
    if "protocolVersion" in result:
        _mend_beginning(result)
    if isinstance(result.get("tools"), list):
        _mend_list(result, version() or "")
    elif "content" in result or "structuredContent" in result:
        _mend_content(result, version() or "")


def structured_content(result: CallToolResult) -> Any:
    """The structured content of a result that was mended."""
    return (result.meta or {}).get(STRUCTURED, result.structured_content)


def _mend_beginning(result: dict[str, Any]) -> None:
    about, abilities = _object(result.get("serverInfo")), _object(result.get("capabilities"))
    result["serverInfo"] = {key: str(about.get(key) or "") for key in ("name", "version")}
    result["capabilities"] = {name: ability for name, ability in abilities.items() if isinstance(ability, dict)}
    if not isinstance(result.get("instructions"), str):
        result.pop("instructions", None)


# Lists of tools.


def _mend_list(result: dict[str, Any], version: str) -> None:
    if not isinstance(cursor := result.get("nextCursor"), str | None):
        result["nextCursor"] = str(cursor)
    entries = result["tools"]
    left_out: list[str] = []
    notes: list[str] = []
    for tool in entries:
        _mend_schemas(tool)
    if _find_problem(version, result):
        result["tools"] = []
        if rest := len(entries[MOST:]):
            left_out.append(f"{rest:,} more are not looked at")
        for number, tool in enumerate(entries[:MOST], 1):
            if not isinstance(tool, dict):
                left_out.append(f"entry {number} is no tool")
            elif problem := _mend_tool(result, tool, version, notes):
                left_out.append(f"{tool.get('name')}: {problem}")
            else:
                result["tools"].append(tool)
    result["tools"], dropped = _drop_unusable_headers(result["tools"], version)
    result["_meta"] = {**_object(result.get("_meta")), LEFT_OUT: left_out + dropped, NOTES: notes}


def _mend_schemas(tool: Any) -> None:
    if not isinstance(tool, dict):
        return
    if isinstance(tool.get("inputSchema"), dict):
        tool["inputSchema"].setdefault("type", "object")
    if (schema := tool.pop("outputSchema", None)) is not None:
        tool["_meta"] = {**_object(tool.get("_meta")), RESULT_SCHEMA: schema}


def _mend_tool(result: Mapping[str, Any], tool: dict[str, Any], version: str, notes: list[str]) -> str | None:
    """Remove invalid parts from a tool, and note them; the reason if the tool cannot be used without one."""
    while problem := _find_problem(version, {**result, "tools": [tool]}):
        (key, *_), description = problem
        if key in _NEEDED or key not in tool:
            return description
        del tool[key]
        notes.append(f"{tool['name']} is used without its {key}: {description}")
    return None


def _drop_unusable_headers(tools: list[Any], version: str) -> tuple[list[Any], list[str]]:
    """The tools without those that the client would drop, and the reasons for those."""
    from mcp.shared.inbound import find_invalid_x_mcp_header
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    if version not in MODERN_PROTOCOL_VERSIONS:
        return tools, []
    problems = [find_invalid_x_mcp_header(tool["inputSchema"]) for tool in tools]
    usable = [tool for tool, problem in zip(tools, problems, strict=True) if problem is None]
    return usable, [f"{tool['name']}: {problem}" for tool, problem in zip(tools, problems, strict=True) if problem]


# Results of tools.


def _mend_content(result: dict[str, Any], version: str) -> None:
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    structured, content = result.get("structuredContent"), result.get("content")
    if "isError" in result:
        result["isError"] = str(result["isError"]).lower() in ("true", "1")
    if "structuredContent" in result and not isinstance(structured, dict) and version not in MODERN_PROTOCOL_VERSIONS:
        result.pop("structuredContent", None)
        result["_meta"] = {**_object(result.get("_meta")), STRUCTURED: structured}
    if isinstance(content, str):
        content = [_text(content)]
    elif not isinstance(content, list):
        content = [] if content is None else [content]
    result["content"] = content
    if not _is_result(version, result):
        rest = {key: value for key, value in result.items() if key != "structuredContent"}
        result["content"] = [
            part if _is_result(version, {**rest, "content": [part]}) else _replace_part(part) for part in content[:MOST]
        ]


def _is_result(version: str, result: Mapping[str, Any]) -> bool:
    from mcp.types import CallToolResult
    from pydantic import ValidationError

    try:
        CallToolResult.model_validate(result, by_name=False)
    except ValidationError:
        return False
    return not _find_errors("tools/call", version, result)


def _replace_part(part: Any) -> dict[str, str]:
    """A text in place of a part that is off the protocol."""
    kind = part.get("type") if isinstance(part, dict) else None
    state = "is malformed" if kind in _PARTS else "is of a kind that is not known"
    return _text(f"[A part of the result, {str(kind)[:50]!r}, {state}, and is left out.]")


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _find_problem(version: str, result: Mapping[str, Any]) -> tuple[tuple[Any, ...], str] | None:
    """The place of the first problem in a list's tools, and its description; None if there is none."""
    for error in _find_errors("tools/list", version, result):
        if error["loc"][:1] == ("tools",):
            place = error["loc"][2:]
            return place or ("",), f"{'.'.join(map(str, place))}: {reason(error)}"
    return None


def _find_errors(method: str, version: str, result: Mapping[str, Any]) -> list[Any]:
    """The validation errors of a result; none if the version is not known."""
    from mcp.types.methods import validate_server_result
    from pydantic import ValidationError

    try:
        validate_server_result(method, version, result)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    except (KeyError, ValueError):
        pass
    return []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
