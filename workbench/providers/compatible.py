"""Servers that speak OpenAI's protocol nearly as OpenAI does: their events as OpenAI would send them.

`CompatibleEvents` is pure: the JSON of an event in, that of an event out. What it mends was seen at servers that
many use.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from openai import AsyncStream
from openai._streaming import ServerSentEvent
from openai.types.chat import ChatCompletionChunk
from pydantic_ai.models.openai import OpenAIChatModel

from workbench.errors import Unavailable
from workbench.providers.words import LONGEST, said, sentence

DONE = "[DONE]"
_ENDS = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end", "end_turn", "stop_sequence", "complete", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "safety"), "content_filter"),
    **dict.fromkeys(("tool_calls", "tool_use"), "tool_calls"),
    "function_call": "function_call",
}

Json = dict[str, Any]


class ThinkTags:
    """Splits a text that comes in pieces into what is within ``<think>…</think>`` at its beginning, and the rest."""

    OPEN, CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._state: Literal["begins", "thinks", "says"] = "begins"

    def split(self, text: str, *, is_last: bool = False) -> tuple[str, str]:
        """What is thought, and what is said, by another piece; the beginning of what may be a tag is held back."""
        held, self._held = self._held + text, ""
        if self._state == "begins":
            start = held.lstrip()
            if self.OPEN.startswith(start[: len(self.OPEN)]) and len(start) < len(self.OPEN) and not is_last:
                self._held = held
                return "", ""
            self._state = "thinks" if start.startswith(self.OPEN) else "says"
            held = start.removeprefix(self.OPEN) if self._state == "thinks" else held
        if self._state == "says":
            return "", held
        thought, tag, said = held.partition(self.CLOSE)
        if tag:
            self._state = "says"
            return thought, said
        size = 0 if is_last else next(n for n in range(len(self.CLOSE) - 1, -1, -1) if held.endswith(self.CLOSE[:n]))
        self._held = held[len(held) - size :]
        return held[: len(held) - size], ""


class CompatibleEvents:
    """The events of one answer. Usage is what the server says last, and comes with the last event."""

    def __init__(self) -> None:
        self._usage: Any = None
        self._has_end = False
        self._base: Json = {}
        self._calls: dict[tuple[int, str], int] = {}
        self._current: dict[int, str] = {}
        """The id of the newest call, by the index that the server gives it."""
        self._named: set[int] = set()
        self._tags = ThinkTags()

    def take(self, text: str) -> str | None:
        """An event as it is passed on; None: it says nothing.

        Raises:
            Unavailable: ``PROVIDER_FAILED``: it is an error. ``ANSWER_CUT``: the answer ended in an unknown way.
        """
        if not text.strip():
            return None
        try:
            event = json.loads(text)
        except ValueError:
            return text  # the library says what is wrong with it
        if not isinstance(event, dict):
            return text
        if words := error_of(event):
            raise Unavailable("PROVIDER_FAILED", f"The provider failed. {words}")
        groq = event.get("x_groq")
        self._usage = event.pop("usage", None) or (groq.get("usage") if isinstance(groq, dict) else None) or self._usage
        self._base = {key: event.get(key) for key in ("id", "object", "created", "model")}
        event["choices"] = [self._choice(choice) for choice in event.get("choices") or () if isinstance(choice, dict)]
        return json.dumps(event)

    def rest(self, *, is_done: bool) -> Iterator[str]:
        """What follows the last event.

        Args:
            is_done: the server has said that this is all, so an answer whose end it did not name is whole.
        """
        last: Json = {**self._base, "choices": []}
        if delta := self._split({"content": ""}, is_last=True):
            last["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
        if is_done and self._base and not self._has_end:
            last["choices"] = [{"index": 0, "delta": delta, "finish_reason": "stop"}]
        if self._usage:
            last["usage"] = self._usage
        if last["choices"] or self._usage:
            yield json.dumps(last)

    def _choice(self, choice: Json) -> Json:
        delta = choice.get("delta") or choice.get("message") or {}
        if isinstance(called := delta.get("function_call"), dict):  # as OpenAI had it before `tool_calls`
            delta = delta | {"function_call": None, "tool_calls": [{"type": "function", "function": called}]}
        is_last = bool(choice.get("finish_reason") or delta.get("tool_calls"))
        if isinstance(delta.get("content"), str) or is_last:
            rest = {key: value for key, value in delta.items() if key != "content"}
            delta = rest | self._split(delta, is_last=is_last)
        if calls := delta.get("tool_calls"):
            delta = delta | {"tool_calls": [self._call(call) for call in calls if isinstance(call, dict)]}
        return choice | {"delta": delta, "finish_reason": self._end(choice.get("finish_reason"))}

    def _split(self, delta: Json, *, is_last: bool) -> Json:
        """The text of a delta apart from what is thought, each if there is some."""
        thought, said = self._tags.split(delta.get("content") or "", is_last=is_last)
        return ({"reasoning_content": thought} if thought else {}) | ({"content": said} if said else {})

    def _end(self, word: Any) -> str | None:
        if not word:
            return None
        self._has_end = True
        known = _ENDS.get(str(word).lower())
        if known is None:
            raise Unavailable("ANSWER_CUT", f"The provider ended the answer with: {str(word)[:LONGEST]}. Try again.")
        return known

    def _call(self, call: Json) -> Json:
        """A piece of a call, with an index that no other call has, and the name of its function once."""
        index = call.get("index") or 0
        call_id = call.get("id") or self._current.get(index, "")
        self._current[index] = call_id
        number = self._calls.setdefault((index, call_id), len(self._calls))
        function = dict(call.get("function") or {})
        if function.get("name"):
            if number in self._named:
                del function["name"]
            self._named.add(number)
        return call | {"index": number, "function": function}


def error_of(event: Json) -> str:
    """What an event, or a body, says of an error; empty if it is none."""
    if error := event.get("error"):
        return sentence(said(error) or json.dumps(error))
    if event.get("object") == "error" or not event.get("choices"):
        error = event.get("error_message") or (event.get("object") == "error" and event.get("message"))
    return sentence(said(error) or str(error)) if error else ""


class CompatibleModel(OpenAIChatModel):
    """A model of chat completions, whose server may differ from OpenAI's in what `CompatibleEvents` mends."""

    async def _process_streamed_response(self, response: AsyncStream[ChatCompletionChunk], *more: Any) -> Any:
        kind = response.response.headers.get("content-type", "")
        if "json" in kind or "html" in kind:
            response._decoder = _Whole(kind)  # type: ignore[assignment]
        else:
            response._decoder = _Tidied(response._decoder)  # type: ignore[assignment]
        return await super()._process_streamed_response(response, *more)


class _Tidied:
    """The decoder of a stream, with `CompatibleEvents` behind it."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    async def aiter_bytes(self, body: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
        """The events of a body."""
        events, is_done = CompatibleEvents(), False
        async for event in self._decoder.aiter_bytes(body):
            if is_done := event.data.strip().upper().startswith(DONE):
                break
            if (text := events.take(event.data)) is not None:
                yield ServerSentEvent(event=event.event, data=text)
        for text in events.rest(is_done=is_done):
            yield ServerSentEvent(data=text)
        if is_done:
            yield ServerSentEvent(data=DONE)


class _Whole:
    """Decodes a body that is no stream: an answer in one piece, or what the server says instead.

    Args:
        kind: its media type.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    async def aiter_bytes(self, body: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
        """The events of a body.

        Raises:
            Unavailable: ``PROVIDER_FAILED``, ``PROVIDER_ANSWER_INVALID``.
        """
        if "html" in self._kind:
            raise Unavailable(
                "PROVIDER_ANSWER_INVALID",
                "This address answers with a web page, not with a model. Check it in the definition; it may lack /v1.",
            )
        text = b"".join([piece async for piece in body]).decode(errors="replace")
        events = CompatibleEvents()
        event = events.take(text)
        if event is None or not json.loads(event).get("choices"):
            raise Unavailable("PROVIDER_ANSWER_INVALID", f"The provider's answer cannot be read: {sentence(text)}")
        for data in (event, *events.rest(is_done=True), DONE):
            yield ServerSentEvent(data=data)
