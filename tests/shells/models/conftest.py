"""Attempts that may ask for models, and their clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import httpx2
import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.shells.models.upstream import Upstream
from workbench.rules.models.upstream import PROVIDERS, ProviderKey

KEY = "sk-ant-the-persons-own-key-0123456789"
Box = Callable[..., httpx2.AsyncClient]


def key_at(model: Upstream, provider: str = "anthropic", value: str = KEY) -> ProviderKey:
    """The person's key, at a scripted provider."""
    about = PROVIDERS[provider]
    base = model.url + ("/v1" if provider == "openai" else "")
    return ProviderKey(provider, base, about.keys[0].header, "the test", value)


@pytest.fixture
async def box(served: Served, admit: Admit) -> AsyncIterator[Box]:
    """`await box(key)`: a client as an attempt's command has it, with a token for the providers of the keys."""
    async with AsyncExitStack() as stack:
        workbench, count = served.workbench, iter(range(100))

        async def client(*keys: ProviderKey) -> httpx2.AsyncClient:
            agent = await admit(f"ada-{next(count)}")
            task_id = await given.task(workbench)
            claim = await given.claim(workbench, agent, task_id)
            workbench.gateway.keys[agent.caller.agent] = {key.provider: key for key in keys}
            workbench.gateway.reading[agent.caller.agent] = asyncio.Lock()
            about = {"attempt": claim["attempt"], "key": "k" * 32, "with_models": True}
            begun = await given.done_by(workbench, agent, "begin_attempt", task_id, **about)
            headers = {"x-api-key": begun["model_token"], "anthropic-version": "2023-06-01"}
            made = httpx2.AsyncClient(
                base_url=f"{served.info.url}/models", headers=headers, trust_env=False, timeout=20, verify=False
            )
            made.task = (agent, task_id, claim["attempt"])  # type: ignore[attr-defined]
            return await stack.enter_async_context(made)

        yield client
