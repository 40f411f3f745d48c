"""The sections of a definition are read and changed: settings, prompt, metadata, rules, tools, providers, servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.definitions.conftest import Reviewer, versions
from tests.services.definitions.rows import TOOL
from workbench.rules.secrets.forms import MASK

pytestmark = pytest.mark.anyio


@pytest.fixture
async def in_mode_tools(reviewer: Reviewer) -> Reviewer:
    """The definition, in mode `tools`."""
    await reviewer("agent_update_metadata", metadata={"mode": "tools"})
    return reviewer


# Settings, prompt and metadata


async def test_settings_have_their_types_and_are_null_unless_they_are_set(reviewer: Reviewer) -> None:
    deep = {"deep": {"er": [{"calls": [{"tool": "add"}]}]}}
    for key, value in (("temperature", "0.25"), ("maxChatTurns", 3), ("model", "openai:gpt"), ("own", "0.1")):
        await reviewer("agent_set_setting", key=key, value=value)
    for value in ([deep], deep):
        await reviewer("agent_set_setting", key="script", value=value)
        assert (await reviewer("agent_get_settings"))["settings"]["script"] == value
    settings = (await reviewer("agent_get_settings"))["settings"]
    chosen = {"temperature": 0.25, "maxChatTurns": 3, "model": "openai:gpt", "own": "0.1"}
    assert chosen.items() <= settings.items()
    assert settings["topP"] is None, "the provider's own applies"
    for key in ("temperature", "own"):
        await reviewer("agent_set_setting", key=key, value=None)
    settings = (await reviewer("agent_get_settings"))["settings"]
    assert (settings["temperature"], settings.get("own")) == (None, None)


async def test_a_setting_out_of_its_range_is_refused(reviewer: Reviewer) -> None:
    before = await reviewer("agent_get_settings")
    wrong = {"temperature": 3, "maxChatTurns": "many", "toolPermission": "sometimes", "model": "gpt", "a b": 1}
    for key, value in [*wrong.items(), ("topP", [1])]:
        await reviewer.refused("VALIDATION_ERROR", "agent_set_setting", key=key, value=value)
    assert await reviewer("agent_get_settings") == before


async def test_the_composed_prompt_has_what_a_run_gets(reviewer: Reviewer) -> None:
    await reviewer("agent_set_system_prompt", prompt="You review.\n")
    for name, include in (("brief", "always"), ("long", "manual")):
        await reviewer("agent_add_rule", rule={"name": name, "text": f"Be {name}.", "include": include})
    assert (await reviewer("agent_get_system_prompt"))["prompt"] == "You review."
    composed = (await reviewer("agent_get_system_prompt", composed=True))["prompt"]
    assert composed.startswith("You review.")
    assert "Be brief." in composed
    assert "Be long." not in composed


async def test_metadata_that_are_not_named_or_cannot_be_changed_stay(reviewer: Reviewer) -> None:
    before = (await reviewer("agent_get_metadata"))["metadata"]
    for wrong in ({"id": "other"}, {"created": "now"}, {"name": ""}, {"mode": "x"}, {"colour": 1}):
        await reviewer.refused("VALIDATION_ERROR", "agent_update_metadata", metadata=wrong)
    assert (await reviewer("agent_get_metadata"))["metadata"] == before
    changes = {"version": "2.0.0", "iconUrl": "https://example.org/icon.svg", "mode": "tools"}
    await reviewer("agent_update_metadata", metadata=changes)
    assert (await reviewer("agent_get_metadata"))["metadata"] == before | changes
    await reviewer("agent_update_metadata", metadata={"iconUrl": None})
    assert (await reviewer("agent_get_metadata"))["metadata"] == before | changes | {"iconUrl": None}


# Rules

RULE = {"name": "be-polite", "description": "Tone", "text": "Be polite.", "priorityLevel": 1, "include": "always"}


async def test_a_rule_is_added_read_changed_renamed_and_deleted(reviewer: Reviewer) -> None:
    await reviewer("agent_add_rule", rule=RULE)
    assert (await reviewer("agent_get_rule", ruleName="be-polite"))["rule"] == RULE
    changes = {"text": "Be very polite.", "name": "Be-Polite"}
    await reviewer("agent_update_rule", ruleName="be-polite", rule=changes)
    assert await reviewer("agent_list_rules") == {"rules": [RULE | changes], "count": 1}
    await reviewer("agent_delete_rule", ruleName="Be-Polite")
    assert (await reviewer("agent_get_rule", ruleName="Be-Polite"))["rule"] is None
    assert await versions(reviewer.workbench) == [
        ("definition.created", "created"),
        ("definition.changed", "rule be-polite added"),
        ("definition.changed", "rule be-polite changed"),
        ("definition.changed", "rule Be-Polite deleted"),
    ]


async def test_rules_come_by_priority_level_and_then_by_name(reviewer: Reviewer) -> None:
    for name, level in (("c", 500), ("b", 10), ("a", 500)):
        await reviewer("agent_add_rule", rule={"name": name, "text": name, "priorityLevel": level})
    assert [rule["name"] for rule in (await reviewer("agent_list_rules"))["rules"]] == ["b", "a", "c"]


async def test_a_change_that_is_refused_leaves_the_rule_as_it_was(reviewer: Reviewer) -> None:
    await reviewer("agent_add_rule", rule=RULE)
    await reviewer("agent_add_rule", rule={"name": "other", "text": "x"})
    await reviewer.refused("ALREADY_EXISTS", "agent_add_rule", rule={"name": "BE-polite", "text": "x"})
    for code, changes in (("ALREADY_EXISTS", {"name": "Other"}), ("VALIDATION_ERROR", {"priorityLevel": 1000})):
        await reviewer.refused(code, "agent_update_rule", ruleName="be-polite", rule=changes)
    for name, more in (("agent_update_rule", {"rule": {}}), ("agent_delete_rule", {})):
        assert "be-polite, other" in await reviewer.refused("NOT_FOUND", name, ruleName="nothing", **more)
    assert (await reviewer("agent_get_rule", ruleName="be-polite"))["rule"] == RULE


# Exported tools


async def test_only_an_agent_in_mode_tools_gets_tools(reviewer: Reviewer) -> None:
    assert "agent_update_metadata" in await reviewer.refused("WRONG_MODE", "agent_add_tool", tool=TOOL)
    await reviewer("agent_update_metadata", metadata={"mode": "tools"})
    await reviewer("agent_add_tool", tool=TOOL)
    await reviewer("agent_update_metadata", metadata={"mode": "interactive"})
    await reviewer.refused("WRONG_MODE", "agent_update_tool", toolName=TOOL["name"], tool={"description": "x"})
    assert (await reviewer("agent_list_tools"))["tools"] == [TOOL], "its tools are kept"
    await reviewer("agent_delete_tool", toolName=TOOL["name"])
    assert (await reviewer("agent_list_tools"))["count"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": {"type": "array"}},
        {"parameters": {"type": "object", "properties": {"text": {"type": "words"}}}},
        {"prompt": "Translate {text} to {language}."},
        {"prompt": " "},
        {"name": "two words"},
    ],
)
async def test_a_tool_that_could_not_be_called_is_refused(in_mode_tools: Reviewer, wrong: dict[str, Any]) -> None:
    await in_mode_tools.refused("VALIDATION_ERROR", "agent_add_tool", tool=TOOL | wrong)
    await in_mode_tools("agent_add_tool", tool=TOOL)
    await in_mode_tools.refused("VALIDATION_ERROR", "agent_update_tool", toolName=TOOL["name"], tool=wrong)
    assert (await in_mode_tools("agent_list_tools"))["tools"] == [TOOL]


async def test_a_parameter_that_the_prompt_uses_is_not_removed(in_mode_tools: Reviewer) -> None:
    await in_mode_tools("agent_add_tool", tool=TOOL)
    named, changes = {"toolName": TOOL["name"]}, {"parameters": {"type": "object"}}
    assert "{text}" in await in_mode_tools.refused("VALIDATION_ERROR", "agent_update_tool", **named, tool=changes)
    changes["prompt"] = "Summarise everything."
    await in_mode_tools("agent_update_tool", **named, tool=changes)
    assert (await in_mode_tools("agent_get_tool", **named))["tool"] == TOOL | changes


# Providers of models

REFERENCE = {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}
LITERAL = {"OPENAI_API_KEY": "sk-0123456789"}
OPENAI = {"providerType": "openai"}


async def test_a_provider_is_installed_listed_changed_and_uninstalled(reviewer: Reviewer) -> None:
    assert "openai is not installed. Installed: none" in await reviewer.refused(
        "NOT_FOUND", "agent_update_provider", **OPENAI, config=REFERENCE
    )
    await reviewer.refused("NOT_FOUND", "agent_uninstall_provider", **OPENAI)
    assert (await reviewer("agent_install_provider", **OPENAI, config=REFERENCE))["warnings"] == []
    listed = await reviewer("agent_list_providers")
    assert listed["installed"] == ["openai"]
    assert {"openai", "anthropic", "ollama"} < set(listed["available"]) == set(listed["providerInfo"])
    assert listed["providerInfo"]["openai"]["configValues"][0]["key"] == "OPENAI_API_KEY"
    elsewhere = REFERENCE | {"OPENAI_BASE_URL": "http://127.0.0.1:1"}
    await reviewer("agent_update_provider", **OPENAI, config=elsewhere)
    provider_config = await reviewer("agent_get_provider_config", **OPENAI)
    assert (provider_config["installed"], provider_config["config"]) == (True, elsewhere)
    await reviewer("agent_uninstall_provider", **OPENAI)
    provider_config = await reviewer("agent_get_provider_config", **OPENAI)
    assert (provider_config["installed"], provider_config["config"]) == (False, None)


async def test_a_provider_can_be_named_by_its_alias(reviewer: Reviewer) -> None:
    config = {"ANTHROPIC_API_KEY": "env://KEY"}
    await reviewer("agent_install_provider", providerType="claude", config=config)
    assert (await reviewer("agent_list_providers"))["installed"] == ["anthropic"]
    await reviewer.refused("ALREADY_EXISTS", "agent_install_provider", providerType="anthropic", config=config)
    assert (await reviewer("agent_get_provider_config", providerType="claude"))["config"] == config


async def test_a_secret_that_is_written_out_is_not_shown_and_stays_if_its_mask_comes_back(
    reviewer: Reviewer,
) -> None:
    done = await reviewer("agent_install_provider", **OPENAI, config=LITERAL)
    assert "OPENAI_API_KEY is written out" in done["warnings"][0]
    shown = (await reviewer("agent_get_provider_config", **OPENAI))["config"]
    assert shown == {"OPENAI_API_KEY": MASK}
    events = (await reviewer.workbench.call("list_newest_events"))["events"]
    assert LITERAL["OPENAI_API_KEY"] not in json.dumps([done, shown, events])
    await reviewer("agent_update_provider", **OPENAI, config=shown)
    assert LITERAL["OPENAI_API_KEY"] in reviewer.file.read_text()
    elsewhere = {"config": shown | {"OPENAI_BASE_URL": "https://example.com"}}
    refused = await reviewer.refused("INVALID_CONFIGURATION", "agent_update_provider", **OPENAI, **elsewhere)
    assert "OPENAI_API_KEY is masked" in refused
    assert not (await reviewer("agent_validate_provider_config", **OPENAI, **elsewhere))["isValid"]


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
async def test_only_a_valid_provider_configuration_is_installed(
    reviewer: Reviewer, provider: str, config: dict[str, str], valid: bool
) -> None:
    given = {"providerType": provider, "config": config}
    checked = await reviewer("agent_validate_provider_config", **given)
    assert (checked["isValid"], checked["error"] is None) == (valid, valid)
    if not valid:
        await reviewer.refused("INVALID_CONFIGURATION", "agent_install_provider", **given)
        assert (await reviewer("agent_list_providers"))["installed"] == []


# MCP servers

PROGRAM = {"command": "mcp-files", "args": ["."], "env": {"FILES_TOKEN": "t-0123456789", "LANG": "C"}}
WEB = {"url": "https://example.org/mcp", "headers": {"Authorization": "env://WEB_TOKEN"}}


async def test_a_server_is_added_listed_changed_and_deleted(reviewer: Reviewer) -> None:
    await reviewer("agent_add_mcp_server", serverName="web", config=WEB)
    await reviewer.refused("ALREADY_EXISTS", "agent_add_mcp_server", serverName="Web", config=PROGRAM)
    refused = await reviewer.refused("NOT_FOUND", "agent_update_mcp_server", serverName="Web", config=WEB)
    assert "Its servers: web." in refused
    await reviewer("agent_add_mcp_server", serverName="files", config={"command": "mcp-files"})
    listed = await reviewer("agent_list_mcp_servers")
    types = {name: server["type"] for name, server in listed["servers"].items()}
    assert (types, listed["count"]) == ({"files": "stdio", "web": "streamable-http"}, 2)
    assert WEB.items() <= listed["servers"]["web"].items()
    await reviewer("agent_update_mcp_server", serverName="web", config=WEB | {"type": "sse"})
    assert (await reviewer("agent_get_mcp_server", serverName="web"))["server"]["type"] == "sse"
    await reviewer("agent_delete_mcp_server", serverName="web")
    assert (await reviewer("agent_get_mcp_server", serverName="web"))["server"] is None


async def test_a_secret_stays_when_only_rules_of_tools_change(reviewer: Reviewer) -> None:
    done = await reviewer("agent_add_mcp_server", serverName="files", config=PROGRAM)
    assert "FILES_TOKEN is written out" in done["warnings"][0]
    shown = (await reviewer("agent_get_mcp_server", serverName="files"))["server"]
    assert shown["env"] == {"FILES_TOKEN": MASK, "LANG": "C"}
    changed = shown | {"tools": {"delete": {"permissionRequired": True}}}
    await reviewer("agent_update_mcp_server", serverName="files", config=changed)
    assert "t-0123456789" in reviewer.file.read_text()
    for name, server, config in (
        ("agent_update_mcp_server", "files", changed | {"command": "mail"}),
        ("agent_add_mcp_server", "other", shown),
    ):
        refused = await reviewer.refused("INVALID_CONFIGURATION", name, serverName=server, config=config)
        assert "FILES_TOKEN is masked" in refused


async def test_a_server_that_could_not_be_used_is_refused(reviewer: Reviewer) -> None:
    for config in (
        {},
        {"command": ""},
        {"command": "a", "url": "https://example.org"},
        {"url": "ftp://example.org"},
        {"url": "https://user:password@example.org"},
        {"command": "a", "env": {"LD_PRELOAD": "x"}},
        {"command": "a", "env": {"WORKBENCH_TOKEN": "x"}},
        {"command": "a", "args": ["\n\0"]},
        {"url": "https://example.org", "headers": {"A": "x\r\nB: y"}},
        {"type": "carrier-pigeon", "url": "https://example.org"},
        {"command": "a", "tools": {"t": {"include": "never"}}},
    ):
        await reviewer.refused("VALIDATION_ERROR", "agent_add_mcp_server", serverName="files", config=config)
    assert (await reviewer("agent_list_mcp_servers"))["count"] == 0
