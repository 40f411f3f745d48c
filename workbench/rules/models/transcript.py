"""What was said between an agent's program and a model, in one form for all providers.

A message is `{"role": …, "parts": […]}`; a part has `text`, `thinking`, `tool_call` (with `arguments`), `tool_result`
(with `content`) or `other`. Each request repeats the conversation so far: messages are chained by hashes, so that each
is kept once. What programs change between two requests (marks of caches, ids, signatures, the form of a text) is in no
hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Message = dict[str, Any]
Part = dict[str, Any]
SHORT = 200


def session_of(headers: Mapping[str, str]) -> str:
    """The conversation that a program says a request belongs to; it groups within an attempt, and proves nothing."""
    names = ("x-claude-code-session-id", "x-claude-code-agent-id", "session-id", "session_id", "thread-id")
    return "\0".join(headers.get(name, "")[:SHORT] for name in names)


def node(parent: str, message: Message) -> str:
    """The identifier of a message after another."""
    return hashlib.blake2b(f"{parent}\0{_canonical(message)}".encode(), digest_size=16).hexdigest()


def root(*scope: str) -> str:
    """The identifier that a conversation begins with."""
    return hashlib.blake2b("\0".join(scope).encode(), digest_size=16).hexdigest()


def _canonical(message: Message) -> str:
    parts = [{key: value for key, value in part.items() if key != "id"} for part in message["parts"]]
    said = [part for part in parts if not part.keys() & {"thinking"}]
    return json.dumps([message["role"], said], sort_keys=True)


def of_request(provider: str, body: bytes) -> list[Message]:
    """The messages of a request, instructions and the names of its tools first; none if it cannot be read."""
    try:
        asked = json.loads(body)
        return list(filter(None, _READERS[provider](asked))) if isinstance(asked, dict) else []
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return []


def of_answer(provider: str, body: bytes, *, is_stream: bool) -> Message | None:
    """The message of an answer, also of one that was cut; None if there is none."""
    try:
        events = list(_events(body)) if is_stream else [json.loads(body)]
        message = _ANSWERS[provider]([event for event in events if isinstance(event, dict)])
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError, IndexError):
        return None
    return message if message and message["parts"] else None


def _events(body: bytes) -> Iterator[Any]:
    for line in body.split(b"\n"):
        text = line[5:].strip() if line.startswith(b"data:") else b""
        if text.startswith(b"{"):
            try:
                yield json.loads(text)
            except ValueError:  # the last one of a cut answer
                return


def _message(role: str, parts: Sequence[Part]) -> Message | None:
    return {"role": role, "parts": list(parts)} if parts else None


def _texts(content: Any) -> list[Part]:
    """The parts of a content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [part for block in content or () for part in _block(block)]


def _block(block: Any) -> Iterator[Part]:
    if isinstance(block, str):
        yield {"text": block}
        return
    kind = block.get("type")
    match kind:
        case "text" | "input_text" | "output_text" | "refusal":
            yield {"text": block.get("text") or block.get("refusal") or ""}
        case "thinking":
            yield {"thinking": block.get("thinking", "")}
        case "tool_use" | "server_tool_use":
            yield {"tool_call": block["name"], "id": block.get("id"), "arguments": block.get("input")}
        case "tool_result":
            result = _texts(block.get("content"))
            failed = {"failed": True} if block.get("is_error") else {}
            yield {"tool_result": block.get("tool_use_id"), "content": result} | failed
        case _:
            yield {"other": str(kind)[:SHORT]}


def _tools(names: Sequence[Any]) -> Message | None:
    return _message("tools", [{"text": str(name)} for name in names if name])


def _of_anthropic(asked: Mapping[str, Any]) -> Iterator[Message | None]:
    yield _message("system", _texts(asked.get("system")))
    yield _tools([tool.get("name") for tool in asked.get("tools") or ()])
    for message in asked.get("messages") or ():
        yield _message(str(message["role"]), _texts(message.get("content")))


def _of_openai(asked: Mapping[str, Any]) -> Iterator[Message | None]:
    yield _message("system", _texts(asked.get("instructions")))
    tools = asked.get("tools") or ()
    yield _tools([tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type") for tool in tools])
    if isinstance(said := asked.get("input"), str):
        yield _message("user", _texts(said))
        return
    for item in said or ():
        yield _item(item)
    for message in asked.get("messages") or ():
        yield _completion(message)


def _item(item: Mapping[str, Any]) -> Message | None:
    """An item of the Responses API."""
    match item.get("type", "message"):
        case "message":
            return _message(str(item.get("role", "assistant")), _texts(item.get("content")))
        case "reasoning":
            return None  # it is sent back or not, as the program likes, and in another form
        case "function_call" | "custom_tool_call":
            arguments = item.get("arguments", item.get("input"))
            return _message(
                "assistant", [{"tool_call": item["name"], "id": item.get("call_id"), "arguments": _read(arguments)}]
            )
        case "function_call_output" | "custom_tool_call_output":
            return _message("tool", [{"tool_result": item.get("call_id"), "content": _texts(item.get("output"))}])
        case other:
            return _message("assistant", [{"other": str(other)[:SHORT]}])


def _completion(message: Mapping[str, Any]) -> Message | None:
    """A message of a chat completion."""
    role = str(message.get("role", "assistant"))
    if role == "tool":
        return _message(role, [{"tool_result": message.get("tool_call_id"), "content": _texts(message.get("content"))}])
    calls = [
        {"tool_call": call["function"]["name"], "id": call.get("id"), "arguments": _read(call["function"]["arguments"])}
        for call in message.get("tool_calls") or ()
    ]
    return _message(role, [*_texts(message.get("content")), *calls])


def _of_gemini(asked: Mapping[str, Any]) -> Iterator[Message | None]:
    instruction = asked.get("systemInstruction") or asked.get("system_instruction") or {}
    yield _message("system", _gemini_parts(instruction.get("parts")))
    declared = [one for tool in asked.get("tools") or () for one in tool.get("functionDeclarations") or ()]
    yield _tools([one.get("name") for one in declared])
    for content in asked.get("contents") or ():
        role = "assistant" if content.get("role") == "model" else "user"
        yield _message(role, _gemini_parts(content.get("parts")))


def _gemini_parts(parts: Any) -> list[Part]:
    """Parts; the texts that a stream has cut in pieces are one."""
    found: list[Part] = []
    for part in parts or ():
        if "text" in part:
            kind = "thinking" if part.get("thought") else "text"
            if found and kind in found[-1]:
                found[-1] = {kind: found[-1][kind] + part["text"]}
            elif part["text"]:
                found.append({kind: part["text"]})
        elif call := part.get("functionCall"):
            found.append({"tool_call": call["name"], "id": call.get("id"), "arguments": call.get("args")})
        elif result := part.get("functionResponse"):
            found.append({"tool_result": result["name"], "content": [{"text": json.dumps(result.get("response"))}]})
        else:
            found.append({"other": ",".join(sorted(part))[:SHORT]})
    return found


def _read(arguments: Any) -> Any:
    """The arguments of a call, which come as JSON, possibly cut."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _answer_of_anthropic(events: Sequence[Mapping[str, Any]]) -> Message | None:
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        match event.get("type"):
            case "message":
                return _message("assistant", _texts(event.get("content")))
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"]}
            case "content_block_delta":
                block, delta = blocks.setdefault(event["index"], {"type": "text", "text": ""}), event["delta"]
                for name in ("text", "thinking", "partial_json"):
                    if name in delta:
                        block[name] = block.get(name, "") + delta[name]
    for block in blocks.values():
        if "partial_json" in block:
            block["input"] = _read(block.pop("partial_json") or "{}")
    return _message("assistant", _texts([blocks[index] for index in sorted(blocks)]))


def _answer_of_openai(events: Sequence[Mapping[str, Any]]) -> Message | None:
    items, text, calls = [], "", dict[int, dict[str, Any]]()
    for event in events:
        kind = event.get("type")
        if kind in ("response.completed", "response.incomplete") or event.get("object") == "response":
            items = (event.get("response") or event)["output"]
            break
        if kind == "response.output_item.done":
            items.append(event["item"])
        elif kind == "response.output_text.delta":
            text += event["delta"]
        for choice in event.get("choices") or ():
            if "message" in choice:
                return _completion(choice["message"])
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                known = calls.setdefault(
                    call["index"], {"id": call.get("id"), "function": {"name": "", "arguments": ""}}
                )
                for name in ("name", "arguments"):
                    known["function"][name] += (call.get("function") or {}).get(name) or ""
    if items:
        parts = [part for item in items if (message := _item(item)) for part in message["parts"]]
        return _message("assistant", parts)
    return _completion({"content": text, "tool_calls": [calls[index] for index in sorted(calls)]})


def _answer_of_gemini(events: Sequence[Mapping[str, Any]]) -> Message | None:
    candidates = [candidate for event in events for candidate in (event.get("candidates") or ())[:1]]
    parts = [part for one in candidates for part in (one.get("content") or {}).get("parts") or ()]
    return _message("assistant", _gemini_parts(parts))


_READERS = {"anthropic": _of_anthropic, "openai": _of_openai, "gemini": _of_gemini}
_ANSWERS = {"anthropic": _answer_of_anthropic, "openai": _answer_of_openai, "gemini": _answer_of_gemini}


def each_once(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages with one part each: providers join the parts of an answer, and split them, as they like."""
    for message in messages:
        for part in message["parts"] if message["role"] != "tools" else ():
            yield {"role": message["role"], "parts": [part]}
        if message["role"] == "tools":
            yield message
