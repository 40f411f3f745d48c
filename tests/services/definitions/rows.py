"""Arguments of every tool that manages definitions; `test_every_tool.py` derives from them what each must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REVIEWER = "./agents/reviewer"
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

EXPORTED = "workbenchAgent: 1\nmetadata: {id: other, name: Other}\n"

OLDER = "metadata: {name: Old}\nsystemPrompt: You are old.\n"
"""A definition in an older layout: one file, `./agents/old.yaml`."""

PREPARATION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agent_create", {"agentPath": REVIEWER, "name": "Reviewer", "mode": "tools", "description": "Reviews changes"}),
    ("agent_add_rule", {"agentTarget": REVIEWER, "rule": RULE}),
    ("agent_add_reference", {"agentTarget": REVIEWER, "reference": REFERENCE}),
    ("agent_add_tool", {"agentTarget": REVIEWER, "tool": TOOL}),
    ("agent_install_provider", {"agentTarget": REVIEWER, "providerType": "openai", "config": PROVIDER}),
    ("agent_add_mcp_server", {"agentTarget": REVIEWER, "serverName": "files", "config": SERVER}),
)
"""The calls that make the definition on which the tools are tried."""

GOOD: Mapping[str, dict[str, Any]] = {
    "agent_list": {"basePath": "./agents"},
    "agent_get_info": {"agentTarget": REVIEWER},
    "agent_create": {"agentPath": "./agents/new", "name": "New", "mode": "tools", "initialPrompt": "You are new."},
    "agent_delete": {"agentTarget": REVIEWER, "confirm": True},
    "agent_clone": {"sourceAgent": REVIEWER, "targetPath": "./agents/copy", "newName": "Copy"},
    "agent_get_settings": {"agentTarget": REVIEWER},
    "agent_set_setting": {"agentTarget": REVIEWER, "key": "temperature", "value": "0.2"},
    "agent_get_system_prompt": {"agentTarget": REVIEWER},
    "agent_set_system_prompt": {"agentTarget": REVIEWER, "prompt": "You review changes."},
    "agent_get_metadata": {"agentTarget": REVIEWER},
    "agent_update_metadata": {"agentTarget": REVIEWER, "metadata": {"version": "1.1.0"}},
    "agent_list_rules": {"agentTarget": REVIEWER},
    "agent_get_rule": {"agentTarget": REVIEWER, "ruleName": "be-polite"},
    "agent_add_rule": {"agentTarget": REVIEWER, "rule": {**RULE, "name": "be-brief"}},
    "agent_update_rule": {"agentTarget": REVIEWER, "ruleName": "be-polite", "rule": {"include": "always"}},
    "agent_delete_rule": {"agentTarget": REVIEWER, "ruleName": "be-polite"},
    "agent_list_references": {"agentTarget": REVIEWER},
    "agent_get_reference": {"agentTarget": REVIEWER, "referenceName": "style"},
    "agent_add_reference": {"agentTarget": REVIEWER, "reference": {**REFERENCE, "name": "glossary"}},
    "agent_update_reference": {"agentTarget": REVIEWER, "referenceName": "style", "reference": {"text": "New."}},
    "agent_delete_reference": {"agentTarget": REVIEWER, "referenceName": "style"},
    "agent_list_tools": {"agentTarget": REVIEWER},
    "agent_get_tool": {"agentTarget": REVIEWER, "toolName": "summarise"},
    "agent_add_tool": {"agentTarget": REVIEWER, "tool": {**TOOL, "name": "shorten"}},
    "agent_update_tool": {"agentTarget": REVIEWER, "toolName": "summarise", "tool": {"description": "New"}},
    "agent_delete_tool": {"agentTarget": REVIEWER, "toolName": "summarise"},
    "agent_list_providers": {"agentTarget": REVIEWER},
    "agent_get_provider_config": {"agentTarget": REVIEWER, "providerType": "openai"},
    "agent_install_provider": {
        "agentTarget": REVIEWER,
        "providerType": "anthropic",
        "config": {"ANTHROPIC_API_KEY": "env://ANTHROPIC_API_KEY"},
    },
    "agent_update_provider": {
        "agentTarget": REVIEWER,
        "providerType": "openai",
        "config": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"},
    },
    "agent_uninstall_provider": {"agentTarget": REVIEWER, "providerType": "openai"},
    "agent_validate_provider_config": {
        "agentTarget": REVIEWER,
        "providerType": "openai",
        "config": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"},
    },
    "agent_list_mcp_servers": {"agentTarget": REVIEWER},
    "agent_get_mcp_server": {"agentTarget": REVIEWER, "serverName": "files"},
    "agent_add_mcp_server": {
        "agentTarget": REVIEWER,
        "serverName": "web",
        "config": {"url": "https://example.org/mcp"},
    },
    "agent_update_mcp_server": {
        "agentTarget": REVIEWER,
        "serverName": "files",
        "config": {"command": "mcp-files", "args": ["--root", "docs"]},
    },
    "agent_delete_mcp_server": {"agentTarget": REVIEWER, "serverName": "files"},
    "agent_get_trust": {"agentTarget": REVIEWER},
    "agent_request_trust": {"agentTarget": REVIEWER},
    "agent_revoke_trust": {"agentTarget": REVIEWER},
    "agent_probe_mcp_server": {"agentTarget": REVIEWER, "serverName": "files"},
    "agent_list_templates": {},
    "agent_create_from_template": {"templateName": "reviewer", "agentPath": "./agents/made"},
    "agent_create_from_persona": {"personaId": "tester", "agentPath": "./agents/made"},
    "agent_get_schema": {},
    "agent_migrate": {"agentTarget": "./agents/old.yaml", "targetPath": "./agents/converted"},
    "agent_history": {"agentTarget": REVIEWER},
    "agent_diff": {"agentTarget": REVIEWER, "otherAgent": "Reviewer"},
    "agent_analytics": {"agentTarget": REVIEWER, "since": "2026-01-01T00:00:00Z"},
    "agent_validate": {"agentTarget": REVIEWER},
    "agent_export": {"agentTarget": REVIEWER},
    "agent_bulk": {
        "changes": [{"tool": "agent_delete_rule", "arguments": {"agentTarget": REVIEWER, "ruleName": "be-polite"}}]
    },
    "agent_import": {"agentPath": "./agents/imported", "content": EXPORTED},
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
