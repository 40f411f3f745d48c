"""Markdown of other programs: subagents, skills, rules for some files, and instructions for every agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from workbench.rules import front_matter
from workbench.rules.definitions.names import fitting
from workbench.rules.definitions.other_forms.report import Imported, ImportReport, made, rule
from workbench.rules.definitions.other_forms.servers import limited, servers
from workbench.rules.definitions.program_tools import MODES, from_gemini, is_tool, separated
from workbench.rules.yaml_text import InvalidYaml, load

_KEY = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_MODELS = (
    ("anthropic", re.compile(r"claude.*|sonnet|opus|haiku|best|opusplan")),
    ("gemini", re.compile(r"gemini.*")),
    ("openai", re.compile(r"gpt.*|o[0-9].*|codex.*")),
)
_ALIASES = frozenset(("sonnet", "opus", "haiku", "best", "opusplan"))
_SKILL_KEYS = frozenset(
    ("license", "compatibility", "allowed-tools", "disable-model-invocation", "user-invocable", "argument-hint")
)
_RULE_KEYS = frozenset(("alwaysApply", "globs", "applyTo", "paths"))
_LINK = re.compile(r"(?:\]\(|`)(?!\w+:|/|#|~)((?:[\w.-]+/)+[\w.-]+\.\w+)(?:#[^)]*)?[)`]")
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:~/|\.{0,2}/)?[\w.-]+(?:/[\w.-]+)*\.\w+)")
_INSTRUCTIONS = {
    "AGENTS.md": "agents-md",
    "CLAUDE.md": "claude-md",
    "GEMINI.md": "gemini-md",
    ".cursorrules": "cursorrules",
    ".windsurfrules": "windsurfrules",
    "copilot-instructions.md": "copilot-instructions",
}


def read(text: str, file: str, definition_id: str) -> Imported:
    """What a Markdown file says, by the keys of its front matter, or by its name.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    report, name = ImportReport(), PurePosixPath(file).name
    head, body = head_and_body(text, report)
    if _RULE_KEYS & head.keys() or name.endswith(".mdc"):
        return _rule(head, body, name, report, definition_id)
    if name == "SKILL.md" or _SKILL_KEYS & head.keys():
        return _skill(head, body, file, report, definition_id)
    if "name" in head or "description" in head or "tools" in head:
        return _subagent(head, body, name, report, definition_id)
    return _instructions(head, body, name, report, definition_id)


def head_and_body(text: str, report: ImportReport) -> tuple[dict[str, Any], str]:
    """Front matter and body. Other programs take front matter that is no YAML: then each of its lines is a field."""
    try:
        head, body = front_matter.parts(text)
    except InvalidYaml:
        return {}, text
    try:
        stated = load(head)
    except InvalidYaml:
        stated = _by_line(head)
        report.changed.append("Its front matter is no YAML: it is read line by line.")
    return (stated, body) if isinstance(stated, dict) else ({}, body)


def _by_line(head: str) -> dict[str, Any]:
    """The fields of a head of which not all values are YAML."""
    blocks: dict[str, list[str]] = {}
    key = ""
    for line in head.splitlines():
        if found := _KEY.fullmatch(line):
            key = found[1]
            blocks[key] = [found[2] or ""]
        elif key:
            blocks[key].append(line)
    return {key: _value(lines) for key, lines in blocks.items()}


def _value(lines: list[str]) -> Any:
    block = "\n".join(lines)
    try:
        value = load(f"x: {block}" if lines[0] else f"x:\n{block}")["x"]
    except (InvalidYaml, TypeError, KeyError):
        return block.strip().strip("\"'")
    return block.strip() if isinstance(value, dict) and lines[0] else value


def model(value: Any, report: ImportReport) -> dict[str, str]:
    """The setting of a model that another program names; empty if it names none that is known here."""
    name = str(value or "").strip()
    if name in ("", "inherit", "default", "auto"):
        return {}
    provider = next((provider for provider, pattern in _MODELS if pattern.fullmatch(name)), None)
    if provider is None:
        report.leave_out("model", f"the provider of {name} is not known; set it as provider:model")
        return {}
    if name in _ALIASES:
        report.changed.append(f"The model {name} is a name of Claude Code's: conversations need a full one.")
    return {"model": f"{provider}:{name}"}


def tool_lists(head: Mapping[str, Any], found: dict[str, dict[str, Any]], report: ImportReport) -> dict[str, Any]:
    """The settings of the lists `tools` and `disallowedTools`, after those of servers were applied to the servers."""
    allowed, refused = _entries(head, "tools", report), _entries(head, "disallowedTools", report)
    of_servers = None if allowed is None else [one for one in allowed if one.startswith("mcp__")]
    limited(found, of_servers, [one for one in refused or () if one.startswith("mcp__")], report)
    lists = {"allowedTools": allowed, "disallowedTools": refused}
    return {
        key: [one for one in entries if not one.startswith("mcp__")]
        for key, entries in lists.items()
        if entries is not None
    }


def words_of(value: Any) -> list[str]:
    """A list of words, or a text that separates them; anything else is one word."""
    stated = separated(value)
    return [str(one) for one in stated] if isinstance(stated, list) else [str(stated)]


def _entries(head: Mapping[str, Any], key: str, report: ImportReport) -> list[str] | None:
    if head.get(key) is None:
        return None
    entries = words_of(head[key])
    if "*" in entries:
        return None if key == "tools" else entries
    known = [from_gemini(one.replace("mcp_", "mcp__", 1) if re.match(r"mcp_[^_]", one) else one) for one in entries]
    for one in known:
        if not is_tool(one) and not one.startswith("mcp__"):
            report.leave_out(f"{key}.{one}", "it is no tool's name")
    return list(dict.fromkeys(one for one in known if is_tool(one) or one.startswith("mcp__")))


def mode(value: Any, report: ImportReport) -> dict[str, str]:
    """The setting of a permission mode; one that gives more than profiles do has no place."""
    if value is None:
        return {}
    name = "default" if value == "manual" else str(value)
    if name not in MODES:
        report.leave_out("permissionMode", f"{name}: a definition gives its program no more than the profile does")
        return {}
    return {"permissionMode": name}


_SUBAGENT = ("name", "description", "tools", "disallowedTools", "model", "permissionMode", "mcpServers", "skills")
_TURNS = ("maxTurns", "max_turns")


def _subagent(head: dict[str, Any], body: str, file: str, report: ImportReport, definition_id: str) -> Imported:
    found = servers(_inline_servers(head.get("mcpServers"), report), report)
    settings = (
        tool_lists(head, found, report) | mode(head.get("permissionMode"), report) | model(head.get("model"), report)
    )
    for key in _TURNS:
        if isinstance(turns := head.get(key), int) and 1 <= turns <= 1_000:
            settings["maxChatTurns"] = turns
    if isinstance(temperature := head.get("temperature"), int | float) and 0 <= temperature <= 2:
        settings["temperature"] = temperature
    skills = separated(head.get("skills"))
    for skill in skills if isinstance(skills, list) else ():
        report.leave_out(f"skills.{skill}", "it is another file")
    report.unknown(head, (*_SUBAGENT, *_TURNS, "temperature"))
    _note_files(body, report)
    fields = {
        "metadata": {"description": report.description(head.get("description")), "mode": "autonomous"},
        "settings": settings,
        "mcpServers": found,
    } | ({"prompt": body} if body.strip() else {})
    return made("claude-subagent", head.get("name"), fields, report, definition_id, file)


def _inline_servers(stated: Any, report: ImportReport) -> dict[str, Any]:
    """The servers that a subagent configures itself; others it only names."""
    if isinstance(stated, Mapping):
        return dict(stated)
    inline: dict[str, Any] = {}
    names = separated(stated)
    for one in names if isinstance(names, list) else ():
        if isinstance(one, Mapping):
            inline |= one
        else:
            report.leave_out(f"mcpServers.{one}", "it is configured in another file")
    return inline


_SKILL = ("name", "description", "metadata", "model", "disable-model-invocation", "allowed-tools", "disallowed-tools")


def _skill(head: dict[str, Any], body: str, file: str, report: ImportReport, definition_id: str) -> Imported:
    path = PurePosixPath(file)
    name = head.get("name") or (path.parent.name if path.name == "SKILL.md" else path.stem) or "skill"
    description = report.description(head.get("description"))
    include = "manual" if head.get("disable-model-invocation") is True else "agent"
    entry = rule(str(name), body, report, description=description, include=include)
    settings = tool_lists({"disallowedTools": head.get("disallowed-tools")}, {}, report) | model(
        head.get("model"), report
    )
    more = head.get("metadata") if isinstance(head.get("metadata"), Mapping) else {}
    version = {"version": str(more["version"])[:50]} if more and more.get("version") else {}
    if "allowed-tools" in head:
        report.leave_out("allowed-tools", "it permits tools without a question; it limits none")
    for key in more or ():
        if key != "version":
            report.leave_out(f"metadata.{key}")
    report.unknown(head, _SKILL)
    _note_files(body, report)
    metadata = {"description": description} | version
    fields = {"metadata": metadata, "settings": settings, "rules": [entry] if entry else []}
    return made("skill", name, fields, report, definition_id, path.name)


def _rule(head: dict[str, Any], body: str, file: str, report: ImportReport, definition_id: str) -> Imported:
    stem = file.partition(".")[0] or "rule"
    globs = next((head[key] for key in ("globs", "applyTo", "paths") if head.get(key)), None)
    patterns = ", ".join(map(str, globs)) if isinstance(globs, list) else str(globs or "")
    description = report.description(head.get("description"))
    if head.get("alwaysApply") is True or patterns == "**":
        include = "always"
    elif patterns:
        include, description = "agent", description or f"For files that match {patterns}"[:2_000]
        report.leave_out("globs", f"{patterns}: the agent reads the rule when it needs it")
    else:
        include = "agent" if description else "manual"
    report.unknown(head, (*_RULE_KEYS, "name", "description"))
    _note_files(body, report)
    entry = rule(str(head.get("name") or stem), body, report, description=description, include=include)
    fields = {"metadata": {"description": description}, "rules": [entry] if entry else []}
    return made("cursor-rule", head.get("name"), fields, report, definition_id, file)


def _instructions(head: dict[str, Any], body: str, file: str, report: ImportReport, definition_id: str) -> Imported:
    stem = file.lstrip(".").partition(".")[0] or "instructions"
    report.unknown(head, ())
    _note_files(body, report)
    entry = rule(fitting(stem), body, report, include="always")
    form = _INSTRUCTIONS.get(file, "instructions")
    return made(form, None, {"rules": [entry] if entry else []}, report, definition_id, file)


def _note_files(body: str, report: ImportReport) -> None:
    """Note the files that a text refers to: they are not in it."""
    fenced = re.sub(r"```.*?```", "", body, flags=re.DOTALL)
    paths = [*_LINK.findall(fenced), *_IMPORT.findall(fenced)]
    for path in dict.fromkeys(paths):
        report.leave_out(path, "the text names this file; its content is not imported")
