"""A secret that is given in any part of a definition is named, kept as it was given, and shown nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.definitions.conftest import Reviewer, create
from workbench.app import Workbench
from workbench.ops import collect
from workbench.rules.definitions.portable import export_text
from workbench.rules.secrets.forms import MASK
from workbench.services import SERVICES

pytestmark = pytest.mark.anyio
SECRET = "sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
SAID = f"Call it with API_TOKEN={SECRET}, and be polite."
ENTRY = {"name": "r", "text": SAID}
TOOL = {"name": "t", "prompt": SAID, "parameters": {"type": "object"}}
SERVER = {"command": "npx", "args": ["--token", SECRET]}
GIVEN: list[tuple[str, dict[str, Any], str]] = [
    ("agent_set_system_prompt", {"prompt": SAID}, "prompt"),
    ("agent_add_rule", {"rule": ENTRY}, "rules.r"),
    ("agent_add_reference", {"reference": ENTRY}, "references.r"),
    ("agent_add_tool", {"tool": TOOL}, "tools.t"),
    ("agent_set_setting", {"key": "apiKey", "value": "swordfish"}, "settings.apiKey"),
    ("agent_update_metadata", {"metadata": {"description": SAID}}, "metadata.description"),
    ("agent_add_mcp_server", {"serverName": "s", "config": SERVER}, "args.token"),
    ("agent_install_provider", {"providerType": "openai", "config": {"OPENAI_API_KEY": SECRET}}, "OPENAI_API_KEY"),
]
READS = [
    name
    for name, operation in collect(SERVICES).items()
    if operation.reads and operation.input_schema.get("required") == ["agentTarget"]
]
"""The operations that show a definition."""


async def shown(workbench: Workbench, target: str) -> str:
    """All that is shown of a definition."""
    found = [await workbench.call(name, agentTarget=target) for name in READS]
    found.append(await workbench.call("agent_get_system_prompt", agentTarget=target, composed=True))
    found.append(await workbench.call("list_events", limit=1_000))
    return json.dumps(found, ensure_ascii=False)


async def test_a_secret_in_any_part_is_named_when_it_is_given_and_shown_nowhere(
    reviewer: Reviewer, workbench: Workbench
) -> None:
    await reviewer("agent_update_metadata", metadata={"mode": "tools"})
    for name, arguments, place in GIVEN:
        warnings = (await reviewer(name, **arguments))["warnings"]
        assert any(warning.startswith(f"{place} ") for warning in warnings), (name, warnings)
    stored = workbench._ctx.definitions.get("reviewer").definition
    assert (stored.prompt, stored.rules[0].text, stored.settings.model_extra) == (SAID, SAID, {"apiKey": "swordfish"})
    text = await shown(workbench, "reviewer")
    assert SECRET not in text
    assert "swordfish" not in text
    assert (await reviewer("agent_set_setting", key="temperature", value=0.1))["warnings"] == []
    cloned = await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/copy")
    assert len(cloned["warnings"]) == len(GIVEN)
    assert workbench._ctx.definitions.get("copy").definition.prompt == SAID
    assert SECRET not in export_text(stored)[0]


async def test_a_definition_that_is_created_or_imported_names_its_secrets(workbench: Workbench) -> None:
    created = await create(workbench, "new", initialPrompt=SAID, initialSettings={"apiKey": "swordfish"})
    assert [warning.split(" ")[0] for warning in created["warnings"]] == ["prompt", "settings.apiKey"]
    content = f"workbenchAgent: 1\nmetadata: {{id: x, name: Two}}\nprompt: '{SAID}'\n"
    imported = await workbench.call("agent_import", agentPath="./agents/two", content=content)
    assert [warning.split(" ")[0] for warning in imported["warnings"]] == ["prompt"]
    template = (await workbench.call("agent_list_templates"))["templates"][0]["name"]
    assert (await workbench.call("agent_create_from_template", templateName=template))["warnings"] == []


async def test_a_mask_that_is_sent_back_stands_for_the_secret(reviewer: Reviewer, workbench: Workbench) -> None:
    await reviewer("agent_set_system_prompt", prompt=SAID)
    await reviewer("agent_set_setting", key="apiKey", value="swordfish")
    hidden = (await reviewer("agent_get_system_prompt"))["prompt"]
    assert hidden == f"Call it with API_TOKEN={MASK}, and be polite."
    await reviewer("agent_set_system_prompt", prompt=f"{hidden} Always.")
    await reviewer("agent_set_setting", key="apiKey", value=MASK)
    stored = workbench._ctx.definitions.get("reviewer").definition
    assert (stored.prompt, stored.settings.model_extra) == (f"{SAID} Always.", {"apiKey": "swordfish"})
    await reviewer.refused("INVALID_CONFIGURATION", "agent_set_system_prompt", prompt=f"{MASK} and {MASK}")
