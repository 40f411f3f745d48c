"""An MCP server for tests, on standard input and output, that keeps to the protocol as little as real ones do."""

from __future__ import annotations

import json
import sys
from typing import Any


def schema(**x: Any) -> dict[str, Any]:
    """The schema of arguments with one property."""
    return {"type": "object", "properties": {"x": x}}


ANSWERS: dict[str, Any] = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "odd", "version": "1"}},
    "tools/list": {
        "nextCursor": "",
        "tools": [
            {
                "name": "good",
                "inputSchema": schema(items=[{"type": "number"}]),
                "outputSchema": {"description": "no type"},
            },
            {"name": "empty", "inputSchema": schema()},
            {"name": "bad", "inputSchema": schema(type=3)},
            {"name": "worse"},
        ],
    },
    "tools/call": {"content": [{"type": "hologram"}, {"type": "text", "text": "It has run."}]},
}
for line in sys.stdin:
    message = json.loads(line)
    result = ANSWERS.get(message["method"])
    answer: dict[str, Any] = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    if message.get("params", {}).get("name") == "empty":
        answer = {"result": None}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
