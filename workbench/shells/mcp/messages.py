"""The messages of MCP as plain data: what a bridge has to know of them, without the package `mcp`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.errors import WorkbenchError

Message = dict[str, Any]

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAMED |= {f"tasks/{what}": "taskId" for what in ("get", "update", "cancel")}
"""Of requests without a session, the parameter that is also sent as a header."""
REGISTERING = ("register", "register_agent")
FAILED = -32603


def protocol_of(message: Message) -> str | None:
    """The version in a message of a protocol without sessions (from 2026-07-28 on); None in others."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def headers_of(message: Message, version: str) -> dict[str, str]:
    """The headers that repeat a message's version, method and name."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": str(message.get("method"))}
    name = message["params"].get(NAMED.get(str(message.get("method")), ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = _header_value(name)
    return headers


def _header_value(text: str) -> str:
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def registered_token(request: Message, answer: Message) -> str | None:
    """The token in the answer to a registration."""
    params, result = request.get("params"), answer.get("result")
    if request.get("method") != "tools/call" or not isinstance(params, dict) or not isinstance(result, dict):
        return None
    data = result.get("structuredContent")
    token = data.get("token") if params.get("name") in REGISTERING and isinstance(data, dict) else None
    return token if isinstance(token, str) else None


def failure(request: Message, error: WorkbenchError) -> Message:
    """The answer to a request that failed: a tool's result, as `server` makes it, or an error of the protocol."""
    answer: Message = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] != "tools/call":
        text = f"{error.code}: {error.message}"
        return answer | {"error": {"code": FAILED, "message": text, "data": error.as_dict()}}
    data = {"success": False, "error": error.as_dict()}
    content = [{"type": "text", "text": json.dumps(data, ensure_ascii=False, separators=(",", ":"))}]
    kind = {"resultType": "complete"} if protocol_of(request) else {}
    return answer | {"result": {**kind, "content": content, "isError": True}}


def list_changed(listening: Iterable[Mapping[str, Any]], *, has_session: bool) -> Iterator[Message]:
    """The announcements of a changed list of tools: in the session, and to each subscription that asks for them."""
    announcement: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if has_session:
        yield announcement
    for request in listening:
        listened = request["params"].get("notifications")
        if isinstance(listened, dict) and listened.get("toolsListChanged"):
            yield announcement | {"params": {"_meta": {SUBSCRIPTION_ID: request["id"]}}}
