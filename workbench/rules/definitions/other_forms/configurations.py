"""Configurations of other programs, in JSON or TOML: their MCP servers, model, and limits of tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from workbench.rules.definitions.other_forms.markdown import mode, model, tool_lists, words_of
from workbench.rules.definitions.other_forms.report import Imported, ImportReport, made
from workbench.rules.definitions.other_forms.servers import servers

_GEMINI_KEYS = frozenset(
    (
        *("general", "ui", "ide", "tools", "mcp", "model", "context", "security", "telemetry", "privacy"),
        *("experimental", "coreTools", "excludeTools", "contextFileName", "selectedAuthType", "theme"),
    )
)


def is_gemini(file: str, content: Mapping[str, Any]) -> bool:
    """Whether JSON has the form of Gemini CLI's `settings.json`."""
    path = PurePosixPath(file)
    entries = content.get("mcpServers")
    keys = (
        {key for one in entries.values() if isinstance(one, Mapping) for key in one}
        if isinstance(entries, dict)
        else set()
    )
    return path.parent.name == ".gemini" or bool(_GEMINI_KEYS & content.keys()) or "httpUrl" in keys


def of_servers(content: Mapping[str, Any], file: str, definition_id: str) -> Imported:
    """The servers of a file that has nothing else: `mcpServers`, or `servers` as in VS Code."""
    report = ImportReport()
    within = content.get("mcp")
    stated = within if isinstance(within, Mapping) and "servers" in within else content
    key = "mcpServers" if "mcpServers" in stated else "servers"
    found = servers(stated[key], report, key)
    inputs = stated.get("inputs")
    for one in inputs if isinstance(inputs, list) else ():
        if isinstance(one, Mapping) and "id" in one:
            report.leave_out(f"inputs.{one['id']}", "nothing asks for it: set the variable that refers to it")
    report.unknown(content, ("mcpServers", "servers", "inputs", "mcp", "$schema"))
    form = "vscode-mcp" if key == "servers" else "mcp-json"
    return made(form, None, {"mcpServers": found}, report, definition_id, PurePosixPath(file).name)


def of_gemini(content: Mapping[str, Any], file: str, definition_id: str) -> Imported:
    """What Gemini CLI's `settings.json` says; also of former versions, in which all keys are at the top."""
    report = ImportReport()
    sections = {key: dict(content[key]) for key in ("tools", "mcp", "general") if isinstance(content.get(key), Mapping)}
    tools, mcp, general = (sections.get(key, {}) for key in ("tools", "mcp", "general"))
    stated = dict(content["mcpServers"]) if isinstance(content.get("mcpServers"), Mapping) else {}
    allowed, excluded = mcp.pop("allowed", content.get("allowMCPServers")), mcp.pop("excluded", None)
    for name in [*stated]:
        if (isinstance(allowed, list) and name not in allowed) or (isinstance(excluded, list) and name in excluded):
            report.leave_out(f"mcpServers.{name}", "it is switched off there")
            del stated[name]
    found = servers(stated, report, dialect="gemini")
    core = tools.pop("core", content.get("coreTools"))
    lists = {"tools": None if core is None else [*words_of(core), *(f"mcp__{name}" for name in found)]}
    lists["disallowedTools"] = tools.pop("exclude", content.get("excludeTools"))
    chosen = content.get("model")
    limits = dict(chosen) if isinstance(chosen, Mapping) else {"name": chosen}
    settings = tool_lists(lists, found, report) | model(limits.pop("name", None), report)
    if isinstance(turns := limits.get("maxSessionTurns"), int) and 1 <= turns <= 1_000:
        settings["maxChatTurns"] = limits.pop("maxSessionTurns")
    approval = general.pop("defaultApprovalMode", None)
    settings |= mode("acceptEdits" if approval == "auto_edit" else approval, report)
    for place, rest in (("tools", tools), ("mcp", mcp), ("general", general), ("model", limits)):
        report.unknown(rest, (), place)
    report.unknown(content, ("mcpServers", "tools", "mcp", "general", "model", *_FORMER, "$schema"))
    fields = {"settings": settings, "mcpServers": found}
    return made("gemini-settings", None, fields, report, definition_id, PurePosixPath(file).name)


_FORMER = ("coreTools", "excludeTools", "allowMCPServers")
_CODEX = ("name", "description", "developer_instructions", "model", "model_provider", "model_providers", "mcp_servers")


def of_codex(content: Mapping[str, Any], file: str, definition_id: str) -> Imported:
    """What Codex's `config.toml` says, or the file of one of its agents."""
    report = ImportReport()
    found = servers(content.get("mcp_servers", {}), report, "mcp_servers", dialect="codex")
    provider, providers = _codex_provider(content, report)
    settings: dict[str, Any] = {"model": f"{provider}:{content['model']}"} if content.get("model") and provider else {}
    sandbox = content.get("sandbox_mode")
    if sandbox == "read-only":
        settings["permissionMode"] = "plan"
        report.changed.append("sandbox_mode read-only is the permission mode plan now.")
    elif sandbox is not None:
        report.leave_out("sandbox_mode", f"{sandbox}: workers are confined by Workbench")
    web = content.get("web_search")
    if web == "disabled":
        settings["disallowedTools"] = ["WebSearch"]
    elif web is not None:
        report.leave_out("web_search")
    report.unknown(content, (*_CODEX, "sandbox_mode", "web_search"))
    fields: dict[str, Any] = {"settings": settings, "providers": providers, "mcpServers": found}
    fields["metadata"] = {"description": report.description(content.get("description"))}
    if isinstance(text := content.get("developer_instructions"), str) and text.strip():
        fields["prompt"] = text
    return made("codex-config", content.get("name"), fields, report, definition_id, PurePosixPath(file).name)


def _codex_provider(content: Mapping[str, Any], report: ImportReport) -> tuple[str, dict[str, dict[str, str]]]:
    """The provider of the model, and how it is configured."""
    name = str(content.get("model_provider", "openai"))
    stated = content.get("model_providers")
    entries = dict(stated) if isinstance(stated, Mapping) else {}
    entry = entries.pop(name, None)
    for other in entries:
        report.leave_out(f"model_providers.{other}", "the model is not of this provider")
    if not isinstance(entry, Mapping):
        if name not in ("openai", "ollama"):
            report.leave_out("model_provider", f"{name} is not known here")
            return "", {}
        return str(name), {}
    config = {}
    if isinstance(entry.get("base_url"), str):
        config["OPENAI_BASE_URL"] = entry["base_url"]
    if isinstance(entry.get("env_key"), str):
        config["OPENAI_API_KEY"] = f"env://{entry['env_key']}"
    report.changed.append(f"The provider {name} is openai with its address now.")
    report.unknown(entry, ("name", "base_url", "env_key", "wire_api"), f"model_providers.{name}")
    return "openai", {"openai": config} if config else {}
