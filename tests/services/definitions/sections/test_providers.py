"""The providers of models that a definition is configured for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.definitions.test_lifecycle import create
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.rules.definitions.secrets import MASK

pytestmark = pytest.mark.anyio

REFERENCE = {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}
LITERAL = {"OPENAI_API_KEY": "sk-0123456789"}


async def call(workbench: Workbench, name: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation on the definition."""
    return await workbench.call(name, agentTarget="reviewer", **arguments)


async def test_a_provider_is_installed_listed_changed_and_uninstalled(workbench: Workbench) -> None:
    await create(workbench)
    installed = await call(workbench, "agent_install_provider", providerType="openai", config=REFERENCE)
    assert installed["warnings"] == []
    listed = await call(workbench, "agent_list_providers")
    assert listed["installed"] == ["openai"]
    assert {"openai", "anthropic", "ollama"} < set(listed["available"]) == set(listed["providerInfo"])
    assert listed["providerInfo"]["openai"]["configValues"][0]["key"] == "OPENAI_API_KEY"
    elsewhere = REFERENCE | {"OPENAI_BASE_URL": "http://127.0.0.1:1"}
    await call(workbench, "agent_update_provider", providerType="openai", config=elsewhere)
    found = await call(workbench, "agent_get_provider_config", providerType="openai")
    assert (found["installed"], found["config"]) == (True, elsewhere)
    await call(workbench, "agent_uninstall_provider", providerType="openai")
    found = await call(workbench, "agent_get_provider_config", providerType="openai")
    assert (found["installed"], found["config"]) == (False, None)


async def test_another_name_of_a_provider_means_the_same(workbench: Workbench) -> None:
    await create(workbench)
    config = {"ANTHROPIC_API_KEY": "env://KEY"}
    await call(workbench, "agent_install_provider", providerType="claude", config=config)
    assert (await call(workbench, "agent_list_providers"))["installed"] == ["anthropic"]
    with pytest.raises(Conflict, match="ALREADY_EXISTS"):
        await call(workbench, "agent_install_provider", providerType="anthropic", config=config)
    assert (await call(workbench, "agent_get_provider_config", providerType="claude"))["config"] == config


async def test_a_secret_that_is_written_out_is_never_shown(workbench: Workbench) -> None:
    await create(workbench)
    done = await call(workbench, "agent_install_provider", providerType="openai", config=LITERAL)
    assert "OPENAI_API_KEY is written out" in done["warnings"][0]
    found = await call(workbench, "agent_get_provider_config", providerType="openai")
    assert found["config"] == {"OPENAI_API_KEY": MASK}
    events = (await workbench.call("list_newest_events"))["events"]
    assert LITERAL["OPENAI_API_KEY"] not in json.dumps([done, found, events])


async def test_a_configuration_that_was_shown_masked_can_be_sent_back(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_install_provider", providerType="openai", config=LITERAL)
    shown = (await call(workbench, "agent_get_provider_config", providerType="openai"))["config"]
    await call(workbench, "agent_update_provider", providerType="openai", config=shown)
    file = workbench.settings.home / "agents" / "reviewer" / "agent.yaml"
    assert LITERAL["OPENAI_API_KEY"] in file.read_text()
    elsewhere = shown | {"OPENAI_BASE_URL": "https://example.com"}
    with pytest.raises(BadInput, match=r"INVALID_CONFIGURATION.*OPENAI_API_KEY is masked"):
        await call(workbench, "agent_update_provider", providerType="openai", config=elsewhere)
    checked = await call(workbench, "agent_validate_provider_config", providerType="openai", config=elsewhere)
    assert checked["isValid"] is False


@pytest.mark.parametrize(
    ("provider", "config", "valid"),
    [
        ("openai", REFERENCE, True),
        ("openai", {}, False),
        ("openai", REFERENCE | {"OTHER": "x"}, False),
        ("openai", {"OPENAI_API_KEY": "two\nlines"}, False),
        ("ollama", {}, True),
        ("ollama", {"OLLAMA_HOST": "nowhere"}, False),
        ("bedrock", {"AWS_ACCESS_KEY_ID": "env://A", "AWS_SECRET_ACCESS_KEY": "env://B", "AWS_REGION": "here"}, False),
    ],
)
async def test_what_is_not_valid_is_not_installed(
    workbench: Workbench, provider: str, config: dict[str, str], valid: bool
) -> None:
    await create(workbench)
    checked = await call(workbench, "agent_validate_provider_config", providerType=provider, config=config)
    assert (checked["isValid"], checked["error"] is None) == (valid, valid)
    if not valid:
        with pytest.raises(BadInput, match="INVALID_CONFIGURATION"):
            await call(workbench, "agent_install_provider", providerType=provider, config=config)
        assert (await call(workbench, "agent_list_providers"))["installed"] == []


async def test_what_is_not_installed_is_neither_changed_nor_removed(workbench: Workbench) -> None:
    await create(workbench)
    with pytest.raises(NotFound, match=r"openai is not installed\. Installed: none"):
        await call(workbench, "agent_update_provider", providerType="openai", config=REFERENCE)
    with pytest.raises(NotFound, match="NOT_FOUND"):
        await call(workbench, "agent_uninstall_provider", providerType="openai")
