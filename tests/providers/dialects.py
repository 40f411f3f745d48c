"""The providers as the tests ask them: each with its wire format, at the address of a scripted one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.providers import wire
from tests.providers.provider import Reply
from tests.providers.wire import Step

EVENTS = "text/event-stream"
KEYS = {
    "OPENAI_API_KEY": "key",
    "ANTHROPIC_API_KEY": "key",
    "GOOGLE_API_KEY": "key",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "key",
    "AWS_REGION": "eu-central-1",
}
ADDRESSES = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
"""Variables of the environment by which the providers' own libraries find them."""


@dataclass(frozen=True)
class Dialect:
    """A provider with one of its wire formats.

    Args:
        encode: a step of a model, as the pieces of a response.
        reports_missing_usage: whether it can leave out the usage.
    """

    name: str
    model: str
    encode: Callable[[Step], list[bytes]]
    content_type: str = EVENTS
    settings: Mapping[str, Any] | None = None

    def reply(self, step: Step, **more: Any) -> Reply:
        """A response with a step of the model."""
        return Reply(self.encode(step), headers={"content-type": self.content_type}, **more)

    def config(self, address: str) -> dict[str, str]:
        return {**KEYS, "OPENAI_BASE_URL": f"{address}/v1", "OLLAMA_HOST": address}

    def __str__(self) -> str:
        return self.name


OPENAI_CHAT = Dialect("openai-chat", "openai:gpt-4o", wire.openai_chat)
OPENAI_RESPONSES = Dialect(
    "openai-responses", "openai:gpt-4o", wire.openai_responses, settings={"openaiApi": "responses"}
)
ANTHROPIC = Dialect("anthropic", "anthropic:claude-opus-4-6", wire.anthropic)
GOOGLE = Dialect("google", "gemini:gemini-2.5-flash", wire.google)
OLLAMA = Dialect("ollama", "ollama:llama3", wire.openai_chat)
BEDROCK = Dialect(
    "bedrock",
    "bedrock:anthropic.claude-3-5-sonnet-20240620-v1:0",
    wire.bedrock,
    content_type="application/vnd.amazon.eventstream",
)

HTTP = (
    OPENAI_CHAT,
    *(pytest.param(one, marks=pytest.mark.long) for one in (OPENAI_RESPONSES, ANTHROPIC, OLLAMA, GOOGLE)),
)
EVERY = (*HTTP, pytest.param(BEDROCK, marks=pytest.mark.long))
