"""Each request to a provider is recorded, and what the provider can cache is marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, BEDROCK, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.providers.provider import failure
from tests.providers.wire import Call, Step
from workbench.providers.tools import ToolAnswer, ToolOffer

pytestmark = pytest.mark.anyio

CALLS = Step(["I look."], [Call("c1", "look", "{}")], usage=(100, 20))
MARK = {"type": "ephemeral", "ttl": "5m"}


class Looking:
    async def offers(self) -> list[ToolOffer]:
        return [ToolOffer(name, "Looks.", {"type": "object"}) for name in ("look", "see")]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        return ToolAnswer("A tree.")


async def test_anthropic_is_told_to_cache_the_system_prompt_the_tools_and_the_conversation(ask: Asking) -> None:
    answer = await ask.whole(ANTHROPIC, CALLS, Step(["Done."]), toolbox=Looking())
    for request in answer.requests:
        assert request.body["system"][-1]["cache_control"] == MARK
        assert [tool.get("cache_control") for tool in request.body["tools"]] == [None, MARK]
        assert request.body["cache_control"] == MARK  # moves with the end of the conversation
    plain = await ask.whole(OPENAI_CHAT, CALLS, Step(["Done."]), toolbox=Looking())
    assert "cache" not in str([request.body for request in plain.requests])


@pytest.mark.long
async def test_bedrock_is_told_to_cache_as_well(ask: Asking) -> None:
    claude = Dialect("claude", "bedrock:anthropic.claude-sonnet-4-20250514-v1:0", BEDROCK.encode, BEDROCK.content_type)
    [request] = (await ask.whole(claude, Step(["Hi."]), toolbox=Looking())).requests
    assert [str(request.body[part]).count("cachePoint") for part in ("system", "toolConfig", "messages")] == [1, 1, 1]


@pytest.mark.parametrize("dialect", [ANTHROPIC, OPENAI_RESPONSES, OPENAI_CHAT], ids=str)
async def test_each_request_is_recorded_with_its_times_tokens_and_end(ask: Asking, dialect: Dialect) -> None:
    priced = dialect.model.partition(":")[2]
    last = Step(["Done."], usage=(150, 30), cached=90, thought=12, model=priced)
    steps = [replace(CALLS, model=priced), last]
    answer = await ask.whole(dialect, *steps, toolbox=Looking())
    first, second = answer.recorded
    assert [(one.number, one.purpose, one.error_code) for one in (first, second)] == [
        (1, "answer", None),
        (2, "answer", None),
    ]
    assert first.end == ("stop" if dialect is OPENAI_RESPONSES else "tool_call")  # whose word is "completed"
    assert (first.cached_tokens, first.output_tokens) == (0, 20)
    assert (second.end, second.output_tokens) == ("stop", 30)
    assert second.input_tokens == (240 if dialect is ANTHROPIC else 150)  # Anthropic counts what was cached apart
    assert second.cached_tokens == 90
    assert second.thinking_tokens == (0 if dialect is ANTHROPIC else 12)
    for one in answer.recorded:
        assert one.first_token_seconds is not None
        assert one.seconds is not None
        assert 0 <= one.first_token_seconds <= one.seconds
    costs = [one.cost_usd for one in answer.recorded if one.cost_usd is not None]
    assert len(costs) == 2
    assert answer.completed.usage.cost_usd == sum(costs)


async def test_a_request_that_failed_is_recorded_with_its_code_and_without_tokens(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, failure(500, {"error": {"message": "No."}}), Step(["Hi."], usage=None))
    failed, unmeasured = answer.recorded
    assert (failed.error_code, failed.end, failed.first_token_seconds) == ("PROVIDER_FAILED", None, None)
    assert failed.seconds is not None
    assert (unmeasured.error_code, unmeasured.end) == (None, "stop")
    assert (failed.input_tokens, unmeasured.input_tokens, unmeasured.cost_usd) == (None, None, None)
