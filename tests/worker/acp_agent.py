"""An agent that speaks the Agent Client Protocol as a test tells it: what it does with its prompt is its argument."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def say(**fields: Any) -> None:
    """Send a message."""
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)


def update(kind: str, **fields: Any) -> None:
    """Tell of something that happens."""
    say(method="session/update", params={"sessionId": "s-1", "update": {"sessionUpdate": kind, **fields}})


def heard() -> Any:
    """The next message."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def told(text: str) -> None:
    """Say a text in two pieces."""
    for part in (text[:3], text[3:]):
        update("agent_message_chunk", content={"type": "text", "text": part})


def work(how: str) -> dict[str, Any]:
    """Do what the test says; the answer to the prompt."""
    if how == "day":
        told("I look.\n")
        tool = {"toolCallId": "t1", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
        options = [{"optionId": f"o-{kind}", "kind": kind, "name": kind} for kind in ("reject_once", "allow_once")]
        say(id="p", method="session/request_permission", params={"toolCall": tool, "options": options})
        chosen = heard()["result"]["outcome"]
        update("tool_call_update", toolCallId="t1", status="in_progress")
        update("tool_call_update", toolCallId="t1", status="failed", rawOutput="no")
        say(id="f", method="fs/read_text_file", params={"path": "/etc/passwd"})
        refused = heard()["error"]["code"]
        update("tool_call", toolCallId="t2", title="mcp__workbench__get_task", status="completed")
        update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"})
        told(f"Chose {chosen['optionId']}.\nGot {refused}.")
        return {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 5, "cachedReadTokens": 1}}}
    if how == "obeys":
        while heard()["method"] != "session/cancel":
            pass
        Path("obeyed").touch()
        return {"result": {"stopReason": "cancelled"}}
    if how == "hangs":
        while (message := heard())["method"] != "session/cancel":
            pass
        Path("cancelled").write_text(message["params"]["sessionId"])
        time.sleep(1_000)
    if how == "stays":
        told("Done.")
    if how == "deaf":
        for _ in range(2_000):
            say(id="x" * 100, method="terminal/create", params={})
        time.sleep(1_000)
    if how.startswith("{"):
        return dict(json.loads(how))
    return {"result": {"stopReason": how}}


def main(how: str) -> None:
    """Answer what comes, until the input ends."""
    file = Path.home() / ".agent" / "s-1.jsonl"
    while (message := heard()) is not None:
        match message["method"]:
            case "initialize":
                answer: dict[str, Any] = {"result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}}
                answer = {"result": {"protocolVersion": 2}} if how == "newer" else answer
            case "session/new":
                file.parent.mkdir(exist_ok=True)
                file.write_text("begun\n")
                answer = {"result": {"sessionId": "s-1"}} if how != "nameless" else {"result": {}}
            case "session/load" if how == "forgets":
                answer = {"error": {"code": -32002, "message": "Resource not found"}}
            case "session/load":
                told(f"Replayed: {file.read_text()}")
                answer = {"result": None}
            case "session/prompt":
                update("plan", entries=[{"content": message["params"]["prompt"][-1]["text"], "status": "in_progress"}])
                answer = work("day" if how == "obeys" and Path("obeyed").exists() else how)
        say(id=message["id"], **answer)
    if how == "stays":
        time.sleep(1_000)
    sys.exit(3)


if __name__ == "__main__":
    main(sys.argv[1])
