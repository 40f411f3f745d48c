"""Content of messages, as the suite has it."""

from __future__ import annotations

import base64
import json
from typing import Any

Block = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0").decode()
IMAGE: Block = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: Block = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def resource(uri: str, said: str, mime_type: str = "text/plain") -> Block:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


def form(message: str, *required: str, **properties: Block) -> Block:
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt: str, most: int) -> Block:
    params = {"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": most}
    return {"method": "sampling/createMessage", "params": params}


def as_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
