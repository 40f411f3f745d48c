"""The tokens that a provider reports for a request, by class, read from its answer as it streams through.

No class contains another, except that reasoning is part of the output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is read for usage; the provider's are far shorter."""
BYTES_A_TOKEN = 4
_TEXT = re.compile(rb'"(?:text|delta|partial_json|thinking|content|arguments)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The tokens of one request; None: not known.

    Args:
        input: read anew: neither cached nor written to the cache.
        cached: read from the provider's cache.
        cache_write, cache_write_hour: written to it, to be kept for its usual time (Anthropic: five minutes, OpenAI:
            30), or for a longer one (an hour, twelve).
        output: with what it thought.
        reasoning: of the output.
    """

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    cache_write_hour: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def prompt(self) -> int:
        """All tokens of the input."""
        return sum(filter(None, (self.input, self.cached, self.cache_write, self.cache_write_hour)))


def of_anthropic(usage: Mapping[str, Any], before: ModelUsage = ModelUsage()) -> ModelUsage:
    """The usage in a message, or in an event of one; what it does not say is as before."""
    created = _whole(usage, "cache_creation_input_tokens")
    by_time = usage.get("cache_creation")
    hour = _whole(by_time, "ephemeral_1h_input_tokens") if isinstance(by_time, dict) else None
    short = None if created is None else max(0, created - (hour or 0))
    found = ModelUsage(
        input=_whole(usage, "input_tokens"),
        cached=_whole(usage, "cache_read_input_tokens"),
        cache_write=short,
        cache_write_hour=hour,
        output=_whole(usage, "output_tokens"),
    )
    known = {name: value for name in ModelUsage.__slots__ if (value := getattr(found, name)) is not None}
    return replace(before, **known)


def of_openai(usage: Mapping[str, Any]) -> ModelUsage:
    """The usage of a response, or of a chat completion."""
    prompt = _first(usage, "input_tokens", "prompt_tokens")
    details = _part(usage, "input_tokens_details", "prompt_tokens_details")
    cached, written = _whole(details, "cached_tokens"), _whole(details, "cache_write_tokens")
    longer = _whole(_part(details, "cache_write_tokens_details"), "ttl_12h_tokens")
    return ModelUsage(
        input=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        cached=cached,
        cache_write=None if written is None else max(0, written - (longer or 0)),
        cache_write_hour=longer,
        output=_first(usage, "output_tokens", "completion_tokens"),
        reasoning=_whole(_part(usage, "output_tokens_details", "completion_tokens_details"), "reasoning_tokens"),
    )


def of_gemini(usage: Mapping[str, Any]) -> ModelUsage:
    """The usage of a generated content; what it thought is counted beside its candidates."""
    prompt, cached = _whole(usage, "promptTokenCount"), _whole(usage, "cachedContentTokenCount")
    tools, thoughts = _whole(usage, "toolUsePromptTokenCount"), _whole(usage, "thoughtsTokenCount")
    said = _whole(usage, "candidatesTokenCount")
    return ModelUsage(
        input=None if prompt is None else max(0, prompt - (cached or 0)) + (tools or 0),
        cached=cached,
        output=None if said is None and thoughts is None else (said or 0) + (thoughts or 0),
        reasoning=thoughts,
    )


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _first(values: Mapping[str, Any], *names: str) -> int | None:
    return next((found for name in names if (found := _whole(values, name)) is not None), None)


def _part(values: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((part for name in names if isinstance(part := values.get(name), dict)), {})


@dataclass
class UsageReader:
    """Reads the usage of one answer, in pieces of any size.

    Args:
        provider: its id.
        is_stream: whether the answer comes in events.
        request: the body that was sent, for what the answer does not say.
    """

    provider: str
    is_stream: bool
    request: bytes = field(repr=False)
    model: str | None = None
    is_ended: bool = False
    """Whether the answer says that it is complete."""
    error: str | None = None
    """The type of an error that came within the stream."""
    _usage: ModelUsage = ModelUsage()
    _rest: bytearray = field(default_factory=bytearray, repr=False)
    _said: int = 0

    def take(self, chunk: bytes) -> None:
        """Take the next piece."""
        self._rest += chunk
        if not self.is_stream:
            return
        *lines, rest = self._rest.split(b"\n")
        for line in lines:
            self._line(bytes(line))
        self._rest = bytearray() if len(rest) > LONGEST_LINE else bytearray(rest)

    def close(self) -> None:
        """Take the end: an answer without events is read as a whole."""
        if self.is_stream:
            self._line(bytes(self._rest))
        else:
            self._event(bytes(self._rest))
        self._rest.clear()

    @property
    def usage(self) -> ModelUsage:
        """What is known of the usage."""
        return self._usage

    def estimated(self) -> ModelUsage:
        """The usage of an answer that was cut: what the provider has said, and for the rest the size of what was sent
        and seen."""
        said = -(-self._said // BYTES_A_TOKEN)
        usage = self._usage
        if usage.input is None:
            usage = replace(usage, input=len(self.request) // BYTES_A_TOKEN)
        return replace(usage, output=max(usage.output or 0, said))

    @property
    def asked_model(self) -> str | None:
        """The model that was asked for, as far as the answer does not name it."""
        found = _MODEL.search(self.request)
        return self.model or (found[1].decode("utf-8", "replace") if found else None)

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        text = line[5:].strip()
        if text == b"[DONE]":
            self.is_ended = True
        elif b'"usage' in text or b'"error"' in text or b'"message_stop"' in text or b'"finishReason"' in text:
            self._event(text)
        else:
            self._said += sum(map(len, _TEXT.findall(text)))

    def _event(self, text: bytes) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        self._said += sum(map(len, _TEXT.findall(text))) if self.is_stream else 0
        match self.provider:
            case "anthropic":
                self._anthropic(event)
            case "gemini":
                self._gemini(event)
            case _:
                self._openai(event)

    def _anthropic(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        message = event.get("message") if kind == "message_start" else event
        if isinstance(message, dict):
            self.model = _text(message, "model") or self.model
            if isinstance(usage := message.get("usage"), dict):
                self._usage = of_anthropic(usage, self._usage)
        self.is_ended |= kind == "message_stop" or not self.is_stream
        if kind == "error":
            self.error = _text(event.get("error"), "type") or "error"

    def _openai(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        response = event.get("response") if isinstance(event.get("response"), dict) else event
        assert isinstance(response, dict)
        self.model = _text(response, "model") or self.model
        if isinstance(usage := response.get("usage"), dict):
            self._usage = of_openai(usage)
        self.is_ended |= kind in ("response.completed", "response.incomplete", "response.failed") or not self.is_stream
        if isinstance(error := response.get("error"), dict):
            self.error = _text(error, "code") or _text(error, "type") or "error"

    def _gemini(self, event: Mapping[str, Any]) -> None:
        self.model = _text(event, "modelVersion") or self.model
        if isinstance(usage := event.get("usageMetadata"), dict):
            self._usage = of_gemini(usage)
        candidates = event.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else {}
        self.is_ended |= not self.is_stream or bool(isinstance(first, dict) and first.get("finishReason"))
        if isinstance(error := event.get("error"), dict):
            self.error = _text(error, "status") or "error"


def _text(values: Any, name: str) -> str | None:
    value = values.get(name) if isinstance(values, dict) else None
    return value[:200] if isinstance(value, str) and value else None


def with_usage(body: bytes) -> bytes:
    """The body of a chat completion that also asks for its usage, which streams leave out otherwise."""
    if b'"stream"' not in body:
        return body
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(asked, dict) or asked.get("stream") is not True:
        return body
    options = asked.get("stream_options")
    asked["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return json.dumps(asked).encode()
