"""The settings, the prompt and the metadata of a definition."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.definitions.test_lifecycle import create
from workbench.app import Workbench
from workbench.errors import BadInput

pytestmark = pytest.mark.anyio


async def call(workbench: Workbench, name: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation on the definition."""
    return await workbench.call(name, agentTarget="reviewer", **arguments)


async def test_settings_are_numbers_also_if_they_are_sent_as_text(workbench: Workbench) -> None:
    await create(workbench)
    for key, value in (("temperature", "0.25"), ("maxChatTurns", 3), ("model", "openai:gpt"), ("own", "0.1")):
        await call(workbench, "agent_set_setting", key=key, value=value)
    settings = (await call(workbench, "agent_get_settings"))["settings"]
    chosen = {"temperature": 0.25, "maxChatTurns": 3, "model": "openai:gpt", "own": "0.1"}
    assert chosen.items() <= settings.items()
    assert settings["topP"] == 0.5, "the others have their defaults"


async def test_a_setting_of_your_own_may_be_a_list_or_an_object(workbench: Workbench) -> None:
    await create(workbench)
    for value in ([{"say": "Hello."}, {"calls": [{"tool": "add"}]}], {"deep": {"er": [1]}}):
        await call(workbench, "agent_set_setting", key="script", value=value)
        assert (await call(workbench, "agent_get_settings"))["settings"]["script"] == value


async def test_a_setting_that_is_null_has_its_default_again(workbench: Workbench) -> None:
    await create(workbench)
    for key, value in (("temperature", 1), ("own", "x")):
        await call(workbench, "agent_set_setting", key=key, value=value)
        await call(workbench, "agent_set_setting", key=key, value=None)
    settings = (await call(workbench, "agent_get_settings"))["settings"]
    assert settings["temperature"] == 0.5
    assert "own" not in settings


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", 3),
        ("maxChatTurns", "many"),
        ("toolPermission", "sometimes"),
        ("model", "gpt"),
        ("a b", 1),
        ("topP", [1]),
    ],
)
async def test_a_setting_out_of_its_range_is_refused(workbench: Workbench, key: str, value: Any) -> None:
    await create(workbench)
    before = await call(workbench, "agent_get_settings")
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_set_setting", key=key, value=value)
    assert await call(workbench, "agent_get_settings") == before


async def test_the_composed_prompt_has_what_a_run_gets(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_set_system_prompt", prompt="You review.\n")
    for name, include in (("brief", "always"), ("long", "manual")):
        await call(workbench, "agent_add_rule", rule={"name": name, "text": f"Be {name}.", "include": include})
    assert (await call(workbench, "agent_get_system_prompt"))["prompt"] == "You review."
    composed = (await call(workbench, "agent_get_system_prompt", composed=True))["prompt"]
    assert composed.startswith("You review.")
    assert "Be brief." in composed
    assert "Be long." not in composed


async def test_metadata_that_are_not_named_stay(workbench: Workbench) -> None:
    await create(workbench)
    before = (await call(workbench, "agent_get_metadata"))["metadata"]
    changes = {"version": "2.0.0", "iconUrl": "https://example.org/icon.svg", "mode": "tools"}
    await call(workbench, "agent_update_metadata", metadata=changes)
    assert (await call(workbench, "agent_get_metadata"))["metadata"] == before | changes
    await call(workbench, "agent_update_metadata", metadata={"iconUrl": None})
    assert (await call(workbench, "agent_get_metadata"))["metadata"] == before | changes | {"iconUrl": None}


@pytest.mark.parametrize("metadata", [{"id": "other"}, {"created": "now"}, {"name": ""}, {"mode": "x"}, {"colour": 1}])
async def test_metadata_that_cannot_be_changed_so_are_refused(workbench: Workbench, metadata: dict[str, Any]) -> None:
    await create(workbench)
    before = await call(workbench, "agent_get_metadata")
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_update_metadata", metadata=metadata)
    assert await call(workbench, "agent_get_metadata") == before
