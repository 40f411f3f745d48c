"""A model that says what it is told to: the APIs of Anthropic, OpenAI and Google, on loopback, for the real programs.

Each conversation goes through some steps: tools to use, and a text at the end. Where it is, is told by how many results
of tools it holds, so that a request that comes twice is answered twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROUTING = {"complexity_reasoning": "-", "complexity_score": 1, "reasoning": "-", "model_choice": "flash"}
"""What Gemini CLI asks first: which model is to do it."""


@dataclass(frozen=True)
class Fault:
    """How a request is answered that fails: a status, a body and headers; `hangs`: not at all, until the model ends."""

    status: int = 200
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "application/json"
    hangs: bool = False


Step = tuple[str, Any]
"""`("mcp", (name, arguments))`, `("tool", (name, arguments))`: one of the program's own; `("shell", command)` or
`("text", text)`."""
SERVER = "workbench"


@dataclass
class FakeModel:
    """Answers requests, and records them: their paths and their bodies.

    `scripts` are the steps of conversations in which a text occurs; all others go through `steps`. `keys` are the API
    keys that came with the requests. While there is a `fault`, all fail with it.
    """

    steps: Sequence[Step]
    scripts: dict[str, Sequence[Step]] = field(default_factory=dict)
    port: int = 0
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    fault: Fault | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def prompts(self) -> list[str]:
        """All that was sent, as JSON, one entry for each request."""
        return [json.dumps(said, ensure_ascii=False) for _, said in self.requests]

    @property
    def url(self) -> str:
        """The URL of the model."""
        return f"http://127.0.0.1:{self.port}"

    def step(self, done: int, said: dict[str, Any]) -> Step:
        """The step after a number of results in a conversation."""
        text = json.dumps(said)
        steps = next((script for marker, script in self.scripts.items() if marker in text), self.steps)
        return steps[min(done, len(steps) - 1)]


@contextmanager
def answering(*steps: Step) -> Iterator[FakeModel]:
    """A model that goes through some steps, as long as the block lasts."""
    model = FakeModel(steps)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            model.requests.append((self.path, said))
            headers = ("Authorization", "x-api-key", "x-goog-api-key")
            model.keys |= {value.removeprefix("Bearer ") for name in headers if (value := self.headers.get(name))}
            if fault := model.fault:
                if fault.hangs:
                    model.ended.wait()
                    return
                self._send(fault.kind, fault.body, fault.status, fault.headers)
                return
            self._send(*answer(model, self.path, said))

        def do_GET(self) -> None:
            self._send("application/json", json.dumps({"data": [], "models": []}))

        do_HEAD = do_GET  # noqa: N815

        def _send(self, kind: str, text: str, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> None:
            body = text.encode()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def answer(model: FakeModel, path: str, said: dict[str, Any]) -> tuple[str, str]:
    """Content type and body."""
    if "count_tokens" in path:
        return "application/json", '{"input_tokens": 1}'
    if path.startswith("/v1/messages"):
        return _anthropic(model, said)
    if path.startswith("/v1/responses"):
        return _openai(model, said)
    return _google(model, said, streaming="stream" in path)


def _events(*events: dict[str, Any]) -> str:
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def _anthropic(model: FakeModel, said: dict[str, Any]) -> tuple[str, str]:
    blocks = [b for m in said["messages"] if isinstance(m["content"], list) for b in m["content"]]
    done = sum(block.get("type") == "tool_result" for block in blocks)
    kind, what = model.step(done, said) if said.get("tools") else ("text", "ok")
    if kind == "text":
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": what}
    else:
        shell = ("Bash", {"command": what})
        name, arguments = (f"mcp__{SERVER}__{what[0]}", what[1]) if kind == "mcp" else what if kind == "tool" else shell
        block = {"type": "tool_use", "id": f"toolu_{done}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    stop = "end_turn" if kind == "text" else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{done}", "type": "message", "role": "assistant", "model": said["model"], "usage": usage}
    if not said.get("stream"):
        whole = {**block, "text": what} if kind == "text" else {**block, "input": arguments}
        return "application/json", json.dumps(
            message | {"content": [whole], "stop_reason": stop, "stop_sequence": None}
        )
    return "text/event-stream", _events(
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


def _openai(model: FakeModel, said: dict[str, Any]) -> tuple[str, str]:
    done = sum(item.get("type") == "function_call_output" for item in said["input"])
    kind, what = model.step(done, said) if said.get("tools") else ("text", "ok")
    if kind == "text":
        content = [{"type": "output_text", "text": what, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"m{done}", "content": content}
    else:
        item = {"type": "function_call", "id": f"f{done}", "call_id": f"c{done}", "status": "completed"}
        item |= _codex_call(kind, what, {tool.get("name") for tool in said["tools"]})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"r{done}", "object": "response", "output": [item], "usage": usage, "status": "completed"}
    return "text/event-stream", _events(
        {"type": "response.created", "response": {"id": f"r{done}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )


def _codex_call(kind: str, what: Any, tools: set[str]) -> dict[str, Any]:
    if kind == "mcp":
        return {"namespace": f"mcp__{SERVER}", "name": what[0], "arguments": json.dumps(what[1])}
    if kind == "tool":
        return {"name": what[0], "arguments": json.dumps(what[1])}
    if "exec_command" in tools:
        return {"name": "exec_command", "arguments": json.dumps({"cmd": what})}
    return {"name": "shell", "arguments": json.dumps({"command": ["bash", "-c", what]})}


def _google(model: FakeModel, said: dict[str, Any], *, streaming: bool) -> tuple[str, str]:
    parts = [part for content in said.get("contents", []) for part in content.get("parts", [])]
    done = sum("functionResponse" in part for part in parts)
    kind, what = model.step(done, said) if said.get("tools") else ("text", json.dumps(ROUTING))
    if kind == "text":
        part: dict[str, Any] = {"text": what}
    else:
        shell = ("run_shell_command", {"command": what, "description": "Work"})
        name, arguments = (f"mcp_{SERVER}_{what[0]}", what[1]) if kind == "mcp" else what if kind == "tool" else shell
        part = {"functionCall": {"name": name, "args": arguments}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    chunk = json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"})
    return ("text/event-stream", f"data: {chunk}\r\n\r\n") if streaming else ("application/json", chunk)
