"""The operator may see the secrets of a provider's configuration, and have a provider asked; nobody else may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import Admit
from tests.definitions.provider import Provider, running
from workbench.app import Workbench
from workbench.errors import Refused, Unavailable

pytestmark = pytest.mark.anyio
SECRET = "hunter2-of-the-person"
KEY = {"OPENAI_API_KEY": "env://THEIR_KEY"}
OPENAI = {"agentTarget": "mine", "providerType": "openai"}


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
    """A running provider, and the key for it in a variable."""
    monkeypatch.setenv("THEIR_KEY", SECRET)
    async with running() as made:
        yield made


@pytest.fixture(autouse=True)
async def _mine(workbench: Workbench) -> None:
    await workbench.call("agent_create", agentPath="./agents/mine", name="mine")


async def validity(workbench: Workbench, config: dict[str, str], **more: Any) -> dict[str, Any]:
    """What the operator is told about a configuration that is checked live."""
    return await workbench.call("agent_validate_provider_config", **OPENAI, config=config, live=True, **more)


async def test_the_operator_sees_the_secrets_on_request(workbench: Workbench, provider: Provider) -> None:
    assert (await workbench.call("agent_get_provider_config", **OPENAI, reveal=True))["resolvedConfig"] is None
    await workbench.call("agent_install_provider", **OPENAI, config=KEY)
    plain = await workbench.call("agent_get_provider_config", **OPENAI)
    assert plain == {"installed": True, "config": KEY, "resolvedConfig": None}
    revealed = await workbench.call("agent_get_provider_config", **OPENAI, reveal=True)
    assert revealed == {"installed": True, "config": KEY, "resolvedConfig": {"OPENAI_API_KEY": SECRET}}


async def test_a_secret_that_cannot_be_read_is_not_revealed(workbench: Workbench) -> None:
    await workbench.call("agent_install_provider", **OPENAI, config={"OPENAI_API_KEY": "env://NOT_SET_HERE"})
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED"):
        await workbench.call("agent_get_provider_config", **OPENAI, reveal=True)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("agent_get_provider_config", {"reveal": True}),
        ("agent_validate_provider_config", {"config": KEY, "live": True}),
    ],
)
async def test_a_planner_neither_sees_nor_sends_secrets(
    name: str, more: dict[str, Any], workbench: Workbench, provider: Provider, admit: Admit
) -> None:
    ada = (await admit("ada", role="planner", definitions=True)).caller
    await workbench.call("agent_install_provider", **OPENAI, config=KEY | {"OPENAI_BASE_URL": provider.address})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada, name, OPENAI | more)
    assert provider.requests == []


async def test_a_provider_that_accepts_the_key(workbench: Workbench, provider: Provider) -> None:
    found = await validity(workbench, KEY | {"OPENAI_BASE_URL": provider.address})
    assert found == {"isValid": True, "error": None, "live": True}
    assert f"authorization: bearer {SECRET}" in provider.requests[0].lower()


async def test_a_provider_that_refuses_the_key(workbench: Workbench, provider: Provider) -> None:
    provider.reply = b"HTTP/1.1 401 x\r\nContent-Length: 0\r\n\r\n"
    found = await validity(workbench, KEY | {"OPENAI_BASE_URL": provider.address})
    assert found == {"isValid": False, "error": "OpenAI refused the key or the request (401).", "live": True}


async def test_a_provider_that_is_silent(workbench: Workbench, provider: Provider) -> None:
    provider.reply, provider.is_silent = b"", True
    config = KEY | {"OPENAI_BASE_URL": provider.address}
    found = await validity(workbench, config, timeoutSeconds=0.2)
    assert found["error"] == "OpenAI did not answer within 0.2 s."


async def test_what_is_wrong_without_a_network_is_not_sent(workbench: Workbench, provider: Provider) -> None:
    found = await validity(workbench, {"OPENAI_BASE_URL": provider.address})
    assert (found["isValid"], found["live"]) == (False, False)
    assert provider.requests == []


async def test_a_key_that_cannot_be_read_is_not_valid(workbench: Workbench, provider: Provider) -> None:
    config = {"OPENAI_API_KEY": "env://NOT_SET_HERE", "OPENAI_BASE_URL": provider.address}
    found = await validity(workbench, config)
    assert found["error"].startswith("providers.openai.OPENAI_API_KEY: The secret env://NOT_SET_HERE cannot be read")
    assert provider.requests == []


async def test_a_provider_that_cannot_be_asked_is_checked_without_a_network(workbench: Workbench) -> None:
    found = await workbench.call(
        "agent_validate_provider_config", agentTarget="mine", providerType="test", config={}, live=True
    )
    assert found == {"isValid": True, "error": None, "live": False}
