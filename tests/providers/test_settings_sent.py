"""Every setting reaches the provider as it is set: at a recording provider of each kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, GOOGLE, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.providers.provider import Reply
from tests.providers.wire import Step
from workbench.rules.definitions.model import Definition
from workbench.services.definitions.models import sampling

pytestmark = pytest.mark.anyio

PLACES = {
    "openai-chat": {"temperature": "temperature", "topP": "top_p", "maxOutputTokens": "max_completion_tokens"},
    "anthropic": {"temperature": "temperature", "topP": "top_p", "maxOutputTokens": "max_tokens"},
    "google": {"temperature": "temperature", "topP": "topP", "maxOutputTokens": "maxOutputTokens"},
}
"""Where a request has each setting."""
VALUES = {"temperature": (0.5, 0.2), "topP": (0.5, 0.9), "maxOutputTokens": (1000, 123)}
"""A former default, and another value."""


def question(**settings: Any) -> dict[str, Any]:
    return sampling(Definition.model_validate({"metadata": {"id": "a", "name": "A"}, "settings": settings}))


def sent(dialect: Dialect, body: Any) -> dict[str, Any]:
    """The settings in a request, by their names here."""
    place = body.get("generationConfig", {}) if dialect is GOOGLE else body
    return {name: place[key] for name, key in PLACES[dialect.name].items() if key in place}


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC, pytest.param(GOOGLE, marks=pytest.mark.long)], ids=str)
async def test_every_setting_arrives_as_it_is_set_and_no_other(ask: Asking, dialect: Dialect) -> None:
    unset = sent(dialect, (await ask.whole(dialect, Step(["Hi."]), **question())).requests[0].body)
    assert unset.keys() <= {"maxOutputTokens"}  # Anthropic's protocol asks for one
    assert bool(unset) is (dialect is ANTHROPIC)
    for name, values in VALUES.items():
        for value in values:
            answer = await ask.whole(dialect, Step(["Hi."]), **question(**{name: value}))
            assert sent(dialect, answer.requests[0].body) == unset | {name: value}
    every = {name: values[0] for name, values in VALUES.items()}
    answer = await ask.whole(dialect, Step(["Hi."]), **question(**every))
    assert sent(dialect, answer.requests[0].body) == every


REASONING = Dialect("reasoning", "openai:o3", OPENAI_CHAT.encode)
RESTING = Dialect("resting", "openai:gpt-5.1", OPENAI_CHAT.encode)
RESPONDING = Dialect("responding", "openai:o3", OPENAI_RESPONSES.encode, settings=OPENAI_RESPONSES.settings)
SONNET = Dialect("sonnet", "anthropic:claude-sonnet-5", ANTHROPIC.encode)


@pytest.mark.parametrize("dialect", [REASONING, RESPONDING, SONNET], ids=str)
async def test_a_setting_that_a_model_does_not_take_is_refused_by_its_name(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, Step(["Hi."]), **question(temperature=0.5))
    assert (answer.code, answer.error and answer.error.details["settings"]) == ("SETTING_REFUSED", ["temperature"])
    assert answer.requests == []
    assert (await ask.whole(dialect, Step(["Hi."]), **question(maxOutputTokens=99))).text == "Hi."


async def test_a_model_that_reasons_only_when_asked_gets_its_temperature(ask: Asking) -> None:
    answer = await ask.whole(RESTING, Step(["Hi."]), **question(temperature=0.5))
    assert answer.requests[0].body["temperature"] == 0.5


async def test_a_setting_that_a_provider_refuses_is_named(ask: Asking) -> None:
    both = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": both}}
    refusal = Reply([json.dumps(body).encode()], status=400, headers={"content-type": "application/json"})
    answer = await ask.whole(ANTHROPIC, refusal, **question(temperature=0.5, topP=0.9, maxOutputTokens=99))
    assert (answer.code, answer.error and answer.error.details["settings"]) == (
        "SETTING_REFUSED",
        ["temperature", "topP"],
    )
    assert both in str(answer.error)
    assert (await ask.whole(ANTHROPIC, refusal, **question())).code == "PROVIDER_REJECTED"
