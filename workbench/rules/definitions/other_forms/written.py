"""Definitions as files of other programs: subagents of Claude Code, and skills."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workbench.rules import front_matter
from workbench.rules.definitions.composition import system_prompt
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.model import DEFAULT_PROMPT, Definition, Include, Mode
from workbench.rules.definitions.names import fitting
from workbench.rules.definitions.other_forms.report import ImportReport
from workbench.rules.definitions.portable import without_secrets

_REFERENCE = re.compile(r"env://([A-Za-z_]\w*)")
_OTHER_REFERENCE = re.compile(r"(?:op|keyring)://\S+|(?<!\w)file://\S+")


class ExportForm(StrEnum):
    """The form of an exported file."""

    WORKBENCH = "workbench"
    CLAUDE_SUBAGENT = "claude-subagent"
    SKILL = "skill"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A definition in the form of another program.

    Args:
        file: its name there, below the directory of such files.
        replaced: see `portable.without_secrets`.
        left_out: what it cannot say, by its place.
    """

    file: str
    text: str
    replaced: dict[str, str]
    left_out: tuple[str, ...]


def write(definition: Definition, form: ExportForm) -> WrittenFile:
    """A definition in the form of another program, without secrets."""
    safe, replaced = without_secrets(definition)
    name = fitting(safe.metadata.name).lower().replace("_", "-").strip("-") or "agent"
    report = ImportReport()
    if name != safe.metadata.name:
        report.leave_out("metadata.name", f"it is {name} there: only small letters, digits and hyphens are allowed")
    make = _subagent if form is ExportForm.CLAUDE_SUBAGENT else _skill
    head, body = make(safe, report)
    head = {"name": name, "description": safe.metadata.description or f"Works as {safe.metadata.name}."} | head
    file = f"{name}.md" if form is ExportForm.CLAUDE_SUBAGENT else f"{name}/SKILL.md"
    return WrittenFile(file, front_matter.join(head, f"\n{body}\n"), replaced, tuple(report.left_out))


def _subagent(definition: Definition, report: ImportReport) -> tuple[dict[str, Any], str]:
    settings, servers = definition.settings, definition.mcp_servers
    allowed = settings.allowed_tools
    refused = [*(settings.disallowed_tools or ()), *(f"mcp__{name}" for name, one in servers.items() if _is_off(one))]
    for name, server in servers.items():
        offered = [tool for tool, one in server.tools.items() if one.include == "always"]
        if server.server_tool_defaults.include == "manual" and offered and allowed is None:
            report.leave_out(f"mcpServers.{name}.tools", "a list of a server's tools would limit all others, too")
        if server.server_tool_defaults.include != "manual":
            refused += [f"mcp__{name}__{tool}" for tool, one in server.tools.items() if one.include == "manual"]
    if allowed is not None:
        allowed = [*allowed, *_offered(definition)]
    head: dict[str, Any] = {}
    if allowed is not None:
        head["tools"] = ", ".join(allowed)
    if refused:
        head["disallowedTools"] = ", ".join(refused)
    provider, _, model = settings.model.partition(":")
    if provider in ("anthropic", "bedrock"):
        head["model"] = model
    elif provider:
        report.leave_out("settings.model", f"Claude Code has no models of {provider}")
    if settings.permission_mode:
        head["permissionMode"] = settings.permission_mode
    if settings.max_chat_turns:
        head["maxTurns"] = settings.max_chat_turns
    if servers:
        head["mcpServers"] = [{name: _server(f"mcpServers.{name}", one, report)} for name, one in servers.items()]
    _note_settings(definition, report, ("model", "allowedTools", "disallowedTools", "permissionMode", "maxChatTurns"))
    return head, _body(definition, report)


def _is_off(server: StdioServer | HttpServer) -> bool:
    return server.server_tool_defaults.include == "manual" and not server.tools


def _offered(definition: Definition) -> Iterator[str]:
    """The tools of servers in a list of allowed tools."""
    for name, server in definition.mcp_servers.items():
        if server.server_tool_defaults.include != "manual":
            yield f"mcp__{name}"
        for tool, rule in server.tools.items():
            if server.server_tool_defaults.include == "manual" and rule.include == "always":
                yield f"mcp__{name}__{tool}"


def _skill(definition: Definition, report: ImportReport) -> tuple[dict[str, Any], str]:
    head: dict[str, Any] = {}
    rules = definition.rules
    if definition.metadata.version != "1.0.0":
        head["metadata"] = {"version": definition.metadata.version}
    if definition.settings.disallowed_tools:
        head["disallowed-tools"] = ", ".join(definition.settings.disallowed_tools)
    if definition.settings.model.startswith("anthropic:"):
        head["model"] = definition.settings.model.partition(":")[2]
    _note_settings(definition, report, ("disallowedTools", *(["model"] if "model" in head else [])))
    for name in definition.mcp_servers:
        report.leave_out(f"mcpServers.{name}")
    if definition.prompt == DEFAULT_PROMPT and len(rules) == 1 and not definition.references:
        if rules[0].include is Include.MANUAL:
            head["disable-model-invocation"] = True
        _note_parts(definition, report)
        return head, rules[0].text
    return head, _body(definition, report)


def _body(definition: Definition, report: ImportReport) -> str:
    """The system prompt; what is not always part of it is left out."""
    _note_parts(definition, report)
    for section, entries in (("rules", definition.rules), ("references", definition.references)):
        for entry in entries:
            always = entry.include is Include.ALWAYS
            report.leave_out(f"{section}.{entry.name}", "it is part of the prompt there" if always else "")
    return system_prompt(definition)


def _note_parts(definition: Definition, report: ImportReport) -> None:
    for section, names in (("tools", [tool.name for tool in definition.tools]), ("providers", [*definition.providers])):
        for name in names:
            report.leave_out(f"{section}.{name}")
    metadata = definition.metadata
    if metadata.persona:
        report.leave_out("metadata.persona")
    for skill in metadata.skills:
        report.leave_out(f"metadata.skills.{skill.id}")
    if metadata.mode is Mode.TOOLS:
        report.leave_out("metadata.mode")


def _note_settings(definition: Definition, report: ImportReport, said: tuple[str, ...]) -> None:
    for key in definition.settings.model_dump(by_alias=True, exclude_defaults=True):
        if key not in said and not (key == "model" and "settings.model" in " ".join(report.left_out)):
            report.leave_out(f"settings.{key}")


def _server(place: str, server: StdioServer | HttpServer, report: ImportReport) -> dict[str, Any]:
    """A server as Claude Code configures it: variables in place of references."""
    fields = ("command", "args", "env", "cwd", "url", "headers")
    stated = server.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if "cwd" in stated:
        report.leave_out(f"{place}.cwd")
    asked = [tool for tool, rule in server.tools.items() if rule.permission_required is not None]
    if server.server_tool_defaults.permission_required is not None or asked:
        report.leave_out(f"{place}.permissionRequired")
    kind = "http" if server.type == "streamable-http" else server.type
    said = {
        key: _with_variables(f"{place}.{key}", stated[key], report) for key in fields if key in stated and key != "cwd"
    }
    return {"type": kind} | said


def _with_variables(place: str, value: Any, report: ImportReport) -> Any:
    if isinstance(value, dict):
        return {key: _with_variables(f"{place}.{key}", one, report) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_variables(place, one, report) for one in value]
    if isinstance(value, str):
        if _OTHER_REFERENCE.search(value):
            report.leave_out(place, "Claude Code does not read this reference")
        return _REFERENCE.sub(r"${\1}", value)
    return value
