"""The models of three providers, scripted: `python -m tests.night.model SCRIPT` serves them and prints its port.

The script is JSON: for each marker that stands in a prompt, its attempts, each a list of `[minutes, text]`: what the
model says after how long; a text `$ …` is a command to run. The last attempt counts for all later ones. `limits` are
`[provider, from, until]`, in minutes since the start: meanwhile it answers with 429.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

USED = {"input_tokens": 1_000, "output_tokens": 100}


class Models(ThreadingHTTPServer):
    """Answers by the script."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, script: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: dict[str, Any] = json.loads(script.read_text("utf-8"))
        self.began = time.time()
        self.attempts: dict[str, int] = {}
        self.lock = Lock()

    def limit(self, provider: str) -> float | None:
        """For how many seconds a provider is limited yet."""
        minutes = (time.time() - self.began) / 60
        return next(
            (
                (until - minutes) * 60
                for name, since, until in self.script["limits"]
                if name == provider and since <= minutes < until
            ),
            None,
        )

    def step(self, text: str, turns: int) -> tuple[float, str]:
        """What the model says to a conversation, and after how many minutes."""
        marker = next(one for one in self.script["tasks"] if one in text)
        with self.lock:
            if turns == 0:
                self.attempts[marker] = self.attempts.get(marker, 0) + 1
            attempt = self.attempts[marker]
        attempts = self.script["tasks"][marker]
        steps = attempts[min(attempt, len(attempts)) - 1]
        minutes, said = steps[min(turns, len(steps) - 1)]
        return minutes, said


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Models
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer as the provider does that the path tells."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        provider = "anthropic" if "messages" in body else "openai" if "input" in body else "gemini"
        said = body.get("messages") or body.get("input") or body["contents"]
        if (left := self.server.limit(provider)) is not None:
            self._send(
                {"error": {"type": "rate_limit_error", "message": "too much"}}, 429, {"retry-after": f"{left:.0f}"}
            )
            return
        minutes, text = self.server.step(json.dumps(said[0], ensure_ascii=False), len(said) // 2)
        time.sleep(minutes * 60)
        self._send(_dialect(provider, text))

    def _send(self, answer: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


def _dialect(provider: str, text: str) -> dict[str, Any]:
    if provider == "anthropic":
        content = [{"type": "text", "text": text}]
        return {"type": "message", "role": "assistant", "model": "claude-night", "content": content, "usage": USED}
    if provider == "openai":
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        return {"object": "response", "model": "gpt-night", "status": "completed", "output": [message], "usage": USED}
    content = {"role": "model", "parts": [{"text": text}]}
    used = {"promptTokenCount": 1_000, "candidatesTokenCount": 100}
    return {"candidates": [{"content": content}], "usageMetadata": used, "modelVersion": "gemini-night"}


if __name__ == "__main__":
    models = Models(Path(sys.argv[1]))
    print(models.server_address[1], flush=True)
    models.serve_forever()
