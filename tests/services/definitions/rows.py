"""Arguments of every tool that manages definitions; `test_every_tool.py` derives from them what each must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REVIEWER = "./agents/reviewer"
ON = {"agentTarget": REVIEWER}
LITERAL = "sk-written-out-0123456789"
"""A secret that is written out in the configuration of the prepared definition."""

RULE = {"name": "be-polite", "description": "Tone", "text": "Always use polite language.", "priorityLevel": 1}
REFERENCE = {"name": "style", "description": "Style guide", "text": "Short sentences.", "include": "agent"}
TOOL = {
    "name": "summarise",
    "description": "Summarise a text",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "prompt": "Summarise this: {text}",
}
SERVER = {"command": "mcp-files", "args": ["--root", "."], "env": {"FILES_TOKEN": LITERAL, "LANG": "C"}}
PROVIDER = {"OPENAI_API_KEY": LITERAL}
OPENAI = {**ON, "providerType": "openai", "config": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}}

EXPORTED = "workbenchAgent: 1\nmetadata: {id: other, name: Other}\n"

OLDER = "metadata: {name: Old}\nsystemPrompt: You are old.\n"
"""A definition in an older layout: one file, `./agents/old.yaml`."""

PREPARATION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agent_create", {"agentPath": REVIEWER, "name": "Reviewer", "mode": "tools", "description": "Reviews changes"}),
    ("agent_add_rule", {**ON, "rule": RULE}),
    ("agent_add_reference", {**ON, "reference": REFERENCE}),
    ("agent_add_tool", {**ON, "tool": TOOL}),
    ("agent_install_provider", {**ON, "providerType": "openai", "config": PROVIDER}),
    ("agent_add_mcp_server", {**ON, "serverName": "files", "config": SERVER}),
)
"""The calls that make the definition on which the tools are tried."""

GOOD: Mapping[str, dict[str, Any]] = {
    "agent_list": {"basePath": "./agents"},
    "agent_get_info": ON,
    "agent_create": {"agentPath": "./agents/new", "name": "New", "mode": "tools", "initialPrompt": "You are new."},
    "agent_delete": {**ON, "confirm": True},
    "agent_clone": {"sourceAgent": REVIEWER, "targetPath": "./agents/copy", "newName": "Copy"},
    "agent_get_settings": ON,
    "agent_set_setting": {**ON, "key": "temperature", "value": "0.2"},
    "agent_get_system_prompt": ON,
    "agent_set_system_prompt": {**ON, "prompt": "You review changes."},
    "agent_get_metadata": ON,
    "agent_update_metadata": {**ON, "metadata": {"version": "1.1.0"}},
    "agent_list_rules": ON,
    "agent_get_rule": {**ON, "ruleName": "be-polite"},
    "agent_add_rule": {**ON, "rule": {**RULE, "name": "be-brief"}},
    "agent_update_rule": {**ON, "ruleName": "be-polite", "rule": {"include": "always"}},
    "agent_delete_rule": {**ON, "ruleName": "be-polite"},
    "agent_list_references": ON,
    "agent_get_reference": {**ON, "referenceName": "style"},
    "agent_add_reference": {**ON, "reference": {**REFERENCE, "name": "glossary"}},
    "agent_update_reference": {**ON, "referenceName": "style", "reference": {"text": "New."}},
    "agent_delete_reference": {**ON, "referenceName": "style"},
    "agent_list_tools": ON,
    "agent_get_tool": {**ON, "toolName": "summarise"},
    "agent_add_tool": {**ON, "tool": {**TOOL, "name": "shorten"}},
    "agent_update_tool": {**ON, "toolName": "summarise", "tool": {"description": "New"}},
    "agent_delete_tool": {**ON, "toolName": "summarise"},
    "agent_list_providers": ON,
    "agent_get_provider_config": {**ON, "providerType": "openai"},
    "agent_install_provider": {**ON, "providerType": "anthropic", "config": {"ANTHROPIC_API_KEY": "env://KEY"}},
    "agent_update_provider": OPENAI,
    "agent_uninstall_provider": {**ON, "providerType": "openai"},
    "agent_validate_provider_config": OPENAI,
    "agent_list_mcp_servers": ON,
    "agent_get_mcp_server": {**ON, "serverName": "files"},
    "agent_add_mcp_server": {**ON, "serverName": "web", "config": {"url": "https://example.org/mcp"}},
    "agent_update_mcp_server": {**ON, "serverName": "files", "config": {"command": "mcp-files", "args": ["docs"]}},
    "agent_delete_mcp_server": {**ON, "serverName": "files"},
    "agent_get_trust": ON,
    "agent_request_trust": ON,
    "agent_revoke_trust": ON,
    "agent_probe_mcp_server": {**ON, "serverName": "files"},
    "agent_list_templates": {},
    "agent_create_from_template": {"templateName": "reviewer", "agentPath": "./agents/made", "name": "Made"},
    "agent_create_from_persona": {"personaId": "tester", "agentPath": "./agents/tester", "name": "Tester"},
    "agent_get_schema": {},
    "agent_migrate": {"agentTarget": "./agents/old.yaml", "targetPath": "./agents/converted"},
    "agent_history": ON,
    "agent_restore": {**ON, "version": "HEAD"},
    "agent_diff": {**ON, "otherAgent": "Reviewer"},
    "agent_analytics": {**ON, "since": "2026-01-01T00:00:00Z"},
    "agent_validate": ON,
    "agent_export": ON,
    "agent_bulk": {"changes": [{"tool": "agent_delete_rule", "arguments": {**ON, "ruleName": "be-polite"}}]},
    "agent_import": {"agentPath": "./agents/imported", "content": EXPORTED, "newName": "Imported"},
}
"""Arguments with which each tool succeeds; those that change a definition change it with these."""

CHANGE_NO_FILES = {"agent_request_trust", "agent_revoke_trust", "agent_probe_mcp_server"}
"""Tools that do something else than read or change definitions."""

TARGETS = {"agentTarget", "sourceAgent", "otherAgent"}
"""Parameters that name a definition that exists."""

UNKNOWN: Mapping[str, str] = {
    **dict.fromkeys(("ruleName", "referenceName", "toolName", "serverName", "templateName"), "NOT_FOUND"),
    "providerType": "PROVIDER_UNKNOWN",
    "personaId": "PERSONA_NOT_FOUND",
}
"""Parameters that name something else that exists: the code of the error if there is nothing of that name."""

NULL_IF_UNKNOWN = {"agent_get_rule", "agent_get_reference", "agent_get_tool", "agent_get_mcp_server"}
"""Tools that answer null for a part that does not exist."""

NAMES_NEW = {"agent_add_mcp_server": "serverName"}
"""Tools that take the name of a part that does not exist yet."""
