"""Models to choose from: those that were used here come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.rules.definitions.providers import PROVIDERS

pytestmark = pytest.mark.anyio


async def test_used_models_come_first_and_each_is_of_a_provider(begin: Callable[..., Any]) -> None:
    chat = await begin(model="test:echo")
    await chat.ask("Hello")
    models = (await chat.workbench.call("list_models"))["models"]
    assert [model["name"] for model in models if model["used_at"]] == [models[0]["name"]] == ["test:echo"]
    assert {model["name"].partition(":")[0] for model in models} <= set(PROVIDERS)
    claude = (await chat.workbench.call("list_models", search="claude"))["models"]
    assert any(model["name"].startswith("anthropic:") for model in claude)
    assert all("claude" in model["name"] for model in claude)
