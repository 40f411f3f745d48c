"""What programs of agents tell of themselves by OTLP: requests to models, and what was said.

Claude Code, Codex and Gemini CLI write events of their own; other programs, spans by the conventions for generative AI.
All of it is claims of a program: nothing here says who tells it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.rules.models import transcript
from workbench.rules.models.transcript import Message
from workbench.rules.models.usage import ModelUsage, of_anthropic, of_gemini, of_openai
from workbench.rules.telemetry.spans import PROVIDERS

Signal = Literal["logs", "traces", "metrics"]
NANO = 1_000
ASKING = frozenset({"chat", "text_completion", "generate_content"})
"""The operations of spans that are requests to a model."""
MOST = 1e12
"""The largest number that is believed."""
LONGEST = 200
"""Characters of a name that a program tells."""
_OWN = {theirs: own for own, theirs in PROVIDERS.items() if own != "google"} | {"gcp.gen_ai": "gemini"}

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToldRequest:
    """A request to a model.

    Args:
        key: identifies what told of it: the same when that is sent again.
        at: when it ended, in microseconds; None: it does not say.
    """

    key: str
    provider: str
    model: str | None
    usage: ModelUsage
    at: int | None
    seconds: float | None
    first_byte_seconds: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ToldMessages:
    """What was said.

    Args:
        key: see `ToldRequest`.
        session: the conversation within the attempt, as the program names it.
        place: whether the messages are the whole conversation so far, the reply to that, or come after all others.
    """

    key: str
    provider: str
    session: str
    messages: Sequence[Message]
    place: Literal["whole", "reply", "after"] = "after"


Told = ToldRequest | ToldMessages


def read(signal: Signal, document: Any) -> list[Told]:
    """What a request of OTLP tells, as its JSON has it; nothing of what is not known here.

    Raises:
        ValueError: it is not of OTLP.
    """
    try:
        if signal == "logs":
            return [told for record in _logs(document) for told in _of_record(record)]
        if signal == "traces":
            return [told for span, scope in _spans(document) for told in _of_span(span, scope)]
    except (AttributeError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ValueError("it has another form") from error
    return []


def _logs(document: Any) -> Iterator[Mapping[str, Any]]:
    for resource in document.get("resourceLogs") or ():
        for scope in resource.get("scopeLogs") or ():
            yield from scope.get("logRecords") or ()


def _spans(document: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    for resource in document.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            name = str((scope.get("scope") or {}).get("name"))
            yield from ((span, name) for span in scope.get("spans") or ())


def _of_record(record: Mapping[str, Any]) -> Iterator[Told]:
    about = _attributes(record)
    reader = _EVENTS.get(str(about.get("event.name")))
    if reader is not None:
        yield from reader(_key(record), about, _time(record))


def _of_span(span: Mapping[str, Any], scope: str) -> Iterator[Told]:
    """A request by the conventions; Gemini CLI tells of its requests by events, too, which say more."""
    about = _attributes(span)
    if about.get("gen_ai.operation.name") not in ASKING or scope == "gemini-cli":
        return
    usage = of_openai(
        {
            "input_tokens": _count(about, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            "input_tokens_details": {
                "cached_tokens": _count(about, "gen_ai.usage.cache_read.input_tokens"),
                "cache_write_tokens": _count(about, "gen_ai.usage.cache_creation.input_tokens"),
            },
            "output_tokens": _count(about, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            "output_tokens_details": {"reasoning_tokens": _count(about, "gen_ai.usage.reasoning.output_tokens")},
        }
    )
    if usage.input is None and usage.output is None:
        return
    provider = _text(about, "gen_ai.provider.name", "gen_ai.system") or "unknown"
    model = _text(about, "gen_ai.response.model", "gen_ai.request.model")
    start, end = _nanoseconds(span, "startTimeUnixNano"), _nanoseconds(span, "endTimeUnixNano")
    seconds = (end - start) / 1e9 if start and 0 <= end - start <= MOST * 1e9 else None
    yield ToldRequest(_key(span), _OWN.get(provider, provider), model, usage, end // NANO or None, seconds)


def _claude_request(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    counts = {name: _count(about, name) for name in ("input_tokens", "output_tokens")}
    counts["cache_read_input_tokens"] = _count(about, "cache_read_tokens")
    counts["cache_creation_input_tokens"] = _count(about, "cache_creation_tokens")
    hour = {"ephemeral_1h_input_tokens": _count(about, "cache_creation_1h_tokens")}
    usage = of_anthropic(counts | {"cache_creation": hour})
    first = _number(about, "ttft_ms")
    yield ToldRequest(
        key,
        "anthropic",
        _text(about, "model"),
        usage,
        at,
        _milliseconds(about),
        None if first is None else first / 1_000,
        _number(about, "cost_usd"),
    )


def _claude_prompt(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    yield from _message(key, "anthropic", about, "user", [{"text": _text_of(about, "prompt")}])


def _claude_answer(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    yield from _message(key, "anthropic", about, "assistant", [{"text": _text_of(about, "response")}])


def _claude_tool(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    call = {"tool_call": _text_of(about, "tool_name"), "id": about.get("tool_use_id")}
    yield from _message(key, "anthropic", about, "assistant", [call | {"arguments": _json(about.get("tool_input"))}])


def _codex_request(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    if about.get("event.kind") != "response.completed" or "input_token_count" not in about:
        return
    cached, written = (_count(about, f"{name}_token_count") for name in ("cached", "cache_write"))
    usage = of_openai(
        {
            "input_tokens": _count(about, "input_token_count"),
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "output_tokens": _count(about, "output_token_count"),
            "output_tokens_details": {"reasoning_tokens": _count(about, "reasoning_token_count")},
        }
    )
    yield ToldRequest(key, "openai", _text(about, "model"), usage, at, None)


def _codex_prompt(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    yield from _message(key, "openai", about, "user", [{"text": _text_of(about, "prompt")}])


def _codex_tool(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    call_id = about.get("call_id")
    call = {"tool_call": _text_of(about, "tool_name"), "id": call_id, "arguments": _json(about.get("arguments"))}
    result = {"tool_result": call_id, "content": [{"text": _text_of(about, "output")}]}
    session = _session(about)
    messages = [{"role": "assistant", "parts": [call]}, {"role": "user", "parts": [result]}]
    yield ToldMessages(key, "openai", session, messages)


def _gemini_request(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    usage = of_gemini(
        {
            "promptTokenCount": _count(about, "input_token_count"),
            "cachedContentTokenCount": _count(about, "cached_content_token_count"),
            "toolUsePromptTokenCount": _count(about, "tool_token_count"),
            "candidatesTokenCount": _count(about, "output_token_count"),
            "thoughtsTokenCount": _count(about, "thoughts_token_count"),
        }
    )
    yield ToldRequest(key, "gemini", _text(about, "model"), usage, at, _milliseconds(about))
    answers = _json(about.get("response_text"))
    if isinstance(answers, list):
        text = "".join(f"data: {json.dumps(answer)}\n" for answer in answers)
        if (message := transcript.of_answer("gemini", text.encode(), is_stream=True)) is not None:
            yield ToldMessages(key, "gemini", _session(about), [message], "reply")


def _gemini_asks(key: str, about: Attributes, at: int | None) -> Iterator[Told]:
    contents = json.dumps({"contents": _json(about.get("request_text"))})
    if messages := transcript.of_request("gemini", contents.encode()):
        yield ToldMessages(key, "gemini", _session(about), messages, "whole")


_EVENTS = {
    "api_request": _claude_request,
    "user_prompt": _claude_prompt,
    "assistant_response": _claude_answer,
    "tool_result": _claude_tool,
    "codex.sse_event": _codex_request,
    "codex.user_prompt": _codex_prompt,
    "codex.tool_result": _codex_tool,
    "gemini_cli.api_request": _gemini_asks,
    "gemini_cli.api_response": _gemini_request,
}


def _message(key: str, provider: str, about: Attributes, role: str, parts: list[dict[str, Any]]) -> Iterator[Told]:
    if parts[0].get("text") != "":
        yield ToldMessages(key, provider, _session(about), [{"role": role, "parts": parts}])


def _key(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    return {str(one["key"]): _value(one.get("value") or {}) for one in record.get("attributes") or ()}


def _value(value: Mapping[str, Any]) -> Any:
    kind, content = next(iter(value.items()), ("", None))
    return int(str(content)) if kind == "intValue" else content


def _session(about: Attributes) -> str:
    return (_text(about, "session.id", "conversation.id") or "")[:LONGEST]


def _text(about: Attributes, *names: str) -> str | None:
    values = (about.get(name) for name in names)
    texts = ("".join(filter(str.isprintable, value[:LONGEST])) for value in values if isinstance(value, str))
    return next(filter(None, texts), None)


def _text_of(about: Attributes, name: str) -> str:
    value = about.get(name)
    return value if isinstance(value, str) else ""


def _json(text: Any) -> Any:
    """What a text says as JSON; the text itself if it is none, and it may be cut."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text


def _number(about: Attributes, *names: str) -> float | None:
    for name in names:
        value = about.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except (ValueError, OverflowError):
                continue
            if 0 <= number <= MOST:
                return number
    return None


def _count(about: Attributes, *names: str) -> int | None:
    number = _number(about, *names)
    return None if number is None else int(number)


def _milliseconds(about: Attributes) -> float | None:
    number = _number(about, "duration_ms")
    return None if number is None else number / 1_000


def _nanoseconds(record: Mapping[str, Any], name: str) -> int:
    return int(record.get(name) or 0)


def _time(record: Mapping[str, Any]) -> int | None:
    nano = _nanoseconds(record, "timeUnixNano") or _nanoseconds(record, "observedTimeUnixNano")
    return nano // NANO or None
