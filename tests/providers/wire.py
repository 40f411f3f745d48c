"""The wire formats of providers: how a step of a model looks on each, as the pieces of a response."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Step:
    """The answer of a model in one step.

    Args:
        usage: tokens in and out; None: the provider does not report them.
        ends: whether the end of the answer is part of it.
        cached: of the tokens in, those that the provider had in its cache.
        thought: of the tokens out, those of its thoughts.
    """

    text: Sequence[str] = ()
    calls: Sequence[Call] = ()
    thinking: str = ""
    usage: tuple[int, int] | None = (11, 7)
    end: str = "stop"
    ends: bool = True
    failure: Json | None = None
    model: str = "scripted"
    cached: int = 0
    thought: int = 0


def openai_chat(step: Step) -> list[bytes]:
    """OpenAI's chat completions, as ollama and compatible servers speak them."""
    sent: list[Json] = [{"delta": {"role": "assistant", "content": ""}}]
    sent += [{"delta": {"reasoning_content": step.thinking}}] if step.thinking else []
    sent += [{"delta": {"content": text}} for text in step.text]
    for number, call in enumerate(step.calls):
        made = {"index": number, "id": call.id, "type": "function"}
        sent.append({"delta": {"tool_calls": [{**made, "function": {"name": call.name, "arguments": ""}}]}})
        sent += [
            {"delta": {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}}
            for piece in _pieces(call.arguments)
        ]
    if step.ends:
        sent.append({"delta": {}, "finish_reason": "tool_calls" if step.calls else step.end})
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": step.model}
    chunks = [_data({**base, "choices": [{"index": 0, "finish_reason": None, **one}]}) for one in sent]
    if step.ends and step.usage is not None:
        counted: Json = {
            "prompt_tokens": step.usage[0],
            "completion_tokens": step.usage[1],
            "total_tokens": sum(step.usage),
        }
        counted |= {"prompt_tokens_details": {"cached_tokens": step.cached}}
        counted |= {"completion_tokens_details": {"reasoning_tokens": step.thought}}
        chunks.append(_data({**base, "choices": [], "usage": counted}))
    return [*chunks, b"data: [DONE]\n\n"] if step.ends else chunks


def openai_responses(step: Step) -> list[bytes]:
    response: Json = {
        "id": "r1", "object": "response", "created_at": 1, "model": step.model, "output": [], "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress",
    }  # fmt: skip
    sent: list[Json] = [{"type": "response.created", "response": response}]
    place = 0
    if step.text:
        item = {"id": "m1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        sent.append({"type": "response.output_item.added", "output_index": 0, "item": item})
        part = {"type": "output_text", "text": "", "annotations": []}
        at = {"item_id": "m1", "output_index": 0, "content_index": 0}
        sent.append({"type": "response.content_part.added", **at, "part": part})
        sent += [{"type": "response.output_text.delta", **at, "delta": text, "logprobs": []} for text in step.text]
        place = 1
    for number, call in enumerate(step.calls, place):
        item = {"id": f"f{number}", "type": "function_call", "call_id": call.id, "name": call.name, "arguments": ""}
        sent.append({"type": "response.output_item.added", "output_index": number, "item": item})
        at = {"item_id": f"f{number}", "output_index": number}
        sent += [
            {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            for piece in _pieces(call.arguments)
        ]
        done = {**item, "arguments": call.arguments, "status": "completed"}
        sent.append({"type": "response.output_item.done", "output_index": number, "item": done})
    if step.ends:
        is_short = step.end == "length"
        ended: Json = {**response, "status": "incomplete" if is_short else "completed"}
        if is_short:
            ended["incomplete_details"] = {"reason": "max_output_tokens"}
        if step.usage is not None:
            ended["usage"] = {
                "input_tokens": step.usage[0], "output_tokens": step.usage[1], "total_tokens": sum(step.usage),
                "input_tokens_details": {"cached_tokens": step.cached},
                "output_tokens_details": {"reasoning_tokens": step.thought},
            }  # fmt: skip
        sent.append({"type": f"response.{ended['status']}", "response": ended})
    return [_named(one["type"], {**one, "sequence_number": number}) for number, one in enumerate(sent)]


def anthropic(step: Step) -> list[bytes]:
    """Anthropic's messages."""
    counted = step.usage or (0, 0)
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": step.model, "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {
            "input_tokens": counted[0], "output_tokens": 1 if step.usage else 0,
            "cache_read_input_tokens": step.cached, "cache_creation_input_tokens": 0,
        },
    }  # fmt: skip
    sent: list[Json] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[Json, list[Json]]] = []
    if step.thinking:
        deltas = [{"type": "thinking_delta", "thinking": step.thinking}, {"type": "signature_delta", "signature": "s"}]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if step.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in step.text]))
    for call in step.calls:
        begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.arguments)]
        blocks.append((begun, pieces))
    for number, (begun, deltas) in enumerate(blocks):
        sent.append({"type": "content_block_start", "index": number, "content_block": begun})
        sent += [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
        if step.ends:
            sent.append({"type": "content_block_stop", "index": number})
    if step.failure is not None:
        sent.append({"type": "error", "error": step.failure})
    if step.ends:
        reason = {"stop": "end_turn", "length": "max_tokens"}[step.end]
        delta = {"stop_reason": "tool_use" if step.calls else reason, "stop_sequence": None}
        sent.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": counted[1]}})
        sent.append({"type": "message_stop"})
    return [_named(one["type"], one) for one in sent]


def google(step: Step) -> list[bytes]:
    """Google's generateContent."""
    parts: list[Json] = [{"text": text} for text in step.text]
    parts += [{"functionCall": {"name": call.name, "args": json.loads(call.arguments)}} for call in step.calls]
    sent: list[Json] = [{"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts or [{"text": ""}]]
    if step.ends:
        sent[-1]["finishReason"] = {"stop": "STOP", "length": "MAX_TOKENS"}[step.end]
    whole: list[Json] = [{"candidates": [one], "modelVersion": step.model} for one in sent]
    if step.ends and step.usage is not None:
        counted = {"promptTokenCount": step.usage[0], "candidatesTokenCount": step.usage[1]}
        whole[-1]["usageMetadata"] = {**counted, "totalTokenCount": sum(step.usage)}
    return [_data(one) for one in whole]


def bedrock(step: Step) -> list[bytes]:
    """Amazon's converse-stream: binary messages with checksums."""
    sent: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
    blocks: list[tuple[Json | None, list[Json]]] = []
    if step.text:
        blocks.append((None, [{"text": text} for text in step.text]))
    for call in step.calls:
        begun = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        blocks.append((begun, [{"toolUse": {"input": piece}} for piece in _pieces(call.arguments)]))
    for number, (start, deltas) in enumerate(blocks):
        if start is not None:
            sent.append(("contentBlockStart", {"start": start, "contentBlockIndex": number}))
        sent += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": number}) for delta in deltas]
        sent.append(("contentBlockStop", {"contentBlockIndex": number}))
    if step.ends:
        reason = {"stop": "end_turn", "length": "max_tokens"}[step.end]
        sent.append(("messageStop", {"stopReason": "tool_use" if step.calls else reason}))
        counted = step.usage or (0, 0)
        usage = {"inputTokens": counted[0], "outputTokens": counted[1], "totalTokens": sum(counted)}
        sent.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return [_event_stream(kind, content) for kind, content in sent]


def _pieces(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _data(content: Json) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


def _named(event: str, content: Json) -> bytes:
    return f"event: {event}\n".encode() + _data(content)


def _event_stream(kind: str, content: Json) -> bytes:
    """One message of `application/vnd.amazon.eventstream`."""
    values = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in values.items()
    )
    payload = json.dumps(content).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return whole + struct.pack("!I", zlib.crc32(whole))
